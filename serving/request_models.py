"""Requests of the server: their JSON, and checks with messages of one line."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, Field, StrictBool

from common.errors import RunError
from serving.model import MultiTaskModel
from serving.refusals import InvalidRequestError

LONGEST = 5000  # characters of a text
MOST = 64  # rows of a request


class Request(BaseModel):
    """A request; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


class PredictRequest(Request):
    """One or two texts, and a task; without one, all tasks that can read them. Null is empty."""

    texts: list[str | None] = Field(min_length=1, max_length=2)
    task: str | None = None


class BatchRequest(Request):
    """Rows of one or two texts each, and the tasks; without these, all that can read them."""

    rows: list[list[str | None]] = Field(min_length=1, max_length=MOST)
    tasks: list[str] | None = Field(default=None, min_length=1)


class EncodeRequest(Request):
    """Texts to embed; `normalize` for unit length, and a task of a run with branches."""

    texts: list[str | None] = Field(min_length=1, max_length=MOST)
    normalize: StrictBool | None = None
    task: str | None = None


def check(
    model: MultiTaskModel, rows: Sequence[Sequence[str]], tasks: Sequence[str] | None
) -> list[str]:
    """Return the tasks of a request; raise InvalidRequestError in one line if it has no answer."""
    count = len(rows[0])
    for number, row in enumerate(rows, 1):
        place = "texts" if len(rows) == 1 else f"rows.{number}"
        if len(row) != count or count not in (1, 2):
            wanted = "1 or 2" if count not in (1, 2) else str(count)
            raise InvalidRequestError(f"{place}: expected {wanted} texts, found {len(row)}")
        for text in row:
            check_text(place, text, least=0)
    for name in tasks or ():
        if (task := model.tasks_by_name.get(name)) is None:
            raise InvalidRequestError(
                f"task: expected {', '.join(model.tasks)}, found {name[:40]!r}"
            )
        if count != task.texts:
            raise InvalidRequestError(f"texts: expected {task.texts} for {name}, found {count}")
    known = {task.texts for task in model.tasks_by_name.values()}
    if tasks is None and count not in known:
        expected = " or ".join(map(str, sorted(known)))
        raise InvalidRequestError(
            f"texts: expected {expected} for {', '.join(model.tasks)}, found {count}"
        )
    # Beside a task of pairs, heads of single texts read the first text.
    return list(dict.fromkeys(tasks or model.readers(count)))


def check_text(name: str, text: str, least: int) -> None:
    """Raise InvalidRequestError for a text that is too short, too long or not valid Unicode."""
    found = len(text) if len(text) > LONGEST else len(text.strip())
    if not least <= found <= LONGEST:
        expected = f"{least} to {LONGEST} characters"
        raise InvalidRequestError(f"{name}: expected {expected}, found {found}")
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise InvalidRequestError(f"{name}: expected Unicode text, found half a surrogate pair")


def check_task_of(model: MultiTaskModel, task: str | None) -> None:
    """Raise InvalidRequestError for a task that `MultiTaskModel.encode` refuses."""
    try:
        model.check_embeds_texts(task if task is None or task in model.tasks else task[:40])
    except RunError as error:
        raise InvalidRequestError(str(error)) from error
