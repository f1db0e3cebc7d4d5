"""Names that settings may have where the method itself loads torch, held equal to it by tests."""

from __future__ import annotations

from tasks import CLUE, GLUE, REVIEWS

MODES = ("single", "multitask", "pretrain", "probe", "bilstm", "pareto", "ensemble", "soup")
POOLINGS = ("mean", "cls", "max")
PRECISIONS = ("fp32", "bf16")
KEEPS = ("best", "last")
METRICS = ("accuracy", "f1", "macro_f1", "matthews", "pearson", "spearman")
LINEARS = ("auto", "mkl", "onednn")
GRADIENTS = ("parameters", "representation")
# Options of each task; the first choice is the default.
TASK_OPTIONS: dict[str, dict[str, tuple[str, ...]]] = {
    "sst": {"head": ("hidden", "softmax")},
    "qqp": {"head": ("difference", "concat"), "loss": ("cross-entropy", "with-contrastive")},
    "sts": {"head": ("hidden", "cosine"), "activation": ("relu", "sigmoid", "none")},
    **{name: {} for name in (*GLUE, *CLUE, *REVIEWS)},
}
PAIR_OPTIONS = ("bi", "joint")
# Objectives of a task with these losses, where they are more than the task itself.
TASK_OBJECTIVES: dict[tuple[str, str], tuple[str, ...]] = {
    ("qqp", "with-contrastive"): ("qqp/cross_entropy", "qqp/contrastive")
}
# SMART
NORMS = ("inf", "l2")
VARIANTS = ("normalised", "projected")
PLACES = ("embeddings", "words")
DROPOUTS = ("fixed", "fresh")
# Objectives of tasks with classes, beside their own cross-entropy.
CONTRASTIVE = ("scl", "ls", "epo", "cl")
LACON = ("lacon", "lacon-fusion")
WITH_LABELS = (*LACON, "leam", "lsan")
OBJECTIVES = (*CONTRASTIVE, *WITH_LABELS, "projection")
IN_BATCH = (*CONTRASTIVE, *LACON)  # whose terms compare the examples of a batch
HEADS_ALONE = ("lacon", "projection")  # which make sense with a frozen encoder
OWN_HEADS = (*WITH_LABELS, "projection")
POOLING = ("lacon-fusion", "leam", "lsan")  # which pool tokens themselves
ONE_VECTOR = ("leam", "lsan")  # which have no place for a second text's embedding
INPUTS = ("contrastive", "combined")
LABEL_STARTS = ("random", "names")
TERMS = ("icl", "lcl", "ler")
# Protocols, and those that have a number of examples.
PROTOCOLS = ("files", "few-shot", "held-out", "capped", "few-a-class", "imbalanced")
SHOTS = ("few-shot", "capped", "few-a-class", "imbalanced")
LEAKS = ("all", "own")
# Pre-training
TEXT_OBJECTIVES = ("simcse", "nli", "pairs", "ranking", "triplet")
PAIRS_OF_TEXTS = ("pairs", "ranking", "triplet")
CLASS_OBJECTIVES = ("superloss", "supcon", "class-triplet", "npair")
PROJECTION_HEADS = ("none", "linear", "nonlinear")
SUPER_LOSSES = ("algorithm1", "equation8")
# Settings that only some objectives have, in pre-training and elsewhere.
OBJECTIVE_SETTINGS = {
    "scl_weight": CONTRASTIVE,
    "scl_temperature": CONTRASTIVE,
    "scl_preference": ("ls", "epo"),
    "scl_inputs": ("epo",),
    "label_temperature": LACON,
    "label_heads": LACON,
    "label_spread": LACON,
    "label_terms": LACON,
    "label_start": WITH_LABELS,
    "projection_layers": (*LACON, "projection"),
}
PRETRAINING_SETTINGS = {
    "nli": ("nli",),
    "text": ("simcse", *PAIRS_OF_TEXTS),
    "text_column": ("simcse", *PAIRS_OF_TEXTS),
    "other_column": PAIRS_OF_TEXTS,
    "contrast_temperature": ("simcse", "nli", "pairs", "ranking", "superloss", "supcon"),
    "margin": ("triplet", "class-triplet"),
    "projection": TEXT_OBJECTIVES,
    "projection_head": CLASS_OBJECTIVES,
    "super_loss": ("superloss",),
    "positives": ("superloss",),
    "negatives": ("superloss",),
    "hard_negatives": ("superloss",),
    "hard_after": ("superloss",),
}
