"""Names of run folders and what may be written where."""

from dataclasses import replace

import pytest

from common.errors import RunError, SettingsError
from common.files import write_json
from minbert.checksums import STATE
from multitask.regularizers import Smart
from multitask.run_folder import begin, check_inputs_stay, file_digests, holds, locked
from multitask.runs import Run
from multitask.settings.config import RunConfig

DATA = {"sts train": "1", "sts dev": "2"}
CONFIG = RunConfig(mode="single", tasks=("sts",))


def prepare(folder, config=CONFIG, resume=False, overwrite=False):
    """Prepare the folder of a run as `complete` does; return whether the run is finished."""
    run = Run(folder)
    with locked(run):
        if not overwrite and holds(run, config, DATA, resume):
            return True
        begin(run, config.to_json(), DATA)
        return False


def test_a_configuration_is_restored_from_its_file_and_others_are_refused(tmp_path):
    config = replace(
        CONFIG,
        mode="multitask",
        tasks={"sst": {}, "sts": {"head": "cosine"}},
        limit={"sst": 100, "sts": 0.5},
        combiner={"name": "epo", "preference": (0.25, 0.75)},
        regularizers=Smart({"sts": 3.0}),
    )
    write_json(tmp_path / "config.json", config.to_json())
    assert Run(tmp_path).config.to_json() == config.to_json()
    for other, line in (({"former": 1}, "no setting 'former'"), ({"lr": 1}, "no setting 'lr'")):
        write_json(tmp_path / "config.json", config.to_json() | other)
        with pytest.raises(RunError, match=rf"config\.json: .*{line}"):
            _ = Run(tmp_path).config


def begin_run(folder):
    """A run that has finished an epoch."""
    prepare(folder)
    (folder / "last").mkdir()
    write_json(folder / "last" / STATE, {})


def test_the_same_run_has_equal_configuration_and_data(tmp_path):
    begin_run(tmp_path)
    assert not holds(Run(tmp_path), CONFIG, DATA, resume=True)
    gone = {"sts dev": "2"}  # a finished run does not need its files
    assert not holds(Run(tmp_path), CONFIG, gone, resume=True)
    for config, data, line in (
        (replace(CONFIG, seed=3), DATA, "a run with another seed: 11711; .* or add --overwrite"),
        (replace(CONFIG, optimizer={"lr": 0.1}), DATA, "a run with another optimizer lr: 0.0001; "),
        (CONFIG, DATA | {"sts dev": "3"}, "a run with another sts dev; "),
    ):
        with pytest.raises(RunError, match=line):
            holds(Run(tmp_path), config, data, resume=True)


def test_an_incomplete_prediction_file_is_no_result(tmp_path):
    prepare(tmp_path)
    (tmp_path / "predictions" / ".sts-dev-output.csv.1.new").write_text("half")
    assert not prepare(tmp_path, replace(CONFIG, seed=3))
    assert not list((tmp_path / "predictions").iterdir())


@pytest.mark.parametrize("name", ["encoder", "init", "teacher"])
def test_a_run_does_not_overwrite_its_own_sources(tmp_path, name):
    (tmp_path / "run" / "best").mkdir(parents=True)
    source = str(tmp_path / "run" / "best")
    config = replace(CONFIG, **{name: (source,) if name == "teacher" else source})
    with pytest.raises(SettingsError, match=r"output: the run reads .*best in this folder"):
        check_inputs_stay(tmp_path / "run", config)


def test_the_dev_of_pre_training_has_a_checksum():
    config = RunConfig(mode="pretrain", objective="simcse", tasks=("sst",))
    assert "sts dev" in file_digests(config)
    assert "sts dev" not in file_digests(
        RunConfig(mode="pretrain", objective="supcon", tasks=("sst",))
    )
