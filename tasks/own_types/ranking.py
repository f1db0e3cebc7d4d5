"""Own tasks with pairs of texts, of which the first is the better one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tasks.own_types.base import LabelsByLine, OwnType, Parts

if TYPE_CHECKING:
    from tasks.task_description import TaskDescription


def complete(
    name: str, description: Mapping[str, Any], file: str, found: LabelsByLine
) -> dict[str, Any]:
    return {}


def fault(described: TaskDescription) -> str | None:
    return None


def lines(described: TaskDescription) -> Iterator[str]:
    better, worse = described.texts
    yield f"ranking of pairs: {better!r} is better than {worse!r}"


def build(described: TaskDescription) -> Parts:
    """Return one head that scores each text; the order of the columns is the label of all rows."""
    from tasks.heads import ScoreDifference
    from tasks.kinds import ranking
    from tasks.predictions import PredictionFile, finite_number

    return Parts(
        kind=ranking(),
        build_head=ScoreDifference,
        output=PredictionFile(
            described.name,
            "Predicted_First_Is_Better",
            show=lambda value: str(np.float32(value)),
            parse=finite_number,
            scale=(0.0, 1.0),
        ),
        parse_label=lambda label: 1.0,
        target_type=np.float32,
        single=True,
    )


RANKING = OwnType(
    predicts="number",
    main_metric="order_accuracy",
    texts=(2,),
    keys=(),
    complete=complete,
    fault=fault,
    lines=lines,
    build=build,
    label_columns=(0, 0),
    joint=False,
)
