"""Everything that decides what a run computes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Container, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, get_type_hints

from minbert.errors import UserError
from minbert.typed import fits
from tasks import TASK_NAMES, OwnTasks
from tasks.described import from_json
from tasks.settings import ObjectiveSettings

PLACES = ("data", "init", "nli", "text")  # settings that are files or folders
TERM_WEIGHTS = ("smart_weight", "proximal_weight", "r_drop_weight")  # of regularisers, by task


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
    limit: int | None = None
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
    first_task: str | None = None  # of first-then-joint; None for the largest
    first_epochs: int = 1  # of first-then-joint and the hybrid sampler
    similarity_scale: float = 1.0  # squared errors of similarities are of labels from 0 to it
    batches_per_step: int = 1
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

    @property
    def has_first_epochs(self) -> bool:
        """Whether one task has the first epochs to itself."""
        return self.sampling == "hybrid" or self.schedule == "first-then-joint"

    def to_json(self) -> dict[str, object]:
        return json.loads(json.dumps(asdict(self)))

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> RunConfig:
        """What `to_json` wrote; a key that an older one lacks has its default.

        Raises UserError for a key that is none of a configuration, and for what is no value of it.
        """
        known = {field.name for field in fields(cls)}
        for key in content:
            if key not in known:
                raise UserError(f"expected the settings of a run, found {key!r}")
        check_settings(content)
        # JSON has lists alone.
        values: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value
            for key, value in content.items()
        }
        return cls(**values)

    def digest(self) -> str:
        """A short hash of what differs from the defaults: a new setting renames no old run."""
        plain = default_values()
        differs = {key: value for key, value in self.to_json().items() if value != plain[key]}
        return hashlib.sha256(json.dumps(differs, sort_keys=True).encode()).hexdigest()[:8]

    def difference(self, other: Mapping[str, object]) -> str | None:
        """The first key in which `other`, a configuration read from JSON, differs; None if none."""
        return difference(self.to_json(), other)


def check_settings(content: Mapping[str, Any]) -> None:
    """UserError for a stored configuration with tasks that there are none of, or values of a kind
    that its settings never have.

    A run's folder may come from elsewhere, and its tasks' names are parts of files' names.
    """
    tasks = content.get("tasks")
    own = content.get("own_tasks", {})
    if not fits(own, Mapping[str, Mapping[str, Any]]):
        raise UserError(f"own_tasks: expected descriptions, found {str(own)[:60]!r}")
    for name, described in own.items():
        from_json(name, described)
    known = (*TASK_NAMES, *own)
    if not isinstance(tasks, list) or not all(name in known for name in tasks):
        raise UserError(f"tasks: expected names of tasks, found {str(tasks)[:60]!r}")
    hints = get_type_hints(RunConfig)
    for key, value in content.items():
        if key in hints and not fits(value, hints[key]):
            raise UserError(f"{key}: expected another kind of value, found {str(value)[:60]!r}")


def difference(
    mine: Mapping[str, object], theirs: Mapping[str, object], ignored: Container[str] = ()
) -> str | None:
    """The first key in which two configurations as JSON differ; None if none.

    A key that an older configuration lacks has its default.
    """
    mine, theirs = {**default_values(), **mine}, {**default_values(), **theirs}
    for key in sorted(mine.keys() | theirs.keys()):
        if key not in ignored and mine.get(key) != theirs.get(key):
            return f"{key} is {theirs.get(key)!r} there and {mine.get(key)!r} here"
    return None


def default_values() -> dict[str, object]:
    """The defaults as JSON; mode and tasks, which have none, are empty."""
    return RunConfig(mode="", tasks=()).to_json()
