"""Comparison of two configurations, seed by seed, until the difference is settled.

`compare_until_sure(A, B, folder, margin=0.3)` trains A and B with seed 1, then with seed 2, and so
on. After each pair it updates the intervals of `stopping.py`. It ends with a verdict, or
when the budget, the seeds or the dev examples do not suffice for one. The runs stay in
`folder/A-seed1`, `folder/B-seed1`, ...; the result is the sealed file `folder/until-sure.json`. The
same call goes on where an interrupted one stopped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from common.environment import environment
from common.errors import SettingsError, UserError
from common.json_files import write_sealed
from common.progress import duration
from common.settings import convert, short_repr
from multitask.precision import with_precision
from multitask.settings.config import RunConfig, check_complete
from multitask.storage.run_folder import RunFolder
from multitask.storage.stored_config import read_settings, without_paths
from reports.tables import shown_table
from studies.data_records import drawing_settings
from studies.runner import long_training
from studies.until_sure.sealed_comparison import (
    KIND,
    METHOD,
    NAMES,
    concluded,
    conclusion_content,
    data_difference,
    data_record,
    difference_of,
    pairs_content,
    read_comparison,
)
from studies.until_sure.seed_pairs import (
    DevScore,
    SeedPair,
    check_comparable,
    dev_score,
    score_pair,
)
from studies.until_sure.stopping import A_BETTER, B_BETTER, OPEN, SMALL, Population, Rule

FILE = "until-sure.json"
LIMITS = ("budget", "most seeds")  # reasons to stop that another call may lift
REASONS = {
    "budget": "the budget is spent",
    "most seeds": "the largest number of seeds is reached",
    "few examples": "the dev set is too small: no number of seeds would settle it; "
    "examples=fixed asks about these examples only",
    None: "unfinished",
}


def compare_until_sure(
    first: RunConfig,
    other: RunConfig,
    folder: str | Path,
    margin: float,
    *,
    examples: Population = Rule.examples,
    budget: float | None = Rule.budget,
    most_seeds: int = Rule.most_seeds,
    score: str | None = None,
) -> dict[str, Any]:
    """Compare two configurations, called A and B; return the content of `until-sure.json`.

    The `margin` is in points (hundredths of the score), the `budget` in seconds of training and
    evaluation: one pair is always trained, and no further one that would exceed it. `score` is a
    task, or overall; by default overall if there are several common tasks.
    With `examples="fixed"` the verdict is about new seeds on the given dev examples only. The seeds
    of the configurations are replaced by 1, 2, 3, ... Raises SettingsError for configurations or
    options that do not fit together.
    """
    configs, folder = dict(zip(NAMES, (first, other), strict=True)), Path(folder).expanduser()
    found = check_request(configs, score)
    if first.changed(seed=other.seed) == other:
        raise SettingsError("expected two configurations that differ in more than the seed")
    margin, budget = convert("margin", float, margin), convert("budget", float | None, budget)
    most_seeds = convert("most_seeds", int, most_seeds)
    rule = Rule(margin, examples, most_seeds=most_seeds, budget=budget)
    for fault in rule.faults():
        raise SettingsError(fault)
    for name, one in configs.items():  # all seeds have the precision of the first one
        configs[name], _ = with_precision(RunFolder(folder / f"{name}-seed1"), one, False)
    content: dict[str, Any] = {
        "kind": KIND,
        "configurations": {name: stored_configuration(one) for name, one in configs.items()},
        "score": {"name": found.name, "metrics": dict(found.metrics)},
        "rule": asdict(rule),
        "method": METHOD,
        **data_record(configs),
        "environment": environment(),
    }
    earlier = read_comparison(folder / FILE) if (folder / FILE).exists() else None
    if earlier is not None:
        check_earlier(folder / FILE, earlier, content)
    stored = len(earlier["pairs"]) if earlier is not None else 0
    folder.mkdir(parents=True, exist_ok=True)
    pairs: list[SeedPair] = []
    while True:
        pairs.append(train_pair(configs, len(pairs) + 1, folder, found))
        counts = count_examples(pairs)
        rule = replace(rule, resolution=found.resolution(counts))
        content["score"]["examples"] = counts
        content |= {"rule": asdict(rule)} | pairs_content(pairs, found)
        conclusion = concluded(content)
        content |= conclusion_content(conclusion)
        if len(pairs) < stored and conclusion.reason in (None, *LIMITS):
            continue  # pairs of the file are kept, also with fewer seeds or a smaller budget
        write_sealed(folder / FILE, content)
        print(f"\n{progress_line(content)}", flush=True)
        if conclusion.reason is not None:
            return content


def stored_configuration(config: RunConfig) -> dict[str, Any]:
    """Return a configuration as JSON for other machines, without its seed."""
    return {key: value for key, value in without_paths(config).items() if key != "seed"}


def train_pair(
    configs: Mapping[str, RunConfig], seed: int, folder: Path, score: DevScore
) -> SeedPair:
    """Complete the runs of a seed, except finished ones, and score them."""
    folders = {name: folder / f"{name}-seed{seed}" for name in NAMES}
    for name, config in configs.items():
        print(f"\n{name}, seed {seed}", flush=True)
        long_training(config.changed(seed=seed), folders[name])
    return score_pair(folders, seed, score)


def check_request(configs: Mapping[str, RunConfig], chosen: str | None) -> DevScore:
    """Return the score of two configurations; raise SettingsError if they cannot be compared."""
    for name, config in configs.items():
        if not isinstance(config, RunConfig):
            raise SettingsError(f"{name}: expected a RunConfig, found {short_repr(config)}")
    common = check_comparable(*configs.values())
    for config in configs.values():
        check_complete(config)
        for task in common:
            if any(one.startswith("seed") for one in drawing_settings(config, task, "dev")):
                name = config.protocol.name
                raise SettingsError(f"protocol: expected the same dev for all seeds, found {name}")
    return dev_score({task: configs["A"].options_of(task).build() for task in common}, chosen)


def check_earlier(file: Path, earlier: Mapping[str, Any], content: Mapping[str, Any]) -> None:
    """Raise UserError if the file has an earlier comparison of other configurations or data.

    Score, margin and population are chosen before the first scores, so that they stay, too.
    """
    compared = {
        key: difference_of(content[key], earlier[key]) for key in ("configurations", "splits")
    }
    compared["data"] = data_difference(content["data"], earlier["data"])
    for key, wrong in compared.items():
        if wrong:
            raise UserError(f"{file}: {key}, {wrong}; choose another --output")
    chosen = {"score": ("name",), "rule": ("margin", "examples")}
    for part, keys in chosen.items():
        for key in keys:
            if (begun := earlier[part][key]) != (wanted := content[part][key]):
                name = "score" if part == "score" else key
                raise UserError(
                    f"{file}: {name}: expected {begun!r}, with which the comparison began, found "
                    f"{wanted!r}; choose another --output"
                )


def count_examples(pairs: list[SeedPair]) -> dict[str, int]:
    """Return the number of dev examples of each task; raise UserError if seeds differ in them."""
    first, last = pairs[0], pairs[-1]
    for task, found in last.examples.items():
        if found != first.examples[task]:
            raise UserError(
                f"{task}: expected the dev examples of seed {first.seed} for all seeds, found "
                f"others with seed {last.seed}"
            )
    return {task: count for task, (count, _) in first.examples.items()}


def read_configuration(place: Path, data: str | None = None) -> RunConfig:
    """Return the configuration in a .json or .yaml file of settings, or of a run's folder.

    The folder `data` replaces that of the file. Raise UserError with the name of the file.
    """
    file = place / "config.json" if place.is_dir() else place
    content = read_settings(file)
    if content.get("use"):
        line = "expected built-in methods; in Python, configurations may have others"
        raise SettingsError(f"{file}: use: {line}")
    try:
        return RunConfig.from_flat(content | ({"data": data} if data else {}))
    except UserError as error:
        raise type(error)(f"{file}: {error}") from error


def progress_line(content: Mapping[str, Any]) -> str:
    """Return the state after a pair in one line."""
    pairs, history = content["pairs"], content["history"]
    last, n = pairs[-1]["scores"], len(pairs)
    scores = f"pair {n}: A {last['A']:.2f}, B {last['B']:.2f}, A - B {pairs[-1]['difference']:+.2f}"
    if not history:
        return f"{scores}; intervals from 3 pairs on"
    ends = history[-1]
    return f"{scores}; mean {ends['difference']:+.2f}, interval {shown_interval(ends['interval'])}"


def summary(content: Mapping[str, Any]) -> str:
    """Return the table of the looks and the verdict in plain words."""
    looks = {one["pairs"]: one for one in content["history"]}
    rows = []
    for n, one in enumerate(content["pairs"], 1):
        scores = [f"{one['scores'][name]:.2f}" for name in NAMES]
        row = [str(one["seed"]), *scores, f"{one['difference']:+.2f}"]
        if found := looks.get(n):
            parts = shown_interval(found["seeds"]), f"± {found['half']:.2f}"
            row += [f"{found['difference']:+.2f}", *parts, shown_interval(found["interval"])]
        rows.append([*row, *[""] * (8 - len(row))])
    header = ["seed", "A", "B", "A - B", "mean", "new seeds", "new examples", "both"]
    return f"{shown_table(header, rows)}\n\n{sentence(content)}"


def sentence(content: Mapping[str, Any]) -> str:
    """Return the verdict in plain words, with the interval and what it is about."""
    verdict, rule, history = content["verdict"], content["rule"], content["history"]
    counts = ", ".join(f"{n:,} ({task})" for task, n in content["score"]["examples"].items())
    about = {"sampled": "new seeds and new examples", "fixed": "new seeds on these dev examples"}
    seconds = sum(sum(one["seconds"].values()) for one in content["pairs"])
    n = len(content["pairs"])
    basis = f"{n} pair{'s' if n > 1 else ''}, {duration(seconds)}; dev examples: {counts}"
    parts = [verdict]
    if history:
        low, high = history[-1]["interval"]
        small = max(-low, high) <= rule["margin"]
        parts[0] += ", by less than the margin" if verdict in (A_BETTER, B_BETTER) and small else ""
        difference = (
            f"A - B is {history[-1]['difference']:+.2f} points of {content['score']['name']}"
        )
        over = about[rule["examples"]]
        parts.append(f"{difference}, 95 % interval {shown_interval((low, high))} over {over}")
    if verdict == OPEN:
        parts[0] += f" ({REASONS[content['reason']]})"
    if verdict in (OPEN, SMALL):
        parts[0] += f", margin {rule['margin']:g}"
    return "; ".join([*parts, basis])


def shown_interval(ends: tuple[float, float]) -> str:
    return f"{ends[0]:+.2f} to {ends[1]:+.2f}"
