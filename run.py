"""The command line's front door: `python run.py --mode MODE`, `--help` for the rest."""

import os
import signal
import sys

from cli import main


def stop(number: int, frame: object) -> None:
    """SIGTERM, as schedulers send it, cleans up like an interrupt; a second one ends at once."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, stop)
    status = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # all files are closed: unloading PyTorch would take a third of a second more
