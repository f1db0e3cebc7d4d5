"""`--config FILE`: settings in JSON or YAML, a run's own among them."""

import json

import pytest

TINY = ("--encoder", "tiny", "--epochs", "1", "--limit", "16", "--dev-limit", "8")


@pytest.fixture
def settings(tmp_path):
    def write(text, name="settings.yaml"):
        file = tmp_path / name
        file.write_text(text, "utf-8")
        return str(file)

    return write


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tasks: []", "--task: expected one, found none"),
        ("own_tasks: 5", "own_tasks: expected"),
        ("leaks_of: own\ntasks: [sst]", "leaks_of: expected --drop-leaks, found 'own' without it"),
        ("lr: much\ntasks: [sst]", "--lr: expected a number above 0"),
    ],
)
def test_a_wrong_file_is_refused_in_one_line(text, expected, settings, refused):
    assert expected in refused(2, "--mode", "single", "--config", settings(text))


def test_a_file_that_is_missing_or_has_a_key_twice_is_refused(refused, settings, tmp_path):
    single = ("--mode", "single", "--config")
    line = refused(1, *single, tmp_path / "no.yaml")
    assert "no.yaml: expected a .json or .yaml file of settings, found none" in line
    line = refused(1, *single, settings("seed: 1\nseed: 2"))
    assert "expected each key once, found seed twice" in line


def test_a_file_has_the_task_and_numbers_as_they_are_written(settings, ran, tmp_path):
    file = settings("tasks: [sst]\nlr: 1e-5\nencoder: tiny\nepochs: 1\nlimit: 16\n")
    folder = tmp_path / "run"
    ran("--mode", "single", "--config", file, "--output", folder)
    config = json.loads((folder / "config.json").read_text())
    assert (config["tasks"], config["lr"], config["epochs"]) == (["sst"], 1e-5, 1)


def test_the_configuration_of_a_run_on_own_data_trains_it_again(settings, ran, tmp_path):
    rows = [f"text of number {i},{'yn'[i % 2]}" for i in range(24)]
    (tmp_path / "mine.csv").write_text("\n".join(["t,y", *rows]) + "\n")
    task = f"mine={tmp_path}/mine.csv:type=classification,text=t,label=y"
    first, again = tmp_path / "first", tmp_path / "again"
    ran("--mode", "single", "--task", task, *TINY, "--output", first)
    ran("--mode", "single", "--config", first / "config.json", "--output", again)
    one, other = (json.loads((f / "metrics.json").read_text())["dev"] for f in (first, again))
    assert one == other
