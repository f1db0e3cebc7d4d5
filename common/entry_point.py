"""How every program begins and ends. No torch is imported here."""

from __future__ import annotations

import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn, TextIO

from safetensors import SafetensorError

from common.errors import TruncationWarning, UserError, one_line, out_of_memory


def start(program: str, work: Callable[[], int | None]) -> NoReturn:
    """Do the work of a whole process and leave it; `work` may return an exit status."""
    signal.signal(signal.SIGTERM, stop)
    threading.excepthook = told_elsewhere
    status = ended(program, work)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # all files are closed: unloading PyTorch would take a third of a second more


def stop(number: int, frame: object) -> None:
    """SIGTERM, as schedulers send it, cleans up like an interrupt; a second one ends at once."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    raise KeyboardInterrupt


def told_elsewhere(found: threading.ExceptHookArgs) -> None:
    """A full disk under TensorBoard's own thread: its next write raises the error again."""
    if not isinstance(found.exc_value, OSError):
        threading.__excepthook__(found)


def ended(program: str, work: Callable[[], int | None]) -> int:
    """The exit status of `work`: what a user can mend is told in one line, without a traceback."""
    try:
        with truncation_reported(program):
            status = work() or 0
        sys.stdout.flush()  # here, where a reader that went away is expected
        return status
    except KeyboardInterrupt:
        return tell(program, "interrupted", 130)
    except BrokenPipeError:  # the reader of our output went away: nobody is left to be told
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except UserError as error:
        return tell(program, str(error), error.status)
    except (MemoryError, RuntimeError) as error:
        if not out_of_memory(error):
            raise
        needs = "out of memory: a smaller --encoder or less text at a time needs less"
        return tell(program, needs, 1)
    except (OSError, SafetensorError) as error:  # a full disk, a folder taken away while running
        name = os.fsdecode(getattr(error, "filename", None) or "")
        reason = getattr(error, "strerror", None) or str(error)
        return tell(program, f"{name}: {reason}" if name else reason, 1)


@contextmanager
def truncation_reported(program: str) -> Iterator[None]:
    """Print each TruncationWarning as one line on standard error, whatever the filters are."""
    with warnings.catch_warnings():
        show = warnings.showwarning

        def report(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if issubclass(category, TruncationWarning):
                tell(program, str(message), 0)
            else:
                show(message, category, filename, lineno, file, line)

        warnings.simplefilter("always", TruncationWarning)
        warnings.showwarning = report
        yield


def tell(program: str, message: str, status: int) -> int:
    """One line on standard error."""
    print(f"{program}: {one_line(message)}", file=sys.stderr)
    return status
