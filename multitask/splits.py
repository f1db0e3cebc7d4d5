"""The splits of all tasks of a run, read and tokenised, with notices about what was left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from common.text import counted
from minbert.bi_encoder import BiEncoder
from minbert.tokenizer import Tokenizer, truncation
from multitask.settings.config import RunConfig
from tasks import data_folder
from tasks.base import Task
from tasks.data import Split, tokenized
from tasks.kinds import known_rows
from tasks.readers import limit_of
from tasks.splits import doubts, reading_notices


def load_splits(
    config: RunConfig, chosen: Mapping[str, Task], bi_encoder: BiEncoder
) -> dict[str, dict[str, Split]]:
    """Return all tokenised splits of all tasks; print the counts of examples and removals."""
    folder, tokenizer = data_folder(config.data), bi_encoder.tokenizer
    splits: dict[str, dict[str, Split]] = {}
    for name, task in chosen.items():
        limits = {
            "train": limit_of(config.limit, name),
            "dev": config.dev_limit,
            "test": config.test_limit,
        }
        examples = {split: task.read(folder, split, limits[split]) for split in task.source.splits}
        splits[name] = {s: tokenized(task, one, tokenizer) for s, one in examples.items()}
        found = [*notices_of(config, task, splits[name], tokenizer)]
        found += [] if config.pretrains else doubts(task, examples)
        for line in found:
            print(f"{name}: {line}", flush=True)
    return splits


def notices_of(
    config: RunConfig, task: Task, splits: Mapping[str, Split], tokenizer: Tokenizer
) -> Iterator[str]:
    """Yield what the splits of a task hold, and what was left out of them."""
    name, folder = task.name, data_folder(config.data)
    counts = ", ".join(f"{split} {len(one.examples):,}" for split, one in splits.items())
    yield f"{counts} examples"
    if name in config.own_tasks:
        yield from config.own_tasks[name].lines()
    if "test" in splits:
        test = splits["test"].examples
        if len(test) < test.available:
            line = f"predicted are only {len(test):,} of {test.available:,} test examples"
            yield f"{line} (--test-limit)"
        if test.targets is not None and (blank := int((~known_rows(test.targets)).sum())):
            yield f"{counted(blank, 'test example')} without a label: predicted, not scored"
    examples = {split: loaded.examples for split, loaded in splits.items()}
    yield from reading_notices(task, folder, examples)
    for split, loaded in splits.items():
        cut, texts = loaded.cut
        if cut:
            what = f"{split} {'pairs' if task.joint else 'texts'}"
            yield truncation(cut, texts, what, tokenizer.max_tokens)
