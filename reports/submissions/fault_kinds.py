"""The faults that `--mode evaluate --diagnose` finds, with usual causes and cures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

Faults = Iterator[tuple[str, str]]  # pairs of a kind of `KINDS` and the evidence of a fault


@dataclass(frozen=True)
class FaultKind:
    """What a finding means: its title, the usual cause, and the cure."""

    title: str
    cause: str
    cure: str


KINDS = {
    "no header": FaultKind(
        "no header of a prediction file",
        "the program stopped before it wrote, or the header is missing or has other names",
        "write `id` and a name that begins with `Predicted` in the first line, such as "
        "`id \\t Predicted_Sentiment \\n`",
    ),
    "unreadable": FaultKind(
        "rows without a value",
        "the loss became NaN in training, or lists and texts were written",
        "look for NaN in the training loss; write `value.item()`, one number per row",
    ),
    "printed tensors": FaultKind(
        "tensors in place of numbers",
        "the tensor itself was written",
        "write `value.item()`, or `.tolist()` of all values",
    ),
    "repeated ids": FaultKind(
        "ids that occur again",
        "the file was opened for appending, or an evaluation loop ran twice",
        'open the file with "w"; collect ids and predictions anew for each split',
    ),
    "ids of another split": FaultKind(
        "ids of another split of the data",
        "the wrong data loader was evaluated, or the file has the wrong name",
        "evaluate the split that the file name says, or name the file after the split it is of",
    ),
    "ids of other data": FaultKind(
        "ids that are not in the data",
        "--data is missing, so that the bundled sample is read, or it names another folder or "
        "another year's version than the one that was predicted",
        "give --data the folder with the files that were predicted",
    ),
    "missing ids": FaultKind(
        "only some ids of the split",
        "the loader drops the last batch, or training examples were limited and dev with them",
        "set drop_last=False and no limit for dev and test; --subset scores the ids that are there",
    ),
    "test equals dev": FaultKind(
        "test file with the dev ids",
        "both files were written from the dev loader, or one was copied",
        "write the test file from the test split",
    ),
    "format": FaultKind(
        "not the leaderboard's format",
        "another program or another year's course wrote the file, Windows changed the ends of "
        "lines, or values are 1 or True in place of 1.0",
        "write header, rows and values as a run of this program does; if your course asks for "
        "another format, keep it",
    ),
    "single class": FaultKind(
        "one class for all",
        "too few training steps, a learning rate too high, or a loss on wrong shapes",
        "train on more examples, or lower the learning rate (2e-5 for the encoder); check that the "
        "training loss falls",
    ),
    "majority": FaultKind(
        "not above the majority class",
        "the model learned nothing, ids and predictions are in a different order, or the data are "
        "imbalanced and the threshold is off",
        "write each id with the prediction of the same batch; do not shuffle; check the training "
        "accuracy",
    ),
    "one class off": FaultKind(
        "classes shifted by one",
        "labels counted from 1 in training or in writing, and from 0 here",
        "use the labels of the file without change; write argmax itself; until then the score "
        "counts the file as it stands",
    ),
    "classes swapped": FaultKind(
        "classes swapped",
        "the other logit was thresholded, or labels were inverted in training",
        "predict class 1 where the probability of class 1 is above one half",
    ),
    "no class": FaultKind(
        "values that are no class",
        "tokens, names or numbers of types were written in place of classes",
        "write the number of the class; for paraphrase types, 0 or 1 per type",
    ),
    "probabilities": FaultKind(
        "probabilities or logits in place of classes",
        "sigmoid, softmax or the logits were written without argmax or a threshold",
        "write argmax (several classes) or `probability > 0.5` (two classes)",
    ),
    "constant": FaultKind(
        "the same similarity for all",
        "a saturated or dead activation, or a collapsed encoder",
        "remove the activation after the last layer; lower the learning rate",
    ),
    "scale": FaultKind(
        "similarities on another scale",
        "a cosine (-1 to 1), a sigmoid (0 to 1) or an unbounded output was not mapped to 0 to 5",
        "multiply by 5, after (cosine + 1) / 2 or ReLU; Pearson's correlation stays nearly the "
        "same, thresholds and averages with other models do not",
    ),
    "rounded": FaultKind(
        "rounded similarities",
        "argmax of six classes, `.round()`, `int()` or integer labels in training",
        "write the real number; read labels as floats",
    ),
    "anti-correlated": FaultKind(
        "similarity falls where it should rise",
        "a distance was written, or the sign of the loss is wrong",
        "write minus the distance or the cosine itself; check the sign of the loss",
    ),
    "uncorrelated": FaultKind(
        "similarities unrelated to the labels",
        "the model learned nothing, or ids and predictions are in a different order",
        "write each id with the prediction of the same batch; do not shuffle",
    ),
    "trained on dev": FaultKind(
        "too good to be true",
        "dev examples are among the training examples, or the labels themselves were written",
        "train on the training file only; look for texts of dev in train",
    ),
}
