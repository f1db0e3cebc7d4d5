"""The folder of a merge of several runs, in the form of a run, for comparison or merging."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from common.json_files import write_sealed
from multitask.checkpoint_folders import publish
from multitask.run_folder import RunFolder
from reports.store import StoredRun
from tasks.predictions import (
    PredictionError,
    Scores,
    scores_name,
    write_predictions,
    write_scores,
)


def check_output(
    folder: Path, config: Mapping[str, Any], members: Iterable[Path], overwrite: bool
) -> None:
    """Raise PredictionError if the folder is a member's or holds a run not to be replaced."""
    for member in members:
        if folder.resolve() == member.resolve():
            raise PredictionError(f"{folder}: expected another --output than a member's folder")
    stored = RunFolder(folder).run_or_nothing()
    if stored is not None and stored != config and not overwrite:
        raise PredictionError(
            f"{folder}: expected this {config['mode']} or nothing, found another run; choose "
            "another --output, or --overwrite it"
        )


def write_merged_run(
    folder: Path,
    config: Mapping[str, Any],
    metrics: Mapping[str, Any],
    tables: Mapping[str, Mapping[str, Scores]],
    save_model: Callable[[Path], None] | None = None,
) -> None:
    """Write scores by task and split, metrics and, for a soup, the model; replace a run there.

    Raises RunError if another process uses the folder.
    """
    place = RunFolder(folder)
    with place.locked():
        if place.run_or_nothing() is not None:
            place.remove()
        folder.mkdir(parents=True, exist_ok=True)
        place.write_config(config)  # first: it marks the folder as a run
        target = place.predictions
        target.mkdir(exist_ok=True)
        if save_model is not None:
            publish(place.best, save_model, config)
        for task, splits in tables.items():
            output = StoredRun(folder, config, None).task(task).output
            for split, table in splits.items():
                assert table.predictions is not None
                if output is not None:
                    file = target / output.name(split)
                    write_predictions(file, output, table.ids, table.predictions)
                write_scores(target / scores_name(task, split), table)
        write_sealed(folder / "metrics.json", metrics)
