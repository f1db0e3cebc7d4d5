"""The papers whose tables can be reproduced: the module of each, and what readers have to know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from common.errors import SettingsError

# Table -> the module that makes it; below, the precisions and notes of their own.
TABLES = {
    "bees": "studies.bees.reproduce",
    "best": "studies.best",
    "scl-moo": "studies.scl_moo.reproduce",
    "supercontext": "studies.supercontext.reproduce",
    "lacon": "studies.lacon.reproduce",
}
SHOWN_ROWS = 40  # in a message
PRECISION = {"bees": "bf16"}  # fp32 of the others
BY_BEGINNING = ("scl-moo", "supercontext", "lacon")  # whose rows are named by how they begin
PAPERS = {
    "bees": "the paper's is bert-base-uncased on 283,010 pairs of Quora. The best epoch was chosen "
    "on the dev set that is reported, by the paper as by us. With --limit N tasks are equally "
    "large, so that sampling by size is uniform, and claims about mixtures are not tested fairly.",
    "best": "settings drawn from the trials in results/; Quora's figures are flattered, for the "
    "encoder's own training data holds duplicates of Quora.",
    "scl-moo": "the paper's is roberta-base, and does not tell its numbers of epochs. Nothing was "
    "chosen on test. The claims are not tested fairly: few-shot runs have 30 steps on [CLS] of an "
    "encoder that averages its tokens (minilm), and on all data only LS and EPO have batches "
    "balanced by class.",
    "supercontext": "a tenth of train, --dev-limit of it at most, is dev; test is the files' dev, "
    "of reviews the published test file or a fixed share. Texts of dev and test are left out of "
    "train. The claims are not tested fairly with few texts, without GloVe's vectors, and with "
    "nothing tuned.",
    "lacon": "training examples are counted a class; the files' dev is test, or a published test "
    "file with labels. minilm's own training data, as it is published, holds Quora's duplicates, "
    "AllNLI and SQuAD: its figures of QQP, MNLI and QNLI are flattered. Tasks at the level of "
    "chance or of their most frequent class do not test the claims fairly.",
}


def check_asked(asked: Mapping[str, Any], names: Sequence[str]) -> None:
    """SettingsError for rows that a table does not have, and for what only other tables take."""
    table, limit = asked["table"], asked["limit"]
    begins = table in BY_BEGINNING
    for row in asked["rows"] or ():
        if row not in names and not (begins and any(name.startswith(row) for name in names)):
            some = ", ".join(names[:SHOWN_ROWS]) + (", ..." if len(names) > SHOWN_ROWS else "")
            what = "how some of these begin:" if begins else "some of"
            raise SettingsError(f"rows: expected {what} {some}; found {row}")
    if limit is not None and table == "lacon" and not isinstance(limit, int):
        raise SettingsError(f"limit: expected examples of a class with lacon, found {limit}")
    if asked["rows"] and asked["further"]:
        raise SettingsError("rows and further: expected at most one of them")
    if asked["seeds"] and table == "best":
        raise SettingsError("seeds: expected another table than best, which has seeds of its own")
    for key, only in (
        ("further", "bees"),
        ("dev_limit", "supercontext"),
        ("vectors", "supercontext"),
    ):
        if asked[key] and table != only:
            raise SettingsError(f"{key}: expected --table {only}, found {table}")


def notes(
    table: str, encoder: str, limit: int | float | None, epochs: int | None, precision: str
) -> str:
    """What a reader has to know before setting the figures side by side."""
    of = "a class" if table == "lacon" else "a task"
    shown = "all training data"
    if limit is not None:
        many = f"{limit:,}" if isinstance(limit, int) else f"a share of {limit:g} of the"
        shown = f"{many} training examples of {of}"
    elif table == "lacon":
        shown = (
            "at most 5,000 training examples a class of two, 1,000 a class of more, all of MRPC, "
            "RTE and CoLA"
        )
    counted = f"{epochs} epochs" if epochs else "the numbers of epochs named by the study"
    return f"Ours: encoder {encoder}, {shown}, {counted}, {precision}; {PAPERS[table]}"


def command(asked: Mapping[str, Any]) -> str:
    """The command as a reader would repeat it, with data of his own."""
    parts = ["python run.py --mode reproduce --table", asked["table"], "--data DIR"]
    parts += ["--rows", *asked["rows"]] if asked["rows"] else []
    parts += ["--further"] if asked["further"] else []
    for name in ("seeds", "limit", "dev_limit", "epochs", "lr", "encoder", "precision"):
        value = asked[name]
        flag = name.replace("_", "-")
        parts += [f"--{flag} {value}"] if value is not None else []
    parts += ["--vectors FILE"] if asked["vectors"] else []
    return " ".join(parts)
