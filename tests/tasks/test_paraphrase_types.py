"""Paraphrase types, several per pair, and the file names of Göttingen's course."""

import csv

import numpy as np
import pytest
import torch
from torch import nn

import multitask
from tasks import build_task
from tasks.kinds import multi_label
from tasks.predictions import read_scores
from tasks.tables import DataError

LIST = "[6, 6, 25, 29, 0]"
PAIR = ["id", "sentence1", "sentence2"]


def write(file, header, rows, mark):
    with file.open("w", newline="") as opened:
        writer = csv.writer(opened, delimiter=mark)
        writer.writerows([header, *rows])


def write_types(folder, label=LIST, count=40):
    rows = [[f"ID{n}", f"a, b {n}", f"b {n}", label] for n in range(count)]
    write(folder / "etpc-paraphrase-train.csv", [*PAIR, "paraphrase_type_ids"], rows, ",")
    file = folder / "etpc-paraphrase-detection-test-student.csv"
    write(file, PAIR, [row[:3] for row in rows[:3]], ",")


def test_lists_of_types_become_labels_and_a_tenth_of_train_is_dev(tmp_path):
    write_types(tmp_path)
    task = build_task("etpc")
    sizes = [len(task.read(tmp_path, split)) for split in ("train", "dev", "test")]
    assert sizes == [36, 4, 3]
    examples = task.read(tmp_path, "train")
    names = [task.kind.class_names[place] for place in np.flatnonzero(examples.targets[0])]
    assert {int(name.removeprefix("type ")) for name in names} == {6, 25, 29}
    assert examples.targets.shape == (36, 26) == (36, task.kind.columns)
    assert examples.texts[0][0].startswith("a , b ")


@pytest.mark.parametrize("label", ["[12]", "[40]", "x"])
def test_a_wrong_type_is_an_error_with_its_line(label, tmp_path):
    write_types(tmp_path, label)
    with pytest.raises(DataError, match="line 2: paraphrase_type_ids: expected a list of types"):
        build_task("etpc").read(tmp_path, "train")


def test_loss_scores_and_metrics_of_several_labels():
    task, kind = build_task("etpc"), build_task("etpc").kind
    logits, targets = torch.randn(5, 26), torch.randint(2, (5, 26)).float()
    probability = logits.sigmoid().numpy()
    gold = targets.numpy()
    expected = -np.mean(np.log(np.where(gold == 1, probability, 1 - probability)))
    losses = task.compute_losses(logits, (), targets)
    assert losses["etpc"].item() == pytest.approx(expected, rel=1e-5)
    head = nn.Module()
    head.forward = lambda *texts: logits
    np.testing.assert_allclose(task.scores(head, ()).numpy(), probability, rtol=1e-6)
    found, metrics = kind.predictions(probability), kind.measure(probability, gold)
    assert metrics["accuracy"] == pytest.approx(np.mean(found == gold))
    both = np.sum(found * gold)
    assert metrics["micro_f1"] == pytest.approx(2 * both / (found.sum() + gold.sum()))
    assert set(metrics) == {"accuracy", "micro_f1", "macro_f1", "matthews"}
    p, q = torch.randn(2, 5, 26).double()
    parts = [(p.sigmoid(), q.sigmoid()), (1 - p.sigmoid(), 1 - q.sigmoid())]
    divergence = sum(((a - b) * (a.log() - b.log())).sum(1).mean() for a, b in parts)
    torch.testing.assert_close(kind.divergence(p, q), divergence)


def test_a_run_writes_the_courses_files_and_scores(tmp_path):
    write_types(tmp_path)
    config = multitask.RunConfig(tasks=("etpc",), encoder="tiny", data=str(tmp_path), epochs=1)
    run = multitask.train(config, tmp_path / "run")
    assert set(run.metrics["dev"]["etpc"]) >= {"accuracy", "micro_f1", "macro_f1"}
    file = tmp_path / "run/predictions/etpc-paraphrase-detection-dev-output.csv"
    with file.open(newline="") as opened:
        header, *rows = csv.reader(opened)
    assert header == ["id", "Predicted_Paraphrase_Types"]
    scores = read_scores(file.parent / "etpc-dev-probabilities.npz", multi_label(26))
    assert rows[0] == [str(scores.ids[0]), str((scores.values[0] > 0.5).astype(int).tolist())]


@pytest.mark.parametrize("mark", ["\t", ","])
@pytest.mark.parametrize(
    ("name", "stem", "header", "row"),
    [
        ("sst", "sst-sentiment", ["id", "sentence", "sentiment"], ["A1", "x, y", "3"]),
        ("qqp", "quora-paraphrase", [*PAIR, "is_duplicate"], ["A1", "x, y", "z", "1.0"]),
        ("sts", "sts-similarity", [*PAIR, "similarity"], ["A1", "x, y", "z", "3.6"]),
    ],
)
def test_files_with_goettingens_names_are_read(name, stem, header, row, mark, tmp_path):
    task = build_task(name)
    for split in ("train", "dev", "test-student"):
        kept = len(row) - (split == "test-student")
        write(tmp_path / f"{stem}-{split}.csv", header[:kept], [row[:kept]], mark)
    assert task.read(tmp_path, "dev").targets.tolist() == pytest.approx([float(row[-1])])
    assert task.read(tmp_path, "test").ids == ["a1"]
    names, _ = task.source.files
    write(tmp_path / names["dev"], header, [["CS224N", *row[1:]]], "\t")
    assert task.read(tmp_path, "dev").ids == ["cs224n"]  # the course's own names come first
