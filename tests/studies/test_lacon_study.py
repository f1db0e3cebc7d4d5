"""LaCon's cells as configurations, the command that runs them, and its tables and figures."""

import json

import numpy as np
import pytest
from sklearn.metrics import f1_score

from minbert.json_files import read_json
from multitask.config import RunConfig
from studies import lacon_paper as paper
from studies.lacon import ABLATED, ABLATIONS, METHODS, TASKS, Experiments
from studies.lacon_claims import ahead, method_claims, part_claims, protocol_claims
from studies.lacon_figures import effective_rank, space_of, spectrum
from studies.lacon_report import report
from studies.lacon_results import Results, always
from studies.lacon_table import (
    ablation_table,
    by_class_table,
    few_shot_table,
    main_table,
    sweep_table,
)
from studies.maps import Space

BASE = RunConfig(mode="single", tasks=(), encoder="tiny", linear="mkl", limit=200)
CELLS = Experiments(BASE)


def test_every_cell_is_another_run():
    every = CELLS.every()
    assert len({one.name for one in every}) == len(every)
    assert len({one.config.digest() for one in every}) == len(every)


def test_settings_are_the_papers():
    config = CELLS.main("mrpc", "lacon").config
    assert (config.pooling, config.warmup, config.epochs) == ("cls", 0.06, 10)
    assert (config.protocol, config.shots, config.limit) == ("capped", 200, None)
    assert config.task_options == {"mrpc": {"pair": "joint"}}
    assert (config.lr, config.head_lr, config.batch_size) == (2e-5, 2e-5, 16)
    assert (config.objective, config.select_by, config.label_terms) == (
        "lacon",
        None,
        ("icl", "lcl", "ler"),
    )
    assert CELLS.main("cola", "ce").config.select_by == "matthews"
    assert CELLS.main("tnews", "ce").config.select_by == "macro_f1"
    for method, weight, temperature in (("scl", 0.9, 0.3), ("cl", 0.13, 0.1)):
        rival = CELLS.main("rte", method).config
        found = (rival.objective, rival.scl_weight, rival.scl_temperature)
        assert found == (method, weight, temperature)
    for method, objective in (("ce-mean", None), ("lacon-mean", "lacon")):
        control = CELLS.main("rte", method).config
        assert (control.objective, control.pooling) == (objective, "mean")
    plain = Experiments(RunConfig(mode="single", tasks=()))
    assert plain.main("sst2", "ce").config.shots == 5000
    assert plain.main("trec", "ce").config.shots == 1000
    few = CELLS.few_shot("rte", 20, "names").config
    assert (few.protocol, few.shots, few.epochs, few.label_start) == (
        "few-a-class", 20, 20, "names",
    )  # fmt: skip
    uneven = Experiments(BASE, epochs=3).imbalanced("cola", 10, "ce").config
    assert (uneven.imbalance, uneven.shots, uneven.epochs) == (10, 32, 10)
    assert (uneven.protocol, uneven.select_by) == ("imbalanced", "matthews")
    assert Experiments(BASE, epochs=3).main("cola", "ce").config.epochs == 3
    assert CELLS.ablation("rte", "icl-single").config.label_terms == ("icl",)
    assert CELLS.ablation("rte", "no-projection").config.projection_layers == 0


def test_what_is_another_cell_already_is_that_cell():
    assert CELLS.first_classes("trec", 6, "scl").name == "main-trec-scl"
    options = CELLS.first_classes("trec", 4, "scl").config.task_options
    assert options == {"trec": {"classes": "4"}}
    assert CELLS.sweep("rte", "tau", 0.1).name == "main-rte-lacon"
    assert CELLS.sweep("sst2", "lambda", 0.5).name == "main-sst2-lacon"
    assert CELLS.sweep("rte", "heads", 1).name == "ablation-rte-single-head"
    assert CELLS.sweep("sst2", "heads", 1).name == "sweep-sst2-heads-1"


def test_the_papers_tables_are_whole():
    assert tuple(METHODS) == paper.METHODS
    assert all(len(row) == len(METHODS) for row in paper.MAIN.values())
    assert set(paper.ABLATION) == {"lacon", "projection", *ABLATIONS}
    assert all(set(row) == set(ABLATED) for row in paper.ABLATION.values())
    assert {*paper.MAIN, *paper.FURTHER} <= set(TASKS)


@pytest.fixture
def data(tmp_path):
    """CoLA and MRPC of a few words, whose class a word tells."""
    for folder, header, row in (
        ("CoLA", "", "x\t{label}\t\ta {word} film {i}"),
        (
            "MRPC",
            "Quality\t#1 String\t#2 String\n",
            "{label}\ta {word} film {i}\tthe {word} film {i}",
        ),
    ):
        place = tmp_path / "data" / folder
        place.mkdir(parents=True)
        for file, count in (("train.tsv", 150), ("dev.tsv", 24)):
            rows = []
            for i in range(count):
                label = int(i % 3 > 0)
                word = ("bad", "good")[label]
                rows.append(row.format(label=label, word=word, i=f"{i} {file}"))
            (place / file).write_text(header + "\n".join(rows) + "\n")
    return tmp_path / "data"


@pytest.fixture
def reproduce(reproducing, data):
    short = ("--encoder", "tiny", "--epochs", 1, "--limit", 20, "--seeds", 2)
    return reproducing("lacon", "--data", data, *short)


def test_some_cells(reproduce, tmp_path):
    rows = (
        *("main-mrpc-lacon", "ablation-cola-single", "main-trec-ce", "classes-trec-2-ce"),
        *("few-shot-mrpc-20-ce", "imbalanced-cola-1-ce"),
    )
    status, said = reproduce("--rows", *rows)
    assert status == 1  # CoLA has not as many examples of its rarer class
    assert "2 runs failed, the first: imbalanced-cola-1-ce, seed 1: " in said.err
    assert "trec is left out, for there is no" in said.out
    results = tmp_path / "lacon"
    names = {f"main-mrpc-{method}" for method in ("lacon", "lacon-fusion", "lacon-mean")}
    names |= {"ablation-cola-single-head", "few-shot-mrpc-20-ce"}
    ids = {"ids-mrpc-capped", "ids-cola-capped", "ids-mrpc-few-a-class"}
    assert {path.stem for path in results.glob("*.json")} == names | ids
    drawn = read_json(results / "ids-mrpc-capped.json", ValueError)
    assert len(drawn["train, 20, seed 1"].split()) == 38
    assert drawn["train, 20, seed 1"] != drawn["train, 20, seed 2"]
    found = read_json(results / "main-mrpc-lacon.json", ValueError)["seeds"]["1"]
    assert len(found["f1_by_class"]) == 2
    assert found["f1_by_class"][1] == pytest.approx(found["test"]["mrpc"]["f1"], abs=1e-5)
    assert sum(found["training_counts"]) == 38
    assert found["test_counts"] == [8, 16]
    text = (tmp_path / "lacon.md").read_text()
    both = read_json(results / "main-mrpc-lacon.json", ValueError)["seeds"].values()
    accuracy = 100 * np.mean([one["test"]["mrpc"]["accuracy"] for one in both])
    assert f"87.5 ± 0.9 / {accuracy:.1f} ± " in text
    times = {path: path.stat().st_mtime_ns for path in results.glob("*.json")}
    assert reproduce("--rows", *rows)[0] == 1  # what failed is tried again
    assert times == {path: path.stat().st_mtime_ns for path in times}


def test_the_figures_of_embeddings(reproduce, tmp_path, monkeypatch):
    monkeypatch.setattr("studies.reproduce_lacon.SHOWN", ("ce", "lacon"))
    rows = ("--rows", "main-cola-ce", "main-cola-lacon")
    status, said = reproduce(*rows[:2])
    assert status == 0, said.err
    assert not (tmp_path / "lacon" / "maps-cola.png").exists(), "a rival is not asked for"
    status, said = reproduce(*rows)
    assert status == 0, said.err
    for file in ("maps-cola.png", "spectrum-cola.png"):
        assert (tmp_path / "lacon" / file).exists()
    ranks = read_json(tmp_path / "lacon" / "ranks-cola.json", ValueError)
    assert ranks.keys() == {"CE", "LaCon-vanilla", "LaCon, projected"}
    row = " | ".join(f"{rank:.1f}" for rank in ranks.values())
    assert f"| cola | {row} |" in (tmp_path / "lacon.md").read_text()
    plain, lacon = (
        next((tmp_path / "runs").glob(f"map-cola-{method}-????????")) for method in ("ce", "lacon")
    )
    space = space_of(lacon)
    assert space.examples.shape == (24, 32)
    assert space.labels.shape == (2, 32)
    np.testing.assert_allclose(np.linalg.norm(space.examples, axis=1), 1, rtol=1e-5)
    # What is matched is what is predicted.
    with np.load(lacon / "predictions" / "cola-test-probabilities.npz") as file:
        predicted = file["probabilities"].argmax(1)
    assert (space.examples @ space.labels.T).argmax(1).tolist() == predicted.tolist()
    assert space_of(plain).labels is None


def test_effective_ranks():
    even = Space(np.eye(4), np.zeros(4), None)
    one = Space(np.ones((4, 3)), np.zeros(4), None)
    assert effective_rank(spectrum(even)) == pytest.approx(4)
    assert effective_rank(spectrum(one)) == pytest.approx(1, abs=1e-6)


MAIN = {"ce": 0, "leam": 1, "lsan": 2, "cl": 3, "scl": 4, "lacon": 6, "lacon-fusion": 9}
MAIN |= {"ce-mean": 5, "lacon-mean": 7}
LESS = {"single-head": 5, "no-icl": 1, "no-lcl": 3.5, "no-ler": 4, "no-projection": 2}
LESS |= {"icl-single": 0, "icl": 0, "lcl": 0, "projection": -1.5}
FEW = {"ce": {}, "lacon": {10: 9.5, 20: 2, 100: 1}, "names": {20: 5}}
BY_COUNT = {"ce": lambda count: 0, "scl": lambda count: 1, "lacon-fusion": lambda count: count}


def per_cent_more(name, method):
    """What an invented cell has more than plain cross-entropy."""
    kind, _, number = name.split("-")[:3]
    if kind == "main":
        return MAIN[method]
    if kind == "ablation":
        return LESS[method]
    if kind == "few":
        return FEW[method].get(int(name.split("-")[3]), 0)
    if kind == "classes":
        return BY_COUNT[method](int(number))
    return (3 if int(number) > 1 else 50) if method == "lacon" else 0


def invented(folder, sign=1):
    """Kept cells of four tasks, each method and part with a gain of its own."""
    for one in CELLS.every():
        (task,) = one.config.tasks
        if task not in ("cola", "rte", "sst2", "trec"):
            continue
        parts = {"main": 2, "ablation": 2, "few": 4, "imbalanced": 3, "classes": 3}
        words = one.name.split("-")
        method = "-".join(words[parts.get(words[0], 4) :])
        gain = sign * per_cent_more(one.name, method) / 100
        figures = {}
        for seed in one.seeds:
            value = 0.6 + seed / 100 + gain
            classes = {
                "f1_by_class": [0.2 + sign * 0.1 * (gain != 0), 0.8 + sign * 0.04 * (gain != 0)],
                "training_counts": [32, 320],
                "test_counts": [30, 70],
            }
            found = {"accuracy": value, "matthews": value - 0.3}
            figures[str(seed)] = {"test": {task: found}} | classes
        content = {"config": one.config.to_json(), "seeds": figures}
        (folder / f"{one.name}.json").write_text(json.dumps(content))


CLAIMS = {
    method_claims: {
        **{f"LaCon-vanilla - {title}": 6 - gain for title, gain in zip(
            ("CE", "LEAM", "LSAN", "CE + CL", "CE + SCL"), range(5), strict=True)},
        **{f"LaCon-fusion - {title}": 9 - gain for title, gain in zip(
            ("CE", "LEAM", "LSAN", "CE + CL", "CE + SCL"), range(5), strict=True)},
        "LaCon-fusion - LaCon-vanilla": 3,
        "LEAM - CE at the mean": -4,
        "LSAN - CE at the mean": -3,
        "LaCon-fusion - CE at the mean": 4,
        "LaCon-vanilla at the mean - CE at the mean": 2,
        "LaCon-fusion - LaCon-vanilla at the mean": 2,
    },
    part_claims: {
        "LaCon - LaCon with one head": 1,
        "LaCon - LaCon without ICL": 5,
        "LaCon - LaCon without LCL": 2.5,
        "LaCon - LaCon without LER": 2,
        "LaCon - LaCon without projection head": 4,
        "LaCon without LCL - without ICL": 2.5,
        "LaCon without LER - without ICL": 3,
        "LaCon - CE behind the projection head": 7.5,
        "CE - CE behind the projection head": 1.5,
    },
    protocol_claims: {
        "few-shot: LaCon - CE": 2,
        "few-shot: labels begin at names - at random": 3,
        "few-shot, sst2: gain with 10 - with 100 a class": 8.5,
        "imbalance: LaCon - CE": 3,
        "imbalance, F1 of the minority: LaCon - CE": 10,
        "imbalance, F1: gain of the minority - of the majority": 6,
        "trec, 2 to 6 classes: LaCon-fusion - CE": (2 + 3 + 4 + 5 + 9) / 5,
        "trec, 2 to 6 classes: LaCon-fusion - CE + SCL": (1 + 2 + 3 + 4 + 5) / 5,
        "trec: gain over CE with 6 - with 2 classes": 7,
    },
}  # fmt: skip


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("table", CLAIMS, ids=lambda table: table.__name__)
def test_whether_a_claim_holds_is_tested(tmp_path, table, sign):
    invented(tmp_path, sign)
    _, rows = table(Results(CELLS, tmp_path))
    assert {row[0]: float(row[2]) for row in rows} == pytest.approx(
        {claim: sign * gain for claim, gain in CLAIMS[table].items()}, abs=0.011
    )
    for row in rows:
        if float(row[3]) < 0.05:
            assert row[-1] == ("yes" if float(row[2]) > 0 else "no: worse")
    assert any(float(row[3]) < 0.05 for row in rows)


def test_who_is_ahead(tmp_path):
    invented(tmp_path)
    assert ahead(Results(CELLS, tmp_path)) == [
        f"{title} is ahead of all five rivals on 4 of 4 tasks (sst2, cola, rte, trec)."
        for title in ("LaCon-vanilla", "LaCon-fusion")
    ]
    invented(tmp_path, -1)
    assert ahead(Results(CELLS, tmp_path)) == [
        f"{title} is ahead of all five rivals on 0 of 4 tasks."
        for title in ("LaCon-vanilla", "LaCon-fusion")
    ]
    assert ahead(Results(CELLS, tmp_path / "none")) == []


def test_tables_of_kept_cells(tmp_path):
    invented(tmp_path)
    results = Results(CELLS, tmp_path)
    header, rows = main_table(results)
    assert header[1:] == ["sst2", "cola", "rte", "trec"]
    assert rows[0][2] == "60.9 ± 0.8 / 33.5 ± 1.9 (6)", "CoLA is judged by Matthews' correlation"
    assert rows[0][3] == "67.3 ± 1.9 / 63.5 ± 1.9 (6)"
    assert rows[-2][:2] == ["LaCon-vanilla at the mean", " / 70.5 ± 1.9 (6)"]
    assert rows[-1] == ["always test's most frequent class", "70.0", "0.0", "70.0", "70.0"]
    assert [row[0] for row in few_shot_table(results)[1]] == ["sst2", "rte"]
    assert len(ablation_table(results)[1]) == len(paper.ABLATION)
    by_class = {(row[0], row[1]): row[2:] for row in by_class_table(results)[1]}
    assert by_class["cola", "CE"] == ["2.3 / 20.0 ± 0.0 (6)", "81.3 / 80.0 ± 0.0 (6)"]
    assert by_class["sst2", "LaCon-vanilla"] == [" / 30.0 ± 0.0 (6)", " / 84.0 ± 0.0 (6)"]
    assert [row[:2] for row in sweep_table(results)[1]] == [
        [what, task] for what in ("tau", "heads", "lambda") for task in ("rte", "sst2")
    ]


def test_the_page_tells_what_is_not_there(tmp_path):
    text = report(Results(CELLS, tmp_path), "python run.py", "", ("mnli", "dbpedia"))
    every = len(CELLS.every())
    gone = sum(one.config.tasks in (("mnli",), ("dbpedia",)) for one in CELLS.every())
    assert f"0 of {every - gone} cells are finished." in text
    assert "Not run, for their data is not there: mnli, dbpedia." in text
    assert "Effective rank" not in text


def test_what_always_saying_one_class_scores():
    assert always(0.7, 2, None) == 0.7
    assert always(0.7, 2, "matthews") == 0
    truth = [0] * 7 + [1, 1, 2]
    said = f1_score(truth, [0] * 10, average="macro", zero_division=0)
    assert always(0.7, 3, "macro_f1") == pytest.approx(said)
