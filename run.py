#!/usr/bin/env python3
"""The command line: `python run.py --mode MODE`; `--help` lists the modes."""

from cli import start_program

if __name__ == "__main__":
    start_program()
