"""Everything that decides what a run computes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Container, Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from functools import cache
from typing import Any, get_type_hints

from minbert.errors import UserError
from multitask.errors import RunError, SettingsError
from multitask.rules import ROUNDING, faults
from multitask.values import value_faults
from tasks import TASK_NAMES, OwnTasks
from tasks.described import from_json
from tasks.settings import ObjectiveSettings

PLACES = ("data", "init", "nli", "text")  # settings that are files or folders
SEQUENCES = ("tasks", "preference", "loss_sizes", "scl_preference", "label_terms")
TRAINED = ("single", "multitask", "pretrain", "pareto")


@dataclass(frozen=True)
class RunConfig:
    """One training run, complete: the same configuration computes the same run.

    Defaults: the learning rates are those that suited all-MiniLM-L6-v2 in our trials (results/,
    chosen on STS dev); BEES fine-tunes BERT base at 2e-5. Weight decay is BEES' (section 5.3);
    warm-up and clipping are usual. `task_options` holds the options of each task's maker.
    """

    mode: str
    tasks: tuple[str, ...]
    task_options: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    own_tasks: OwnTasks = field(default_factory=dict)  # see tasks/described.py
    data: str = "sample"
    # Training examples of each task, drawn at random, or a share of them below 1; or by task.
    limit: int | float | Mapping[str, int | float] | None = None
    dev_limit: int | None = None
    # Or another one of `PROTOCOLS` in tasks/protocols.py.
    protocol: str = "files"
    shots: int | None = None  # of few-shot: labelled examples in all; of the others a class
    imbalance: float | None = None  # the most frequent class over the rarest
    drop_leaks: bool = False  # training examples that are in dev or test
    leaks_of: str = "all"  # or "own": dev and test of the CS224N tasks, too, or of the task alone
    encoder: str = "minilm"  # with `init`, the encoder that run began from
    pooling: str | None = None
    init: str | None = None
    freeze_encoder: bool = False
    probe_epochs: int = 0  # of the heads alone, before the encoder moves
    # Of pre-training, whose `tasks` are where its text comes from; in other modes of the tasks with
    # classes, None for their own loss.
    objective: str | None = None
    nli: str | None = None  # file of entailment pairs
    text: str | None = None  # file of sentences or pairs without labels, in columns of these names
    text_column: str | None = None
    other_column: str | None = None  # of pairs
    projection: bool = False  # a layer between embeddings and objective, in training only
    contrast_temperature: float = 0.05  # of SimCSE (Gao et al., 2021, section 3)
    margin: float = 0.5  # of the triplet objectives, in cosines or, of classes, in distances
    # Of pre-training on the classes of tasks (SuperConText).
    projection_head: str = "none"  # or "linear", "nonlinear": in training only
    super_loss: str = "algorithm1"  # or "equation8"
    positives: int | None = None  # of an anchor, at most, and negatives
    negatives: int | None = None
    hard_negatives: Mapping[str, float] = field(default_factory=dict)  # top_k, threshold, ...
    hard_after: int = 0  # epochs with all negatives
    # Of the contrastive terms beside cross-entropy: see tasks/settings.py.
    scl_temperature: float = ObjectiveSettings.temperature
    scl_weight: float = ObjectiveSettings.weight
    scl_preference: tuple[float, float] = ObjectiveSettings.preference
    scl_inputs: str = "contrastive"  # of EPO: pull and push, or "combined" with cross-entropy
    # Of LaCon and other objectives with embeddings of labels.
    label_temperature: float = ObjectiveSettings.label_temperature
    label_heads: int | None = ObjectiveSettings.label_heads
    label_spread: float = ObjectiveSettings.label_spread
    label_terms: tuple[str, ...] = ObjectiveSettings.label_terms
    label_start: str = "random"  # or "names": the embeddings of the classes' names
    projection_layers: int = ObjectiveSettings.projection_layers
    per_class: bool = False  # batches of as many examples of each class
    sampling: str = "round-robin"
    temperature: float = 5.0  # of the sampler of that name (Arivazhagan et al., 2019)
    size_cap: int | None = None
    schedule: str = "joint"
    # Of first-then-joint and the hybrid sampler: None for the largest, before any limit.
    first_task: str | None = None
    first_epochs: int = 1  # of first-then-joint and the hybrid sampler
    similarity_scale: float = 1.0  # squared errors of similarities are of labels from 0 to it
    batches_per_step: int | None = None  # None: as many as there are tasks; see `step_batches`
    micro_batch: int | None = None  # examples that go through the model at a time
    combiner: str = "sum"
    preference: tuple[float, ...] | None = None  # a weight an objective, adding up to 1
    loss_sizes: tuple[float, ...] | None = None  # what each objective is divided by for it
    cones: int = 5  # of Pareto MTL (Lin et al., 2019, section 5)
    gradients: str = "parameters"
    smart_weight: Mapping[str, float] = field(default_factory=dict)  # a task
    smart_steps: int = 1
    # Shares of the norm of the vectors that the noise is added to: see regularizers/smart.py. A
    # normalised step is 1e-3 times the gradient instead, and its noise has norm 1 by default, as in
    # public implementations.
    smart_step_size: float | None = None
    smart_radius: float | None = None
    smart_place: str = "embeddings"  # the module's output; or "words", before its LayerNorm
    smart_norm: str = "inf"
    smart_variant: str = "normalised"
    smart_dropout: str = "fixed"  # or "fresh"
    proximal_weight: Mapping[str, float] = field(default_factory=dict)  # a task
    proximal_momentum: float = 0.99  # as SMART's in the first tenth of a run
    r_drop_weight: Mapping[str, float] = field(default_factory=dict)  # a task
    epochs: int = 3
    steps_per_epoch: int | None = None
    batch_size: int = 16
    lr: float = 1e-4
    head_lr: float = 1e-4
    weight_decay: float = 0.01
    warmup: float = 0.1
    clip: float = 1.0
    evaluate_every: int = 1  # epochs from one evaluation and checkpoint to the next
    patience: int | None = None
    select_by: str | None = None  # metric that selects the best epoch; None for a task's main one
    keep: str = "best"  # or "last": which epoch's weights are used
    measured_examples: int = 0  # training examples a task whose loss is measured at the end
    seed: int = 11711
    precision: str = "fp32"
    linear: str = "auto"  # a run's config.json holds what was chosen
    device: str = "auto"

    def __post_init__(self) -> None:
        """Check every value, and all of them together; SettingsError names the first fault."""
        for name in SEQUENCES:
            if isinstance(value := getattr(self, name), list):
                object.__setattr__(self, name, tuple(value))
        for fault in value_faults(vars(self), type_hints()):
            raise SettingsError(fault)
        for name, described in self.own_tasks.items():
            try:
                from_json(name, described)
            except UserError as error:
                raise SettingsError(str(error)) from error
        for fault in faults(self, defaults()):
            raise SettingsError(fault)
        if self.preference is not None and abs(sum(self.preference) - 1) > ROUNDING:
            total = sum(self.preference)
            object.__setattr__(self, "preference", tuple(w / total for w in self.preference))

    @property
    def step_batches(self) -> int:
        """Batches of one optimiser step: one of each task, unless the configuration says other."""
        return self.batches_per_step or step_batches(vars(self))

    def to_json(self) -> dict[str, object]:
        """Every setting as JSON; batches per step as the number that the run takes."""
        return json.loads(json.dumps(asdict(self) | {"batches_per_step": self.step_batches}))

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> RunConfig:
        """What `to_json` wrote; a key that an older one lacks has its default.

        Raises RunError for a key that is none of a configuration, and for what is no value of it.
        How settings go together is not judged again: a run that was made can be used.
        """
        known = {field.name for field in fields(cls)}
        for key in content:
            if key not in known:
                raise RunError(f"expected the settings of a run, found {key!r}")
        for name in ("mode", "tasks"):
            if name not in content:
                raise RunError(f"{name}: expected it among the settings of a run, found none")
        values = defaults() | as_now(content)
        check_settings(values)
        made = object.__new__(cls)
        for name, value in values.items():
            sequence = name in SEQUENCES and value is not None
            object.__setattr__(made, name, tuple(value) if sequence else value)
        return made

    def digest(self) -> str:
        """A short hash of what differs from the defaults: a new setting renames no old run."""
        plain = default_values()
        differs = {key: value for key, value in self.to_json().items() if value != plain[key]}
        return hashlib.sha256(json.dumps(differs, sort_keys=True).encode()).hexdigest()[:8]

    def difference(self, other: Mapping[str, object]) -> str | None:
        """The first key in which `other`, a configuration read from JSON, differs; None if none."""
        return difference(self.to_json(), other)


def step_batches(settings: Mapping[str, Any]) -> int:
    """Batches of a step where nothing else is set: one of each task that it may train."""
    alone = settings.get("schedule") == "individual" or settings["mode"] == "pretrain"
    return 1 if alone else max(1, len(settings["tasks"]))


def check_settings(content: Mapping[str, Any]) -> None:
    """RunError for a stored configuration with a value that its setting cannot have.

    A run's folder may come from elsewhere, and its tasks' names are parts of files' names. Keys of
    other programs are left to the caller.
    """
    for fault in value_faults(content, type_hints()):
        raise RunError(fault)
    own = content.get("own_tasks", {})
    for name, described in own.items():
        from_json(name, described)
    for name in content.get("tasks", ()):
        if name not in (*TASK_NAMES, *own):
            raise RunError(f"tasks: expected names of tasks, found {name!r}")


def check_complete(config: RunConfig) -> None:
    """SettingsError for a configuration that others are made from: without a mode or tasks."""
    if config.mode not in TRAINED:
        raise SettingsError(
            f"mode: expected one of {', '.join(TRAINED)}, found {config.mode or 'none'}"
        )
    if config.mode == "pretrain" and config.objective is None:
        raise SettingsError("objective: expected one in mode pretrain, found none")
    if not config.tasks and config.text is None and config.nli is None:
        raise SettingsError("tasks: expected one or more, found none")


def difference(
    mine: Mapping[str, object], theirs: Mapping[str, object], ignored: Container[str] = ()
) -> str | None:
    """The first key in which two configurations as JSON differ; None if none.

    A key that an older configuration lacks has its default, or what older versions did.
    """
    mine, theirs = ({**default_values(), **as_now(one)} for one in (mine, theirs))
    for key in sorted(mine.keys() | theirs.keys()):
        if key not in ignored and mine.get(key) != theirs.get(key):
            return f"{key} is {theirs.get(key)!r} there and {mine.get(key)!r} here"
    return None


def as_now(content: Mapping[str, Any]) -> dict[str, Any]:
    """A stored configuration with what its version did where a setting's default has changed.

    SMART's noise was added to the word embeddings, and its radius and step were no shares.
    """
    weights = content.get("smart_weight")
    if not weights or "smart_place" in content:
        return dict(content)
    lengths = ("smart_radius", "smart_step_size")
    return {k: v for k, v in content.items() if k not in lengths} | {"smart_place": "words"}


@cache
def type_hints() -> dict[str, Any]:
    """The type of each setting."""
    return get_type_hints(RunConfig)


@cache
def defaults() -> dict[str, Any]:
    """The default of each setting; mode and tasks have none."""
    plain = {one.name: one.default for one in fields(RunConfig) if one.default is not MISSING}
    made = {one.name: one.default_factory for one in fields(RunConfig)}
    return plain | {name: make() for name, make in made.items() if make is not MISSING}


def default_values() -> dict[str, object]:
    """The defaults as JSON; mode and tasks, which have none, are empty."""
    return RunConfig(mode="", tasks=()).to_json()
