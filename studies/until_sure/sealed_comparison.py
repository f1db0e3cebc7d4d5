"""The sealed file of a comparison: its content, and the checks that another machine makes of it.

The file has everything that the verdict follows from: scores of each seed, the covariance of the
differences over resamples of the examples, durations and the rule. Predictions are not needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Literal, TypedDict

import msgspec
import numpy as np

from common.errors import UserError
from common.json_files import read_sealed
from multitask.config_tasks import plain_tasks
from multitask.settings.config import RunConfig
from multitask.storage.data_files import file_digests
from reports.leaks import Counts, audit
from studies.data_records import drawn_split, hash_examples
from studies.until_sure.confidence import PRECISION
from studies.until_sure.seed_pairs import DevScore, SeedPair, resampled_covariance, score_of
from studies.until_sure.stopping import ERROR, OF_EXAMPLES, Conclusion, Rule, conclude
from tasks import data_folder
from tasks.described import FILES as DATA_FILES
from tasks.metrics import METRICS, metric_error

REMEDY = "restore it, or run the comparison again"
KIND = "comparison until sure"
METHOD = {"error": ERROR, "error_of_examples": OF_EXAMPLES, "prior_precision": PRECISION}
TOLERANCE = 1e-6  # points; the last digits of sums may differ between machines
NAMES = ("A", "B")
Numbers = dict[str, float]


class StoredPair(TypedDict):
    seed: int
    metrics: dict[Literal["A", "B"], Numbers]  # the main metric of each task
    scores: dict[Literal["A", "B"], float]  # in points
    difference: float  # A minus B, in points
    seconds: dict[Literal["A", "B"], float]


class StoredLook(TypedDict):
    pairs: int
    difference: float
    seeds: tuple[float, float]
    half: float
    interval: tuple[float, float]


class StoredScore(TypedDict):
    name: str
    metrics: dict[str, str]
    examples: dict[str, int]


class Content(TypedDict):
    """The keys of the file; `splits` and `leaks` are those of each configuration."""

    kind: str
    configurations: dict[Literal["A", "B"], dict[str, Any]]
    score: StoredScore
    rule: Rule
    method: Numbers
    data: dict[str, str]
    splits: dict[Literal["A", "B"], dict[str, str]]
    leaks: dict[Literal["A", "B"], dict[str, dict[str, dict[str, int]]]]
    pairs: list[StoredPair]
    covariance: list[list[float]]
    history: list[StoredLook]
    verdict: str
    reason: str | None
    environment: dict[str, str | int]


def data_record(configs: Mapping[str, RunConfig]) -> dict[str, Any]:
    """Return the checksums of files, the fingerprints of splits and the leak audit.

    A split's fingerprint is a hash of its texts and labels, in order. Texts that earlier runs have
    seen, such as those of `init`, are not audited.
    """
    splits, leaks = {}, {}
    for name, config in configs.items():
        tasks = plain_tasks(config.changed(seed=1))
        splits[name] = {
            f"{task.name} {split}": hash_examples(drawn_split(config, task, split)[1])
            for task in tasks.values()
            for split in task.source.splits
        }
        counts, damaged = audit([*tasks.values()], data_folder(config.data))
        if damaged:
            raise UserError(damaged[0])
        leaks[name] = {what: without_itself(several) for what, several in counts.items()}
    return {"data": file_digests(*configs.values()), "splits": splits, "leaks": leaks}


def without_itself(counts: Counts) -> dict[str, dict[str, int]]:
    """Return counts of texts without those of a split in itself."""
    return {
        held: {name: count for name, count in found.items() if count is not None}
        for held, found in counts.items()
    }


def pairs_content(pairs: Sequence[SeedPair], score: DevScore) -> dict[str, Any]:
    """Return the pairs and the covariance of their differences."""
    stored = []
    for one in pairs:
        scores = {name: score.of(one.metrics[name]) for name in NAMES}
        part = {"seed": one.seed, "metrics": one.metrics, "scores": scores}
        stored.append(part | {"difference": scores["A"] - scores["B"], "seconds": one.seconds})
    return {"pairs": stored, "covariance": resampled_covariance(pairs).tolist()}


def concluded(content: Mapping[str, Any]) -> Conclusion:
    """Return the conclusion that follows from the pairs, the covariance and the rule."""
    pairs, rule = content["pairs"], Rule(**content["rule"])
    seconds = [sum(one["seconds"].values()) for one in pairs]
    covariance = np.array(content["covariance"])
    return conclude([one["difference"] for one in pairs], covariance, seconds, rule)


def conclusion_content(found: Conclusion) -> dict[str, Any]:
    """Return the looks, the verdict and the reason as JSON."""
    history = []
    for one in found.looks:
        part = asdict(one) | {"interval": one.interval}
        history.append({key: part[key] for key in StoredLook.__annotations__})
    return {"history": history, "verdict": found.verdict, "reason": found.reason}


def read_comparison(file: Path) -> dict[str, Any]:
    """Read a sealed file; raise UserError if it was edited or is no comparison."""
    content = read_sealed(file, UserError, REMEDY)
    try:
        msgspec.convert(content, Content)
    except msgspec.ValidationError as error:
        raise UserError(f"{file}: expected a comparison until sure, found: {error}") from error
    of_both = [content[key] for key in ("configurations", "splits", "leaks")]
    of_both += [one[key] for one in content["pairs"] for key in ("metrics", "scores", "seconds")]
    names = [one.name for one in fields(Rule)]
    if content["rule"].keys() != set(names):
        raise UserError(f"{file}: rule: expected {', '.join(names)}, found others")
    if content["kind"] != KIND or any(one.keys() != set(NAMES) for one in of_both):
        raise UserError(f"{file}: expected a {KIND} of A and B, found {content['kind']!r}")
    return content


def verify(file: Path, data: str | None = None) -> Iterator[tuple[str, str | None]]:
    """Yield the name of each check and what is wrong, or None.

    With the folder `data`, the files of data are read, too. The first check is that of the
    checksum; nothing else is checked if it fails.
    """
    try:
        content = read_comparison(file)
    except UserError as error:
        yield "checksum", str(error)
        return
    yield "checksum", None
    yield "method", difference_of(METHOD, content["method"])
    yield "scores", wrong_scores(content)
    rows, count = content["covariance"], len(content["pairs"])
    square = len(rows) == count and all(len(row) == count for row in rows)
    if not square or not np.all(np.isfinite(rows)):
        yield "intervals", f"expected a covariance of {count} pairs, found another shape"
        return
    found = conclusion_content(concluded(content))
    yield "intervals", difference_of(found["history"], content["history"])
    for key in ("verdict", "reason"):
        yield key, difference_of(found[key], content[key])
    if data is not None:
        yield from verify_data(content, data)


def wrong_scores(content: Mapping[str, Any]) -> str | None:
    """Return what is wrong with seeds, scores, differences or the resolution."""
    seeds = [one["seed"] for one in content["pairs"]]
    if seeds != list(range(1, len(seeds) + 1)):
        return f"expected the seeds 1, 2, ... in order, found {seeds}"
    metrics, examples = content["score"]["metrics"], content["score"]["examples"]
    unknown = metrics.keys() != examples.keys() or not METRICS.keys() >= set(metrics.values())
    if not metrics or unknown or min(examples.values()) < 1:
        return "expected tasks with their metrics and numbers of examples, found others"
    score = score_of(metrics)
    for one in content["pairs"]:
        if any(one["metrics"][name].keys() != metrics.keys() for name in NAMES):
            return f"seed {one['seed']}: expected the metric of each task of A and B"
        by_metric = [{metrics[t]: v} for name in NAMES for t, v in one["metrics"][name].items()]
        if wrong := metric_error(by_metric):
            return f"seed {one['seed']}: {wrong}"
        scores = {name: score.of(one["metrics"][name]) for name in NAMES}
        expected = {"scores": scores, "difference": scores["A"] - scores["B"]}
        if wrong := difference_of(expected, {key: one[key] for key in expected}):
            return f"seed {one['seed']}: {wrong}"
    return difference_of(score.resolution(examples), content["rule"]["resolution"])


def verify_data(content: Mapping[str, Any], data: str) -> Iterator[tuple[str, str | None]]:
    """Yield the checks of the files in a folder: their checksums, the splits and the leak audit."""
    try:
        configs = {
            name: RunConfig.from_json(with_folder(content["configurations"][name], data))
            for name in NAMES
        }
        found = data_record(configs)
    except UserError as error:
        yield "data", str(error)
        return
    yield "data", data_difference(found["data"], content["data"])
    for key in ("splits", "leaks"):
        yield key, difference_of(found[key], content[key])


def data_difference(expected: Mapping[str, str], found: Mapping[str, str]) -> str | None:
    """Return the first difference between the checksums of the data and those in a file.

    Older files have fewer checksums: those of files that are named by settings are missing.
    """
    return difference_of({key: one for key, one in expected.items() if key in found}, found)


def with_folder(config: Mapping[str, Any], data: str) -> dict[str, Any]:
    """Return a stored configuration that reads its data, and files of own tasks, in a folder."""
    own = {
        name: {**one, **{k: str(Path(data) / str(one[k])) for k in DATA_FILES if one.get(k)}}
        for name, one in config.get("own_tasks", {}).items()
    }
    return {**config, "data": data, "own_tasks": own}


def difference_of(expected: Any, found: Any, where: str = "") -> str | None:
    """Return the first difference between two values from JSON; numbers may differ by rounding."""
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        for key in sorted(expected.keys() | found.keys()):
            inner = f"{where}, {key}" if where else f"{key}"
            if wrong := difference_of(expected.get(key), found.get(key), inner):
                return wrong
        return None
    if isinstance(expected, list | tuple) and isinstance(found, list | tuple):
        if len(expected) != len(found):
            return f"{where}: expected {len(expected)}, found {len(found)}".removeprefix(": ")
        rows = enumerate(zip(expected, found, strict=True), 1)
        several = (difference_of(one, two, f"{where} {n}".strip()) for n, (one, two) in rows)
        return next((wrong for wrong in several if wrong), None)
    numbers = all(isinstance(one, int | float) for one in (expected, found))
    if numbers and abs(expected - found) <= TOLERANCE:
        return None
    if expected == found:
        return None
    return f"{where}: expected {expected}, found {found}".removeprefix(": ")
