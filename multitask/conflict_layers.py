"""The layers in which tasks conflict, by the steps of a run: those of `conflict_layers`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from common.errors import RunError, SettingsError
from minbert.config import BiLSTMConfig, transformer_config
from multitask.loop.telemetry import read_steps
from multitask.model import LAYER
from multitask.settings.config import RunConfig
from multitask.storage.run_folder import RunFolder

BUDGET = 1.3  # parameters with `auto`, as a multiple of those of the encoder
ERRORS = 2.0  # standard errors below zero from which a mean cosine counts as a conflict


@dataclass(frozen=True)
class LayerCosine:
    """Mean cosine of the gradients of tasks in a layer, counted from 1, over measured steps."""

    layer: int
    mean: float
    error: float  # standard error of the mean
    steps: int

    @property
    def conflicts(self) -> bool:
        """Whether the mean is significantly below 0."""
        return self.mean + ERRORS * self.error < 0


def layer_cosines(
    steps: Iterable[Mapping[str, Any]], tasks: Collection[str], only: Collection[str] = ()
) -> list[LayerCosine]:
    """Return the cosines of each layer between pairs of `tasks`, the lowest mean first.

    `steps` are lines of the telemetry. The cosines of a step are averaged over the pairs of tasks
    of which at least one is in `only` (default: all tasks), then over the steps.
    """
    chosen, found = set(only or tasks), dict[int, list[float]]()
    for line in steps:
        for name, pairs in line.get("layers", {}).items():
            relevant = [c for pair, c in pairs.items() if separates(pair, tasks, chosen)]
            if name.startswith(LAYER) and relevant:
                layer = int(name.removeprefix(LAYER))
                found.setdefault(layer, []).append(float(np.mean(relevant)))
    several = {layer: np.array(values) for layer, values in found.items()}
    result = [
        LayerCosine(layer, float(v.mean()), float(v.std(ddof=1) / len(v) ** 0.5), len(v))
        for layer, v in several.items()
        if len(v) > 1
    ]
    return sorted(result, key=lambda one: (one.mean, one.layer))


def separates(pair: str, tasks: Collection[str], chosen: Collection[str]) -> bool:
    """Return whether adapters of `chosen` tasks would separate two objectives, `a and b`.

    Both must be objectives of `tasks`.
    """
    two = {objective.partition("/")[0] for objective in pair.split(" and ")}
    return len(two) == 2 and two <= {*tasks} and not two.isdisjoint(chosen)


def with_conflict_layers(
    config: RunConfig, stored: Mapping[str, Any] | None = None
) -> tuple[RunConfig, str | None]:
    """Return the configuration with the layers of `conflict_layers`, and a line about the choice.

    The line is None without this setting, and if a `stored` run of this configuration has these
    layers. Its layers are kept if the run in `init` is gone, or its weights. Raise RunError if the
    run in `init` measured no gradients of several tasks, or if no layer conflicts significantly
    (`auto`), and SettingsError for more layers than the encoder or the budget has.
    """
    adapter = config.adapter
    if adapter is None or adapter.conflict_layers is None:
        return config, None
    kept = tuple((stored or {}).get("adapter_layers") or ())
    start = RunFolder(Path(str(config.init)))
    file, gone = start.steps, not (start.steps.exists() and start.best.exists())
    if kept and gone and adapter.conflict_layers in ("auto", len(kept)):
        return with_layers(config, kept), None
    cosines = start_cosines(config)
    if not cosines:
        expected = f"expected cosines by layer between {', '.join(config.tasks)}, found none"
        hint = "a run with several tasks in a step measures them; --adapter-layers names the layers"
        raise RunError(f"{file}: {expected}; {hint}")
    chosen = chosen_layers(config, adapter.conflict_layers, cosines, file)
    numbers = tuple(sorted(one.layer for one in chosen))
    if numbers == kept:
        return with_layers(config, numbers), None
    line = f"adapters in {len(numbers)} of {len(cosines)} layers, by the mean cosine of gradients: "
    line += ", ".join(f"layer {one.layer} {described(one)}" for one in chosen)
    return with_layers(config, numbers), line


def chosen_layers(
    config: RunConfig, wanted: Literal["auto"] | int, cosines: list[LayerCosine], file: Path
) -> list[LayerCosine]:
    """Return the layers that `conflict_layers` asks for, of those in order of their mean cosine.

    Raise RunError or SettingsError as `with_conflict_layers` does; `file` holds the cosines.
    """
    if wanted == "auto":
        layers = affordable(config, [one.layer for one in cosines if one.conflicts])
        chosen = [one for one in cosines if one.layer in layers]
    elif wanted <= len(cosines):
        chosen = cosines[:wanted]
    else:
        expected = f"at most {len(cosines)}, the number of measured layers"
        raise SettingsError(f"adapter_conflict_layers: expected {expected}, found {wanted}")
    if not chosen and cosines[0].conflicts:
        ratio = parameter_ratio(config, (cosines[0].layer,))
        raise SettingsError(
            f"adapter_conflict_layers: expected at most {BUDGET:g} times the parameters, found "
            f"{ratio:.2f} times with only layer {cosines[0].layer}; --adapter-only NAME of fewer "
            "tasks needs fewer"
        )
    if not chosen:
        raise RunError(
            f"{file}: expected a layer whose gradients conflict significantly, found none (lowest "
            f"mean cosine: {described(cosines[0])}); --adapter-layers names the layers"
        )
    return chosen


def with_layers(config: RunConfig, layers: tuple[int, ...]) -> RunConfig:
    """Return the configuration with adapters in these layers."""
    assert config.adapter is not None
    return config.changed(adapter=replace(config.adapter, layers=layers, conflict_layers=None))


def start_cosines(config: RunConfig) -> list[LayerCosine]:
    """Return the cosines by layer of the run in `init`, empty if it measured none."""
    file = RunFolder(Path(str(config.init))).steps
    only = config.adapter.only if config.adapter is not None else ()
    return layer_cosines(read_steps(file), config.tasks, only) if file.exists() else []


def described(one: LayerCosine) -> str:
    return f"{one.mean:+.4f} ± {one.error:.4f} in {one.steps} steps"


def affordable(config: RunConfig, layers: Iterable[int]) -> list[int]:
    """Return those of the layers, the first ones first, whose adapters fit into `BUDGET`."""
    chosen: list[int] = []
    for layer in layers:
        if parameter_ratio(config, (*chosen, layer)) <= BUDGET:
            chosen.append(layer)
    return chosen


def parameter_ratio(config: RunConfig, layers: tuple[int, ...]) -> float:
    """Return the parameters with adapters in these layers, divided by those of the encoder.

    Shared layers that no task uses any more are not counted. Raise SettingsError for a BiLSTM.
    """
    import torch

    from minbert.encoder import Encoder
    from minbert.folder import read_config
    from multitask.task_modules import count_parameters

    adapter = config.adapter
    assert adapter is not None
    read = read_config(RunFolder(Path(str(config.init))).weights())
    encoder_config = transformer_config(f"adapter {adapter.name}", read)
    with torch.device("meta"):
        encoder = Encoder(encoder_config)
        built = replace(adapter, layers=layers, conflict_layers=None).build(encoder_config)
    tasks = adapter.only or config.tasks
    whole, more = count_parameters(encoder), count_parameters(built) * len(tasks)
    if set(tasks) == set(config.tasks):
        kept = {id(layer) for layer in built.in_place_of(encoder.layers)}
        more -= sum(count_parameters(one) for one in encoder.layers if id(one) not in kept)
    return (whole + more) / whole


def is_bilstm(run: Path) -> bool:
    """Return whether the encoder of a run is a BiLSTM, which has no adapters."""
    from minbert.folder import read_config

    return isinstance(read_config(RunFolder(run).weights()), BiLSTMConfig)
