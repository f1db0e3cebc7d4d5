"""The splits of all tasks of a run, read and tokenised, with notices about what was left out."""

from __future__ import annotations

from collections.abc import Mapping

from minbert.bi_encoder import BiEncoder
from multitask.calibration import with_calibration_examples
from multitask.settings.config import RunConfig
from tasks import data_folder
from tasks.base import Task
from tasks.data import (
    Split,
    load_together,
    long_text_notices,
    reading_notices,
    small_split_notices,
)
from tasks.readers import limit_of
from tasks.task_description import from_json
from tasks.task_inference import description_lines


def load_splits(
    config: RunConfig, chosen: Mapping[str, Task], bi_encoder: BiEncoder
) -> dict[str, dict[str, Split]]:
    """Return all tokenised splits of all tasks; print the counts of examples and removals."""
    folder = data_folder(config.data)
    splits: dict[str, dict[str, Split]] = {name: {} for name in chosen}
    for name, task in chosen.items():
        limits = {
            "train": {one: limit_of(config.limit, one) for one in chosen},
            "dev": dict.fromkeys(chosen, config.dev_limit),
            "test": dict.fromkeys(chosen, config.test_limit),
        }
        together = [one for one in chosen.values() if of_one_table(one, task)]
        for split in task.source.splits if together[0] is task else ():
            found = load_together(together, folder, split, bi_encoder.tokenizer, limits[split])
            for other, one in found.items():
                splits[other][split] = one
        counts = ", ".join(f"{split} {len(s.examples):,}" for split, s in splits[name].items())
        print(f"{name}: {counts} examples", flush=True)
        if config.calibrate and not task.auxiliary and task.kind.calibrator is None:
            print(f"{name}: not calibrated, as it predicts no class, label or number", flush=True)
        elif config.calibrate and not task.auxiliary:
            dev = splits[name]["dev"] = with_calibration_examples(task, splits[name]["dev"])
            scored, every = len(dev.scored_rows), len(dev.examples)
            line = f"{every - scored:,} of {every:,} dev examples calibrate"
            print(f"{name}: {line}; scores are those of the other {scored:,}", flush=True)
        if name in config.own_tasks:
            for line in description_lines(from_json(name, config.own_tasks[name])):
                print(f"{name}: {line}", flush=True)
        if config.test_limit is not None and "test" in splits[name]:
            test = splits[name]["test"].examples
            if len(test) < test.available:
                line = f"only {len(test):,} of {test.available:,} test examples (--test-limit)"
                print(f"{name}: {line} are predicted and in the prediction file", flush=True)
        for split, loaded in splits[name].items():
            for line in reading_notices(task, folder, split, loaded.examples):
                print(f"{name}: {line}", flush=True)
            for line in long_text_notices(task, split, loaded, bi_encoder.tokenizer):
                print(f"{name}: {line}", flush=True)
        if name in config.own_tasks and config.dev_limit is None:
            examples = {split: loaded.scored for split, loaded in splits[name].items()}
            limited = len(examples["train"]) < examples["train"].available
            for line in small_split_notices(task, examples, limited):
                print(f"{name}: {line}", flush=True)
    return splits


def of_one_table(one: Task, other: Task) -> bool:
    """Return whether two tasks are the same, or have labels in columns of the same table."""
    return one is other or (one.shares_rows is not None and one.shares_rows == other.shares_rows)
