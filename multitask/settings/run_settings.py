"""The settings of a run with their defaults and sources."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta

from common.settings import Count, Name, Part, Positive, Seed, Settings, setting
from losses.objectives import TrainingObjective
from minbert.config import Device, Pooling, PrecisionSetting, Tokens
from multitask.combiners import Combiner
from multitask.combiners.loss_weights import Sum
from multitask.optimizer import AdamW
from multitask.regularizers import Regularizer
from multitask.sampling import Joint, RoundRobin, Sampler, Schedule
from tasks import SAMPLE, TaskOptions
from tasks.protocols import Protocol

# The settings of papers, which change the defaults of a run.
PRESETS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("presets.toml").read_text("utf-8"))
TRAINING_MODES = ("single", "multitask", "pretrain")
# The property `modes` of a setting: the modes that have it. Without it, all training modes have it.
SUPERVISED = ("single", "multitask")
Limit = Count | Part
TopLayers = Annotated[str, Meta(pattern="^top-[1-9][0-9]?$", description="such as top-2")]
Smoothing = Annotated[float, Meta(ge=0, lt=1)]  # also the probability of a dropout


class RunSettings(Settings):
    """Every setting of a run. A field with a method, such as `combiner`, holds its object."""

    mode: Literal["", "single", "multitask", "pretrain", "probe", "ensemble"] = setting(
        "", help="what is trained (default: it follows from tasks and objective)", flag=False
    )
    tasks: Mapping[str, TaskOptions] = setting(
        factory=dict,
        help="tasks with their options: names, mappings or objects; on the command line, --task, "
        "--tasks, --data-file and --TASK-OPTION",
        group="tasks",
        flag=False,
    )
    data: Name = setting(
        SAMPLE, help="folder with the data files", metavar="DIR", group="data", common=True
    )
    limit: Limit | Mapping[str, Limit] | None = setting(
        None,
        group="data",
        help="train on N random examples of each task; 0.25: on a quarter; TASK=N: limit one task",
        common=True,
    )
    dev_limit: Count | None = setting(
        None, help="score only N dev examples of each task", group="data"
    )
    test_limit: Count | None = setting(
        None, help="predict only N random test examples of each task", group="data"
    )
    drop_leaks: Literal["all", "own"] | None = setting(
        None,
        group="data",
        help="leave out training examples that are also in dev or test of their task (own), or of "
        "this task, sst, qqp and sts (all) (default: keep them)",
    )
    encoder: Name = setting(
        "minilm",
        metavar="NAME",
        help="minilm, bert-base-uncased, a folder or a hub id; roberta-base; tiny; an id may end "
        "in @REVISION",
        common=True,
    )
    pooling: Pooling | None = setting(
        None,
        help="how tokens become one embedding (default: as in the encoder's folder, else mean)",
    )
    pooling_dropout: Smoothing = setting(
        0.0,
        metavar="P",
        help="dropout of the token vectors before pooling",
        flag=False,
    )
    max_tokens: Tokens | None = setting(
        None, help="longest text in tokens; longer ones are cut (default: as the encoder or --run)"
    )
    init: Name | None = setting(
        None, help="start from the weights of a run", metavar="RUN", common=True
    )
    teacher: tuple[Name, ...] = setting(
        (),
        help="learn from the mean scores of finished runs (distillation)",
        metavar="RUN",
        modes=SUPERVISED,
    )
    freeze_encoder: bool = setting(
        False, help="train only the heads, and the layers of branches", modes=SUPERVISED
    )
    class_balanced: bool = setting(
        False, help="draw batches with equally many examples of each class"
    )
    label_smoothing: Smoothing = setting(
        0.0,
        help="share of the target that cross-entropy spreads over all classes",
        source="Szegedy et al., 2016, section 7",
        modes=SUPERVISED,
        flag=False,
    )
    class_weights: Literal["balanced"] | None = setting(
        None,
        help="weight the loss of each class by 1 / (number of its training examples)",
        source="King and Zeng, 2001",
        modes=SUPERVISED,
    )
    similarity_scale: Positive = setting(
        5.0,
        metavar="X",
        help="compute the squared error of similarities on labels from 0 to X",
        source="BEES, Figure 1",
        modes=SUPERVISED,
        flag=False,
    )
    batches_per_step: Count | None = setting(
        None,
        group="mixing",
        help="batches per step (default: the number of tasks; 1 with schedule individual)",
        modes=("multitask",),
        flag=False,
    )
    micro_batch: Count | None = setting(
        None, help="examples that go through the model at a time, to save memory"
    )
    gradients: Literal["parameters", "representation"] | None = setting(
        None,
        group="mixing",
        help="combine gradients on the encoder's parameters, or on the embeddings of a batch "
        "(default: parameters; with objective epo and one task, the embeddings)",
        modes=SUPERVISED,
    )
    epochs: Count = setting(
        3,
        help="number of epochs (default: 3, Devlin et al., 2019, section 4.1; pretrain: 1)",
        common=True,
    )
    steps_per_epoch: Count | None = setting(
        None,
        help="optimiser steps per epoch (default: one pass over all examples; with round-robin "
        "and hybrid, over the smallest task)",
    )
    batch_size: Count = setting(
        16,
        help="examples per batch (default: 16, Devlin et al., 2019, appendix A.3; pretrain: 64)",
        common=True,
    )
    clip: Positive = setting(
        1.0,
        help="largest norm of a step's gradient",
        metavar="NORM",
        source="code of Devlin et al., 2019",
    )
    evaluate_every: Count = setting(
        1, help="epochs between two evaluations on dev", modes=TRAINING_MODES, flag=False
    )
    patience: Count | None = setting(
        None, help="stop after N epochs without a better dev score", modes=TRAINING_MODES
    )
    keep: Literal["best", "last"] = setting(
        "best", help="epoch whose weights are kept", modes=TRAINING_MODES
    )
    calibrate: bool = setting(
        False,
        help="scale the probabilities of each head with classes by a temperature fitted on dev",
        source="Guo et al., 2017",
        modes=SUPERVISED,
    )
    seed: Seed = setting(11711, help="random seed", common=True)
    precision: PrecisionSetting = setting(
        "auto",
        help="precision of the encoder; auto: bf16 where the device has instructions for it, fp32 "
        "elsewhere and for a BiLSTM",
    )
    device: Device = setting("auto", help="auto, cpu, cuda or cuda:N", metavar="NAME")
    preset: Name | None = setting(
        None, help=f"settings of a paper; {', '.join(PRESETS)}", common=True
    )
    sampling: Sampler = setting(
        factory=RoundRobin,
        help="how the task of the next batch is chosen",
        group="mixing",
        common=True,
        modes=("multitask",),
    )
    schedule: Schedule = setting(
        factory=Joint, help="how many batches make a step", group="mixing", modes=("multitask",)
    )
    combiner: Combiner = setting(
        factory=Sum,
        help="how several gradients become one",
        group="mixing",
        common=True,
        modes=SUPERVISED,
    )
    objective: TrainingObjective | None = setting(None, help="the loss", group="tasks", common=True)
    branch: TopLayers | None = setting(
        None,
        metavar="top-K",
        help="give each task copies of the last K layers, such as top-2",
        modes=SUPERVISED,
        common=True,
    )
    regularizers: tuple[Regularizer, ...] = setting(
        (), help="terms beside the tasks' losses", modes=SUPERVISED, flag=False
    )
    protocol: Protocol = setting(
        factory=Protocol, help="which labelled examples are train, dev and test", group="data"
    )
    optimizer: AdamW = setting(factory=AdamW, help="the optimiser", flag=False)
