"""Start and exit of every program. This module does not import torch."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import Any, NoReturn

from safetensors import SafetensorError

from common.errors import Notice, UserError, one_line, out_of_memory
from common.extras import EXTRAS, missing

INSTALLED, CHECKOUT, MODULE = "minbert", "run.py", "minbert_multitask"  # names of the program


def start(program: str, work: Callable[[], int | None]) -> NoReturn:
    """Run `work`, which may return an exit status, and exit the process."""
    signal.signal(signal.SIGTERM, stop)
    threading.excepthook = ignore_thread_error
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # it was closed, as by `>&-`
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))
    if isinstance(sys.stdout, TextIOWrapper):  # a file has UTF-8, as those of --output
        encoding = None if sys.stdout.isatty() else "utf-8"
        sys.stdout.reconfigure(encoding=encoding, errors="backslashreplace")
    status = run_and_report(program, work)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # all files are closed; unloading PyTorch would take a third of a second


def stop(number: int, frame: object) -> None:
    """Handle a scheduler's SIGTERM like an interrupt; a second SIGTERM ends the process at once."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    raise KeyboardInterrupt


def ignore_thread_error(args: threading.ExceptHookArgs) -> None:
    """Ignore an OSError (full disk) in TensorBoard's thread: its next write raises it again."""
    if not isinstance(args.exc_value, OSError):
        threading.__excepthook__(args)


def run_and_report(program: str, work: Callable[[], int | None]) -> int:
    """Return the exit status of `work`; print an error that users can fix in one line."""
    try:
        with notices_reported(program):
            status = work() or 0
        sys.stdout.flush()  # here a closed pipe is handled
        return status
    except KeyboardInterrupt as interrupt:
        if error := user_error_before(interrupt):
            return print_user_error(program, error)
        return print_error(program, "; ".join(["interrupted", *map(str, interrupt.args)]), 130)
    except BrokenPipeError:  # the reader of the output has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except UserError as error:
        return print_user_error(program, error)
    except ModuleNotFoundError as error:
        if error.name not in EXTRAS:
            raise
        return print_error(program, missing(error.name), 1)
    except (MemoryError, RuntimeError) as error:
        if not out_of_memory(error):
            raise
        needs = "out of memory: use a smaller --encoder or less text at a time"
        return print_error(program, needs, 1)
    except (OSError, SafetensorError) as error:  # a full disk, a folder removed while running
        name = os.fsdecode(getattr(error, "filename", None) or "")
        reason = getattr(error, "strerror", None) or str(error)
        return print_error(program, f"{name}: {reason}" if name else reason, 1)


@contextmanager
def if_interrupted(note: str) -> Iterator[None]:
    """Add a note to the line that the program prints if the block is interrupted."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        raise KeyboardInterrupt(note) from interrupt


def user_error_before(interrupt: BaseException) -> UserError | None:
    """Return the UserError that was being handled when a signal came, or None.

    When one process of torchrun fails, torchrun sends SIGTERM to the others while they clean up.
    """
    error = interrupt.__context__
    while error is not None and not isinstance(error, UserError):
        error = error.__context__
    return error


@contextmanager
def notices_reported(program: str) -> Iterator[None]:
    """Print each Notice as one line on standard error, regardless of filters."""
    with warnings.catch_warnings():
        show = warnings.showwarning

        def report(message: Warning | str, category: type[Warning], *place: Any) -> None:
            if issubclass(category, Notice):
                print_error(program, str(message), 0)
            else:
                show(message, category, *place)

        warnings.simplefilter("always", Notice)
        warnings.showwarning = report  # type: ignore[assignment]
        yield


def program() -> str:
    """Return the name of the running program: minbert if it is installed, or run.py."""
    return INSTALLED if Path(sys.argv[0]).stem in (INSTALLED, MODULE) else CHECKOUT


def program_command() -> list[str]:
    """Return the words with which this process was started, as a shell in this folder runs them."""
    script = sys.argv[0]
    if Path(script).stem == INSTALLED:
        return [INSTALLED if shutil.which(INSTALLED) == script else script]
    python = sys.orig_argv[0] if sys.orig_argv else "python"
    return [python, script if Path(script).suffix == ".py" else CHECKOUT]


def command_line() -> str | None:
    """Return the command line of a run, to be stored with it; None if Python started training."""
    script = Path(sys.argv[0])
    if script.name == CHECKOUT:
        started = ["python", sys.argv[0]]
    elif script.stem == INSTALLED:
        started = [INSTALLED]
    elif script.stem == MODULE:
        started = ["python", "-m", MODULE]
    else:
        return None
    return shlex.join([*started, *sys.argv[1:]])


def print_user_error(program: str, error: UserError) -> int:
    """Print an error, unless another process of the run does, and return its status."""
    if error.printed_elsewhere:
        return error.status
    return print_error(program, str(error), error.status)


def print_error(program: str, message: str, status: int) -> int:
    """Print one line on standard error and return `status`."""
    print(f"{program}: {one_line(message)}", file=sys.stderr)
    return status
