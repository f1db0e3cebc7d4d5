"""The program `minbert`."""

import sys

from cli import main as run
from common.entry_point import start


def main() -> None:
    """Run the command line and exit the process."""
    start(lambda: run(sys.argv[1:]))


if __name__ == "__main__":
    main()
