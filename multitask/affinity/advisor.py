"""`advise`: proposes runs on all data from a measurement, and stores them in its folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from common.atomic_files import paths_in, remove
from common.errors import RunError, SettingsError
from common.folder_content import folder_of_runs
from common.json_files import read_json, seal_of, write_json, write_sealed
from multitask.affinity.advice import OF_THE_RUN, Advice, Choice
from multitask.affinity.proposals import CHOSEN, Proposals, on_all_data
from multitask.affinity.result import Affinity
from multitask.affinity.run import ADVICE, ADVISED, JOINT, PREFIXES, RATE, joint_config
from multitask.control import RunControl
from multitask.settings.config import RunConfig, difference
from multitask.storage.run_folder import RunFolder
from tasks import data_folder


def advise(
    found: Affinity,
    config: RunConfig,
    folder: str | Path,
    *,
    seeds: Sequence[int] = (1, 2, 3),
    rates: Sequence[float] = (),
    control: RunControl = RunControl(),
) -> Advice:
    """Propose runs on all data, and store them in the folder of a measurement.

    Each group of tasks has the sampler that suits the sizes of its tasks, PCGrad if gradients of
    two of them are in conflict (a mean cosine whose interval is below 0), and branches in the
    layers in which they conflict. The learning rate is that of `config`, or the best of `rates`.

    Args:
        found: the result of `measure_affinity`.
        config: its configuration; `limit`, `dev_limit`, `test_limit` and `steps_per_epoch` are left
            out.
        folder: its folder, to which `advice.json` and the settings of the runs, `advice/NAME.json`,
            are written.
        seeds: seeds of the runs.
        rates: learning rates of encoder and heads that are tried in joint runs like the measured
            one, `rate-R`, whose dev is a tenth of the training examples (that of the files for a
            task with a labelled test).
        control: options of these joint runs.

    Returns:
        The systems to train, the reasons of their settings, and the promised gains.

    Raises:
        SettingsError: for a configuration with settings that the advice chooses.
        RunError: for a folder without the joint run of this configuration, and for one with runs
            of another advice.
    """
    folder = Path(folder)
    for fault in advice_faults(config, rates):
        raise SettingsError(fault)
    with folder_of_runs(folder, "mode affinity", (), PREFIXES):
        return stored_advice(found, config, folder, seeds, rates, control)


def stored_advice(
    found: Affinity,
    config: RunConfig,
    folder: Path,
    seeds: Sequence[int],
    rates: Sequence[float],
    control: RunControl,
) -> Advice:
    """Propose runs and store them, in the locked folder of a measurement."""
    joint = folder / f"{JOINT}{found.seeds[0]}"
    check_stored(folder, found.estimator)
    if found.tasks != config.tasks:
        line = f"expected those of the measurement, {', '.join(found.tasks)}"
        raise SettingsError(f"tasks: {line}, found {', '.join(config.tasks)}")
    metrics = measured_run(joint, config)
    every, chosen = on_all_data(config), list[Choice]()
    if rates:
        rate, reason = best_rate(config, joint, rates, control)
        every = every.changed(lr=rate, head_lr=rate)
        chosen = [Choice(config.tasks, "lr", f"{rate:g}", reason)]
    sizes, speed = training_sizes(every), metrics["examples_per_second"]
    advice = Proposals(found, every, sizes, speed, joint).advice(tuple(seeds))
    advice = replace(advice, choices=(*chosen, *advice.choices))
    store(advice, folder)
    return advice


def measured_run(joint: Path, config: RunConfig) -> Mapping[str, Any]:
    """Return the metrics of the joint run; raise RunError if it has not this configuration."""
    metrics, stored = RunFolder(joint).metrics(), RunFolder(joint).settings_if_any()
    if metrics is None or stored is None:
        raise RunError(f"{joint}: expected the joint run of the measurement, found none")
    if found := difference(joint_config(config).to_json(), stored, OF_THE_RUN):
        raise RunError(f"{joint}: expected the configuration of the measurement, found: {found}")
    return metrics


def advice_faults(config: RunConfig, rates: Sequence[float]) -> Iterator[str]:
    """Yield a line for each setting that the advice chooses itself, with `rates` also their own."""
    if rates and "head_lr" in config.given:
        found = config.given["head_lr"]
        yield f"head_lr: expected none with rates, which the heads have too, found {found}"
    if rates and config.protocol.name not in ("files", "held-out"):
        line = "expected files or held-out with rates, which are chosen on held-out examples"
        yield f"protocol: {line}, found {config.protocol.name}"
    bare = {"mode": "multitask", "tasks": config.tasks, "own_tasks": config.own_tasks}
    plain = RunConfig.from_flat(bare, config.user_methods).flat()
    for key, value in config.flat().items():
        if key in CHOSEN and key in config.given and value != plain[key]:
            yield f"{key}: expected its default, because the advice chooses it, found {value}"


def store(advice: Advice, folder: Path) -> None:
    """Write the advice and the settings of its runs.

    Raise RunError if runs of another advice are in the folder: their promises would be lost.
    """
    file, content = folder / f"{ADVICE}.json", advice.to_json()
    if (trained := paths_in(folder / ADVISED)) and seal_of(content) != stored_seal(file):
        line = "expected no runs of another or an older advice, whose promises would be lost"
        raise RunError(f"{trained[0]}: {line}; choose another --output, or move {ADVISED} away")
    remove(folder / ADVICE, ignore_errors=True)
    (folder / ADVICE).mkdir()
    for run in advice.runs:
        write_json(run.settings_file(folder), run.config.to_json())
    write_sealed(file, content)


def check_stored(folder: Path, estimator: str) -> None:
    """Raise RunError if a folder has runs of an advice by another estimator."""
    file = folder / f"{ADVICE}.json"
    if paths_in(folder / ADVISED) and file.exists():
        stored = read_json(file, RunError).get("estimator")
        if stored != estimator:
            line = f"expected advice by {estimator}, found runs advised by {stored}"
            raise RunError(f"{file}: {line}; go on with --estimator {stored}, or move them away")


def stored_seal(file: Path) -> str | None:
    """Return the checksum of the content of a stored advice; None without one."""
    return seal_of(read_json(file, RunError)) if file.exists() else None


def best_rate(
    config: RunConfig, joint: Path, rates: Sequence[float], control: RunControl
) -> tuple[float, str]:
    """Return the rate with the highest dev score after a short joint run, and the reason.

    The runs stand beside the `joint` run that was measured. Finished ones are kept, and an
    unfinished one is continued.
    """
    from multitask.config_tasks import plain_tasks
    from multitask.loop.evaluation import selection_score
    from multitask.precision import of_first_run
    from multitask.run import complete

    held_out = joint_config(config).changed(protocol="held-out", dev_limit=None)
    held_out = of_first_run(joint, held_out, overwrite=False)
    scores, control = dict[float, float](), replace(control, resume=not control.overwrite)
    for rate in dict.fromkeys(rates):
        one = held_out.changed(lr=rate, head_lr=rate)
        metrics = complete(one, joint.parent / f"{RATE}{rate:g}", control)
        dev = {task: metrics["dev"][task] for task in config.tasks}
        scores[rate] = selection_score(dev, plain_tasks(one))
    shown = ", ".join(f"{score:.3f} with {rate:g}" for rate, score in scores.items())
    reason = f"mean dev score of short joint runs on held-out training examples: {shown}"
    return max(scores, key=lambda rate: scores[rate]), reason


def training_sizes(config: RunConfig) -> dict[str, int]:
    """Return the number of training examples of each task."""
    from multitask.config_tasks import plain_tasks

    data = data_folder(config.data)
    return {name: len(task.read(data, "train").ids) for name, task in plain_tasks(config).items()}
