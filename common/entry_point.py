"""Start and end of the program: an error becomes one line and an exit status."""

import os
import signal
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from safetensors import SafetensorError

from common.errors import Notice, UserError, one_line
from common.progress import is_main_process

OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "not enough memory")


def start(work: Callable[[], int | None]) -> NoReturn:
    """Run `work`, which may return an exit status, and exit the process."""
    signal.signal(signal.SIGTERM, stop)
    if not is_main_process():
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (open until the process ends)
    sys.exit(run_and_report(work))


def stop(number: int, frame: object) -> None:
    """Handle a scheduler's SIGTERM like Ctrl-C; a second SIGTERM ends the process at once."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if not isinstance(sys.exception(), UserError):  # torchrun stops all processes after an error
        raise KeyboardInterrupt


def run_and_report(work: Callable[[], int | None]) -> int:
    """Return the exit status of `work`; print an error that users can fix as one line."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", Notice)
        if not is_main_process():
            warnings.simplefilter("ignore")
        warnings.showwarning = lambda message, *place, **more: print_line(str(message))
        try:
            status = work() or 0
            print(end="", flush=True)  # here a closed pipe is found
            return status
        except BrokenPipeError:  # the reader of the output has closed it
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 141
        except BaseException as error:
            line = line_of(error)
            if not line:
                raise
            # The main process has the UserError of any other one.
            if is_main_process() or not isinstance(error, UserError | KeyboardInterrupt):
                print_line(line)
            return 130 if isinstance(error, KeyboardInterrupt) else getattr(error, "status", 1)


def line_of(error: BaseException) -> str:
    """Return what users read of an error; nothing if they cannot fix it."""
    if isinstance(error, KeyboardInterrupt):
        return "; ".join(["interrupted", *map(str, error.args)])
    if isinstance(error, ModuleNotFoundError):
        return f"{error.name} is missing: pip install {error.name}"
    if isinstance(error, MemoryError) or any(sign in str(error) for sign in OUT_OF_MEMORY):
        return "out of memory: use a smaller --encoder, --micro-batch or --batch-size"
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    return str(error) if isinstance(error, UserError | OSError | SafetensorError) else ""


def print_line(text: str) -> None:
    print(f"{Path(program()[-1]).name}: {one_line(text)}", file=sys.stderr)


def program() -> list[str]:
    """Return the words that start this program again in the same folder."""
    file = Path(sys.argv[0])
    if file.stem == "minbert":
        return ["minbert"]
    return [sys.orig_argv[0], str(file) if file.name == "run.py" else "run.py"]
