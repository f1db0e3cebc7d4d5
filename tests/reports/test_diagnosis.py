"""Diagnosis of prediction files: every injected fault is named, sound files have no finding."""

import re
from pathlib import Path

import numpy as np
import pytest

from reports.diagnosis import diagnose
from reports.diagnosis_tables import diagnosis_table, findings_text
from reports.fault_kinds import KINDS
from reports.known_splits import SIZE, KnownSplit, recognise, sketch
from reports.prediction_files import find_predictions
from reports.prediction_names import COURSES, remarks_on_others
from reports.submissions import check_predictions
from tasks import build_task

SIZES = {"sst": 1101, "qqp": 4000, "sts": 863}
STEMS = {"sst": "ids-sst", "qqp": "quora", "sts": "sts"}
LABELS = {"sst": "sentiment", "qqp": "is_duplicate", "sts": "similarity"}
TEXTS = {"sst": ["sentence"], "qqp": ["sentence1", "sentence2"], "sts": ["sentence1", "sentence2"]}
CS224N = {"sst": "sst-{}-output.csv", "qqp": "para-{}-output.csv", "sts": "sts-{}-output.csv"}
GOETTINGEN = {
    "sst": "bert/sst-sentiment-{}-output.csv",
    "qqp": "bert/quora-paraphrase-{}-output.csv",
    "sts": "bert/sts-similarity-{}-output.csv",
}
COLUMNS = {
    "sst": "Predicted_Sentiment",
    "qqp": "Predicted_Is_Paraphrase",
    "sts": "Predicted_Similiary",
}
SHARES = {"sst": [0.12, 0.26, 0.21, 0.25, 0.16], "qqp": [0.62, 0.38]}


def true_labels(task, split, size):
    rng = np.random.default_rng([len(task), len(split), size])
    if task == "sts":
        return np.round(rng.beta(1.3, 1.1, size) * 25) / 5
    return rng.choice(len(SHARES[task]), size, p=SHARES[task])


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Files of CS224N's names and sizes, with labels in the test files, too."""
    folder = tmp_path_factory.mktemp("data")
    for task, size in SIZES.items():
        for split, name in (("train", "train"), ("dev", "dev"), ("test", "test-student")):
            rows = ["\t".join(["", "id", *TEXTS[task], LABELS[task]])]
            for row, label in enumerate(true_labels(task, split, size)):
                texts = [f"text {row} of {split}"] * len(TEXTS[task])
                rows.append("\t".join([str(row), identity(task, split, row), *texts, str(label)]))
            (folder / f"{STEMS[task]}-{name}.csv").write_text("\n".join(rows) + "\n")
    return folder


def identity(task, split, row):
    return f"{task}{split}{row:06}"


def sound(task, split, quality, seed):
    """Predictions that are right with about this probability, or correlated so strongly.

    Half of the errors of sst are a neighbouring class, as with trained models.
    """
    rng, gold = np.random.default_rng(seed), true_labels(task, split, SIZES[task])
    if task == "sts":
        noise = rng.normal(0, gold.std() * np.sqrt(1 / quality**2 - 1), len(gold))
        values = (gold - gold.mean() + noise) * quality + gold.mean()
        return np.clip(values, -0.2, 5.3)
    if task == "qqp":
        return np.where(rng.random(len(gold)) < quality, gold, 1 - gold)
    near = np.clip(gold + rng.choice([-1, 1], len(gold)), 0, 4)
    far = rng.choice(5, len(gold), p=SHARES[task])
    guess = np.where(rng.random(len(gold)) < 0.5, near, far)
    return np.where(rng.random(len(gold)) < quality, gold, guess)


def write(folder, task, values, split="dev", ids=None, names=CS224N, row="{} , {} \n"):
    file = folder / names[task].format(split)
    file.parent.mkdir(parents=True, exist_ok=True)
    ids = [identity(task, split, n) for n in range(len(values))] if ids is None else ids
    header = f"id \t {COLUMNS[task]} \n" if " , " in row else f"id,{COLUMNS[task]}\n"
    values = np.array(values, float) if task == "qqp" else values  # 1.0, as in the leaderboard
    file.write_text(header + "".join(map(row.format, ids, np.array(values).tolist())))
    return file


def kinds(folder, data, **options):
    return [finding.kind for one in diagnose(folder, data, **options) for finding in one.findings]


GOOD = {"sst": 0.5, "qqp": 0.8, "sts": 0.85}
WEAK = {"sst": 0.36, "qqp": 0.68, "sts": 0.35}


def sigmoid(values):
    return 1 / (1 + np.exp(-values))


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


FILES = {"cs224n": (CS224N, "{} , {} \n"), "goettingen": (GOETTINGEN, "{}\t{}\n")}


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
        scored = [bool(one.scored) for one in diagnose(folder, data)]
        assert scored == [kind == "repeated ids"]


@pytest.mark.parametrize("task", SIZES)
def test_ids_of_rows_without_a_value_are_not_missing(task, data, tmp_path):
    file = write(tmp_path, task, np.full(SIZES[task], np.nan))
    (one,) = diagnose(tmp_path, data)
    assert [finding.kind for finding in one.findings] == ["unreadable"]
    assert f"{SIZES[task]:,} of {SIZES[task]:,} rows" in one.findings[0].evidence
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(lines[:-50]))
    (one,) = diagnose(tmp_path, data)
    assert [finding.kind for finding in one.findings] == ["unreadable", "missing ids"]
    assert "; 50 are missing" in one.findings[1].evidence


NO_HEADER = ["", "\n", "id,prediction\na,1\n", "a , 1 \nb , 0 \n", "a,Predicted_Sentiment\n"]
KNOWN_NAMES = [
    ("sst-dev-output.csv", "sst", "dev"),
    ("para-test-output.csv", "qqp", "test"),
    ("sub/finetune-sst-dev-out.csv", "sst", "dev"),
    ("last-linear-layer-cfimdb-test-out.csv", "cfimdb", "test"),
    ("bert/quora-paraphrase-test-output.csv", "qqp", "test"),
    ("etpc-paraphrase-detection-dev-output.csv", "etpc", "dev"),
    ("val_sst.tsv", "sst", "dev"),
]


@pytest.mark.parametrize("content", NO_HEADER)
@pytest.mark.parametrize(("name", "task", "split"), KNOWN_NAMES)
def test_a_prediction_file_without_its_header_is_found(name, task, split, content, data, tmp_path):
    write(tmp_path / "good", "sts", sound("sts", "dev", 0.85, 1))
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(content)
    (bad,) = (one for one in diagnose(tmp_path, data) if one.findings)
    (finding,) = bad.findings
    assert (finding.kind, finding.file) == ("no header", file)
    first = content.partition("\n")[0]
    assert finding.evidence == (f"line 1 is {first!r}" if content else "the file is empty")
    assert (bad.predictions.task, bad.predictions.split) == (task, split)
    assert f"evidence: {finding.evidence}" in findings_text([bad])
    assert name in diagnosis_table([bad], tmp_path)
    others = [one for one in COURSES if one != task]
    assert kinds(tmp_path, data, wanted=others) == []


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("sst-dev.csv", "\tid\tsentence\tsentiment\n"),  # data
        ("ids-sst-dev.csv", ""),
        ("quora-dev.csv", "id,is_duplicate\n"),
        ("sst/dev.txt", "(3 (2 a) (2 b))\n"),
        ("sst-dev-log.txt", "epoch 1\n"),
        ("sst-output.txt", "epoch 1\n"),
        ("sst-test/metrics-output.csv", "accuracy\n"),
        ("disagreements-sst-dev.csv", "id,a,b\n"),
    ],
)
def test_files_of_other_kinds_are_no_finding_and_tables_are_named(name, content, data, tmp_path):
    write(tmp_path, "sts", sound("sts", "dev", 0.85, 1))
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(content)
    assert kinds(tmp_path, data) == []
    table = file.suffix == ".csv"
    assert remarks_on_others(tmp_path) == ([f"not read: {name}"] if table else [])


def test_files_of_other_tasks_are_named(tmp_path):
    folder = tmp_path / "predictions"
    folder.mkdir()
    for name, column in (
        ("para-news-dev", "Label"),
        ("near-test", "Similarity"),
        ("imdb-dev", "Sentiment"),
        ("topic-dev", "Label"),
        ("sst-dev", "Sentiment"),
    ):
        (folder / f"{name}-output.csv").write_text(f"id \t Predicted_{column} \na , 1 \n")
    (tmp_path / "config.json").write_text('{"own_tasks": {"near": {}, "para-news": {}}}')
    rest = "; --diagnose knows only the courses' tasks"
    assert remarks_on_others(folder) == [
        f"imdb-dev-output.csv is of the task imdb{rest}",
        f"near-test-output.csv is of an own task{rest}",
        f"para-news-dev-output.csv is of an own task{rest}",
        f"topic-dev-output.csv is of an own task{rest}",
    ]
    assert [one.task for one in find_predictions(folder)] == ["sst"]


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
    found = [finding for one in diagnose(tmp_path, data) for finding in one.findings]
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
    (one,) = diagnose(tmp_path, data)
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
        for one in diagnose(tmp_path, data)
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
    found = diagnose(tmp_path, data)
    assert [one.findings for one in found] == [()] * 24
    assert all(one.scored == SIZES[one.predictions.task] for one in found)
    assert findings_text(found) == "nothing found that is wrong"
    assert "dev files" in diagnosis_table(found, tmp_path)


def test_a_subset_is_scored_on_common_ids_only_on_request(data, tmp_path):
    values = sound("qqp", "dev", 0.8, 1)
    ids = [identity("qqp", "dev", n) for n in range(3000)] + [f"other{n}" for n in range(1000)]
    write(tmp_path, "qqp", values, ids=ids)
    (without,) = diagnose(tmp_path, data)
    assert (without.scored, [one.kind for one in without.findings]) == (0, ["ids of other data"])
    (one,) = diagnose(tmp_path, data, subset=True)
    gold = true_labels("qqp", "dev", 4000)[:3000]
    assert one.metrics["accuracy"] == pytest.approx(np.mean(values[:3000] == gold))
    assert (one.scored, one.known, one.findings) == (3000, 4000, ())
    assert any("3,000 of 4,000" in note for note in one.notes)


def test_each_finding_is_printed_with_evidence_cause_and_cure(data, tmp_path):
    write(tmp_path, "sst", np.full(SIZES["sst"], 3))
    text = findings_text(diagnose(tmp_path, data))
    kind = KINDS["single class"]
    for part in ("1,101 of 1,101 are 3", kind.title, kind.cause, kind.cure):
        assert part in text


@pytest.mark.parametrize(
    ("name", "header", "rows", "values"),
    [
        ("finetune-sst-dev-out.csv", "id \t Predicted_Sentiment ", "{}, {} ", [0, 4]),
        ("a/val_sst.tsv", "id\tpredicted_sentiment", "{}\ttensor({})", [0, 4]),
        ("para-dev-output.csv", "id,Predicted_Is_Paraphrase", "{},{}", [3919, 8505]),
        ("sst-dev.csv", ",id,Predicted_Sentiment", "7,{},{}", [0, 4]),
    ],
)
def test_usual_names_and_layouts_are_read(name, header, rows, values, tmp_path):
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    lines = [rows.format(f"{n} ID{n}", value) for n, value in enumerate(values)]
    file.write_text("\n".join([header, *lines]))
    (tmp_path / "quora-dev.csv").write_text("\tid\tsentence1\tsentence2\tis_duplicate\n")
    (one,) = diagnose(tmp_path, tmp_path / "no data")
    assert one.predictions.ids == ("0 id0", "1 id1")
    assert one.predictions.values.tolist() == values
    assert one.predictions.split == "dev"
    printed = ["printed tensors"] if "tensor" in rows else []
    assert [finding.kind for finding in one.findings] == printed


def test_a_sketch_recognises_a_split_and_the_covered_share(monkeypatch):
    ids = [f"id{n}" for n in range(5000)]
    known = KnownSplit("a course", "qqp", "dev", len(ids), sketch(ids))
    monkeypatch.setattr("reports.known_splits.known_splits", lambda: (known,))
    (whole,) = recognise([f"{n} {one}" for n, one in enumerate(reversed(ids))])
    assert (len(known.sketch), whole.share) == (SIZE, 1)
    (half,) = recognise(ids[::2])
    assert 0.2 < half.share < 0.8
    assert recognise([f"other{n}" for n in range(5000)]) == []
