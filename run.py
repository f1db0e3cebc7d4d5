#!/usr/bin/env python3
# PYTHON_ARGCOMPLETE_OK
"""The command line's front door: `python run.py --mode MODE`, `--help` for the rest."""

import sys

from cli import main
from common.entry_point import start

if __name__ == "__main__":
    start("run.py", lambda: main(sys.argv[1:]))
