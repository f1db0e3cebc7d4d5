"""The command line's front door: `python run.py --mode MODE`, `--help` for the rest."""

import os
import sys

from cli import main

if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # all files are closed: unloading PyTorch would take a third of a second more
