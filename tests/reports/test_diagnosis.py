"""Diagnosis of prediction files: every injected fault is named, sound files have no finding."""

import re
from pathlib import Path

import numpy as np
import pytest
from course_files import (
    COLUMNS,
    CS224N,
    GOETTINGEN,
    SHARES,
    SIZES,
    diagnosed,
    identity,
    kinds,
    sound,
    true_labels,
    write,
)

from reports.submissions.checks import check_predictions
from reports.submissions.diagnosis_tables import diagnosis_table, findings_text
from reports.submissions.fault_kinds import KINDS
from tasks import build_task

FILES = {"cs224n": (CS224N, "{} , {} \n"), "goettingen": (GOETTINGEN, "{}\t{}\n")}
GOOD = {"sst": 0.5, "qqp": 0.8, "sts": 0.85}
WEAK = {"sst": 0.36, "qqp": 0.68, "sts": 0.35}


def probabilities(values, classes, rng):
    table = rng.random((len(values), classes)) + 3 * np.eye(classes)[values.astype(int)]
    return table / table.sum(1, keepdims=True)


# kind -> (task, function from sound values and a generator to faulty values)
VALUES = [
    ("single class", "sst", lambda v, rng: np.full_like(v, 3)),
    ("single class", "qqp", lambda v, rng: np.where(rng.random(len(v)) < 0.002, 1, 0)),
    ("majority", "sst", lambda v, rng: rng.integers(0, 5, len(v))),
    ("majority", "qqp", lambda v, rng: rng.permutation(v)),
    ("one class off", "sst", lambda v, rng: v + 1),
    ("one class off", "sst", lambda v, rng: np.clip(v - 1, 0, 4)),
    ("one class off", "sst", lambda v, rng: np.clip(v + 1, 0, 4)),
    ("classes swapped", "qqp", lambda v, rng: 1 - v),
    ("no class", "qqp", lambda v, rng: np.where(v == 1, 8505, 11)),
    ("no class", "sst", lambda v, rng: v * 100),
    ("probabilities", "qqp", lambda v, rng: np.clip(v + rng.normal(0, 0.2, len(v)), 0.01, 0.99)),
    ("probabilities", "sst", lambda v, rng: probabilities(v, 5, rng)),
    ("probabilities", "qqp", lambda v, rng: 4 * v - 2 + rng.normal(0, 1, len(v))),
    ("constant", "sts", lambda v, rng: np.full_like(v, 2.5)),
    ("constant", "sts", lambda v, rng: 5 - 1e-5 * rng.random(len(v))),
    ("scale", "sts", lambda v, rng: np.clip(v / 5, 0, 1)),
    ("scale", "sts", lambda v, rng: v / 2.5 - 1),
    ("scale", "sts", lambda v, rng: 20 * v),
    ("rounded", "sts", lambda v, rng: np.round(v)),
    ("rounded", "sts", lambda v, rng: np.round(2 * v) / 2),
    ("anti-correlated", "sts", lambda v, rng: 5 - v),
    ("anti-correlated", "sts", lambda v, rng: 4 - 0.8 * v),
    ("uncorrelated", "sts", lambda v, rng: uncorrelated(v, rng)),
    ("trained on dev", "sst", lambda v, rng: true_labels("sst", "dev", SIZES["sst"])),
    ("trained on dev", "sts", lambda v, rng: true_labels("sts", "dev", SIZES["sts"])),
]


def uncorrelated(values, rng):
    """The same values in an order without relation to the labels."""
    gold = true_labels("sts", "dev", SIZES["sts"])
    orders = (rng.permutation(values) for _ in range(50))
    return min(orders, key=lambda one: abs(np.corrcoef(one, gold)[0, 1]))


@pytest.mark.parametrize("quality", [GOOD, WEAK], ids=["good", "weak"])
@pytest.mark.parametrize(("kind", "task", "change"), VALUES)
def test_a_fault_of_the_values_is_the_only_finding(kind, task, change, quality, data, tmp_path):
    rng = np.random.default_rng(4)
    write(tmp_path, task, change(sound(task, "dev", quality[task], 3), rng))
    assert kinds(tmp_path, data) == [kind]


@pytest.mark.parametrize("layout", FILES)
def test_a_fault_of_rows_and_ids_is_the_only_finding(layout, data, tmp_path):
    names, row = FILES[layout]
    for number, (task, kind) in enumerate(
        (t, k)
        for k in ("unreadable", "repeated ids", "ids of another split", "missing ids")
        for t in ("sst", "sts")
    ):
        folder = tmp_path / str(number)
        values = sound(task, "dev", GOOD[task], 1)
        ids = [identity(task, "dev", n) for n in range(len(values))]
        if kind == "ids of another split":
            ids = [identity(task, "train", n) for n in range(len(values))]
        kept = len(values) - (77 if kind == "missing ids" else 0)
        file = write(folder, task, values[:kept], ids=ids[:kept], names=names, row=row)
        lines = file.read_text().splitlines(keepends=True)
        if kind == "repeated ids":
            file.write_text("".join([*lines, *lines[5:9]]))
        if kind == "unreadable":
            file.write_text("".join(lines).replace(lines[7], row.format(ids[6], "nan")))
        assert kinds(folder, data) == [kind]
        scored = [bool(one.scored) for one in diagnosed(folder, data)]
        assert scored == [kind == "repeated ids"]


@pytest.mark.parametrize("task", SIZES)
def test_ids_of_rows_without_a_value_are_not_missing(task, data, tmp_path):
    file = write(tmp_path, task, np.full(SIZES[task], np.nan))
    (one,) = diagnosed(tmp_path, data)
    assert [finding.kind for finding in one.findings] == ["unreadable"]
    assert f"{SIZES[task]:,} of {SIZES[task]:,} rows" in one.findings[0].evidence
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(lines[:-50]))
    (one,) = diagnosed(tmp_path, data)
    assert [finding.kind for finding in one.findings] == ["unreadable", "missing ids"]
    assert "; 50 are missing" in one.findings[1].evidence


FORMATS = {
    "header": lambda text: text.replace(b"id \t ", b"id\t"),
    "commas": lambda text: text.replace(b" , ", b","),
    "Windows": lambda text: text.replace(b"\n", b"\r\n"),
    "end": lambda text: text.rstrip(b"\n"),
    "ids": lambda text: text.replace(b"dev000007", b"DEV000007"),
    "byte order mark": lambda text: b"\xef\xbb\xbf" + text,
    "blank line": lambda text: text + b"\n",
    "list": lambda text: re.sub(rb" , (.*) ", rb" , [\1] ", text),
    "plus": lambda text: re.sub(rb" , (\d.*) ", rb" , +\1 ", text),
    "nan": lambda text: re.sub(rb" , .* ", b" , nan ", text, count=1),
    "tensor": lambda text: re.sub(rb" , (.*) ", rb" , tensor(\1) ", text),
    "tensor on a device": lambda text: re.sub(
        rb" , (.*) ", rb" , tensor(\1, device='cuda:0') ", text
    ),
    "empty": lambda text: b"",
    "no header": lambda text: text.partition(b"\n")[2],
    "only the header": lambda text: text.partition(b"\n")[0] + b"\n",
    "one row": lambda text: text.replace(b" , ", b" ", 1),
    "twice": lambda text: text + text.splitlines(keepends=True)[-1],
}


@pytest.mark.parametrize("task", SIZES)
@pytest.mark.parametrize("form", FORMATS)
def test_what_evaluate_calls_wrong_has_a_finding(form, task, data, tmp_path):
    file = write(tmp_path, task, sound(task, "dev", GOOD[task], 1))
    ids, output = (
        [identity(task, "dev", n) for n in range(SIZES[task])],
        build_task(task).output,
    )
    assert not check_predictions(file, output, ids).problems
    file.write_bytes(FORMATS[form](file.read_bytes()))
    problems = check_predictions(file, output, ids).problems
    found = [finding for one in diagnosed(tmp_path, data) for finding in one.findings]
    assert problems
    kind = {
        "tensor": "printed tensors",
        "tensor on a device": "printed tensors",
        "nan": "unreadable",
        "one row": "unreadable",
        "twice": "repeated ids",
        "empty": "no header",
        "no header": "no header",
        "only the header": "missing ids",
    }.get(form, "format")
    assert kind in [one.kind for one in found]
    if kind == "format":
        assert [problems[0]] == [f"{file}, {one.evidence}" for one in found]


@pytest.mark.parametrize(
    ("task", "texts"), [("sst", ("2.0", "02")), ("qqp", ("1", "True")), ("sts", ("1_0", "1e101"))]
)
def test_values_that_evaluate_does_not_read_have_a_finding(task, texts, data, tmp_path):
    for text in texts:
        file = write(tmp_path, task, sound(task, "dev", GOOD[task], 1))
        lines = file.read_text().splitlines(keepends=True)
        lines[7] = f"{identity(task, 'dev', 6)} , {text} \n"
        file.write_text("".join(lines))
        assert kinds(tmp_path, data), text


@pytest.mark.parametrize(("task", "step"), [("sst", 1), ("sst", -1), ("qqp", 1), ("qqp", -1)])
def test_a_shifted_file_is_scored_as_it_stands_and_after_the_shift_back(task, step, data, tmp_path):
    values = sound(task, "dev", GOOD[task], 1)
    write(tmp_path, task, values + step)
    (one,) = diagnosed(tmp_path, data)
    gold = true_labels(task, "dev", SIZES[task])
    shifted, right = np.mean(values + step == gold), np.mean(values == gold)
    assert one.main == pytest.approx(shifted)
    (finding,) = one.findings
    assert finding.kind == "one class off"
    low, high = step, len(SHARES[task]) - 1 + step
    word = "taking 1 from" if step == 1 else "adding 1 to"
    assert finding.evidence == (
        f"values from {low} to {high}, expected 0 to {len(SHARES[task]) - 1}; accuracy "
        f"{shifted:.3f} as the file stands, {right:.3f} after {word} each class"
    )


def test_the_cure_follows_from_where_the_ids_are(data, tmp_path):
    """--subset for a part of the split, --data for other data, neither for another split."""
    values = sound("sst", "dev", 0.5, 1)
    run = tmp_path / "run"
    for place, ids, file in (
        ("train", [identity("sst", "train", n) for n in range(1101)], CS224N["sst"]),
        ("other", [f"other{n}" for n in range(1101)], CS224N["sst"]),
        (
            "run/predictions",
            [f"x{n}" if n % 2 else identity("sst", "dev", n) for n in range(1101)],
            CS224N["sst"],
        ),
        ("no split", [f"other{n}" for n in range(1101)], "sst.csv"),
        ("part", [identity("sst", "dev", n) for n in range(1101)][:900], CS224N["sst"]),
    ):
        write(tmp_path / place, "sst", values[: len(ids)], ids=ids, names={"sst": file})
    (run / "config.json").write_text('{"data": "course"}')
    found = {
        str(one.predictions.file.parent.relative_to(tmp_path)): one.findings[0]
        for one in diagnosed(tmp_path, data)
    }
    assert {place: one.kind for place, one in found.items()} == {
        "train": "ids of another split",
        "other": "ids of other data",
        "run/predictions": "ids of other data",
        "no split": "ids of other data",
        "part": "missing ids",
    }
    assert "1,101 are in train" in found["train"].evidence
    assert found["run/predictions"].evidence.endswith("; its run read --data course")
    assert found["no split"].evidence == "no id is in train, dev, test"
    assert [kind for kind, one in KINDS.items() if "--subset" in one.cure] == ["missing ids"]
    assert "--data" in KINDS["ids of other data"].cure


def test_the_page_lists_every_finding_with_its_cause_and_cure():
    page = (Path(__file__).parents[2] / "docs" / "diagnose.md").read_text("utf-8")
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| ")]
    listed = {row[0]: tuple(row[2:]) for row in rows if row[0] in KINDS}
    assert listed == {name: (kind.cause, kind.cure) for name, kind in KINDS.items()}


@pytest.mark.parametrize("task", ["sst", "qqp"])
def test_a_test_file_of_dev_examples_is_found(task, data, tmp_path):
    dev = write(tmp_path, task, sound(task, "dev", GOOD[task], 1))
    (tmp_path / CS224N[task].format("test")).write_bytes(dev.read_bytes())
    assert kinds(tmp_path, data) == ["test equals dev"]


@pytest.mark.parametrize("task", ["sst", "sts"])
def test_a_dev_score_far_above_the_test_score_is_found(task, data, tmp_path):
    write(tmp_path, task, sound(task, "dev", 0.95, 1))
    write(tmp_path, task, sound(task, "test", GOOD[task] - 0.1, 1), split="test")
    assert kinds(tmp_path, data) == ["trained on dev"]

    write(tmp_path, task, 3 * np.ones(SIZES[task]), split="test")
    assert "trained on dev" in kinds(tmp_path, data), "a test score of exactly 0 counts, too"


@pytest.mark.parametrize("task", ["sst", "qqp", "sts"])
@pytest.mark.parametrize("mark", [",", "\t"])
def test_further_columns_do_not_change_the_predictions(task, mark, data, tmp_path):
    """Neither after the predictions nor between ids and predictions, nor an index before them."""
    values = sound(task, "dev", GOOD[task], 1)
    plain = write(tmp_path / "plain", task, values)
    rows = [line.replace(" ", "").split(",") for line in plain.read_text().splitlines()[1:]]
    for name, columns in (
        ("after", ("id", COLUMNS[task], "probability")),
        ("between", ("id", "sentence", COLUMNS[task])),
        ("every", ("", "id", "sentence", COLUMNS[task], "probability", "gold")),
        ("before", (COLUMNS[task], "id", "gold")),
        ("two", (COLUMNS[task], "id")),
    ):
        other = {"": "7", "sentence": f'"a{mark} b"', "probability": "0.3", "gold": "2"}
        file = tmp_path / name / plain.name
        file.parent.mkdir()
        lines = [{"id": row, COLUMNS[task]: value} | other for row, value in rows]
        cells = [columns, *([line[column] for column in columns] for line in lines)]
        file.write_text("\n".join(map(mark.join, cells)) + "\n")
    found = diagnosed(tmp_path, data)
    assert [one.main for one in found] == [found[0].main] * 6
    assert {finding.kind for one in found for finding in one.findings} == {"format"}


@pytest.mark.parametrize("row", ["{},[0.1, 0.9],1\n", "{},1\n", "{},tensor([0.1, 0.9]),1\n"])
def test_rows_with_other_columns_than_the_header_are_unreadable(row, data, tmp_path):
    file = write(tmp_path, "qqp", sound("qqp", "dev", 0.8, 1), row=row.replace("{}", "{0}"))
    _, rows = file.read_text().split("\n", 1)
    file.write_text(f"id,{COLUMNS['qqp']},gold\n{rows}")
    assert kinds(tmp_path, data) == ["unreadable"]


def test_a_header_may_have_both_marks(data, tmp_path):
    file = write(tmp_path, "sst", sound("sst", "dev", 0.5, 1), row="{},{}\n")
    _, rows = file.read_text().split("\n", 1)
    file.write_text(f"id,\t{COLUMNS['sst']}\n{rows}")
    (one,) = diagnosed(tmp_path, data)
    assert one.scored == SIZES["sst"]


# Fifteen models: from few training examples to the best published systems.
QUALITIES = {
    "sst": (0.32, 0.38, 0.45, 0.52, 0.6),
    "qqp": (0.65, 0.72, 0.8, 0.87, 0.93),
    "sts": (0.25, 0.45, 0.65, 0.85, 0.93),
}


@pytest.mark.parametrize("layout", FILES)
@pytest.mark.parametrize("level", range(5))
def test_sound_files_of_any_quality_cause_no_finding(level, layout, data, tmp_path):
    names, row = FILES[layout]
    for seed in range(4):
        for task, qualities in QUALITIES.items():
            for split in ("dev", "test"):
                values = sound(task, split, qualities[level], seed)
                write(tmp_path / str(seed), task, values, split, names=names, row=row)
    found = diagnosed(tmp_path, data)
    assert [one.findings for one in found] == [()] * 24
    assert all(one.scored == SIZES[one.predictions.task] for one in found)
    assert findings_text(found) == "nothing found that is wrong"
    assert "dev files" in diagnosis_table(found, tmp_path)


def test_a_subset_is_scored_on_common_ids_only_on_request(data, tmp_path):
    values = sound("qqp", "dev", 0.8, 1)
    ids = [identity("qqp", "dev", n) for n in range(3000)] + [f"other{n}" for n in range(1000)]
    write(tmp_path, "qqp", values, ids=ids)
    (without,) = diagnosed(tmp_path, data)
    assert (without.scored, [one.kind for one in without.findings]) == (0, ["ids of other data"])
    (one,) = diagnosed(tmp_path, data, subset=True)
    gold = true_labels("qqp", "dev", 4000)[:3000]
    assert one.metrics["accuracy"] == pytest.approx(np.mean(values[:3000] == gold))
    assert (one.scored, one.known, one.findings) == (3000, 4000, ())
    assert any("3,000 of 4,000" in note for note in one.notes)


def test_each_finding_is_printed_with_evidence_cause_and_cure(data, tmp_path):
    write(tmp_path, "sst", np.full(SIZES["sst"], 3))
    text = findings_text(diagnosed(tmp_path, data))
    kind = KINDS["single class"]
    for part in ("1,101 of 1,101 are 3", kind.title, kind.cause, kind.cure):
        assert part in text
