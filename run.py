#!/usr/bin/env python3
# PYTHON_ARGCOMPLETE_OK
"""The command line: `python run.py --mode MODE`; `--help` lists the modes."""

import sys

from cli import main
from common.entry_point import start

if __name__ == "__main__":
    start("run.py", lambda: main(sys.argv[1:]))
