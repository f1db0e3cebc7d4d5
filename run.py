#!/usr/bin/env python3
"""The command line: `python run.py --mode MODE`; `--help` lists the modes."""

from minbert_multitask import main

if __name__ == "__main__":
    main()
