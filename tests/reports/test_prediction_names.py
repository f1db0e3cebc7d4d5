"""Prediction files of any name and layout are found; files of other kinds and tasks are named."""

import pytest
from course_files import diagnosed, kinds, sound, write

from reports.submissions.diagnosis_tables import diagnosis_table, findings_text
from reports.submissions.prediction_names import COURSES, read_headers, remarks_on_others

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
    (bad,) = (one for one in diagnosed(tmp_path, data) if one.findings)
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
    assert remarks_on_others(read_headers(tmp_path), tmp_path) == (
        [f"not read: {name}"] if table else []
    )


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
    headers = read_headers(folder)
    assert remarks_on_others(headers, folder) == [
        f"imdb-dev-output.csv is of the task imdb{rest}",
        f"near-test-output.csv is of an own task{rest}",
        f"para-news-dev-output.csv is of an own task{rest}",
        f"topic-dev-output.csv is of an own task{rest}",
    ]
    assert [one.task for one in headers if one.task is not None] == ["sst"]


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
    (one,) = diagnosed(tmp_path, tmp_path / "no data")
    assert one.predictions.ids == ("0 id0", "1 id1")
    assert one.predictions.values.tolist() == values
    assert one.predictions.split == "dev"
    printed = ["printed tensors"] if "tensor" in rows else []
    assert [finding.kind for finding in one.findings] == printed
