"""What comes from elsewhere can neither run code, nor leave its folder, nor control a terminal."""

import io
import json
import pickle
import shutil
import sys
from pathlib import Path

import pytest

import cli
from common.entry_point import run_and_report
from common.json_files import read_json, write_json
from multitask.config import RunConfig
from multitask.run_folder import default_folder
from reports.tables import text_table

TINY = ("--encoder", "tiny", "--epochs", "1", "--limit", "20")


class Shell:
    """Unpickling it would run a command."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> tuple[object, tuple[str]]:
        import os

        return os.system, (self.command,)


def unsealed_copy(run: Path, folder: Path) -> None:
    """A run's encoder as somebody else may hand it on."""
    shutil.copytree(run / "checkpoint" / "best", folder)
    (folder / "SHA256SUMS").unlink()


def encode(encoder: Path, place: Path) -> tuple[object, ...]:
    """Embed this file's lines."""
    flags = ("--input", __file__, "--output", place / "embeddings.npy")
    return ("--mode", "encode", "--encoder", encoder, *flags)


def test_a_pickle_that_runs_a_command_is_refused(finished, refused, tmp_path):
    folder, marker = tmp_path / "encoder", tmp_path / "ran"
    unsealed_copy(finished[0], folder)
    (folder / "model.safetensors").unlink()
    content = pickle.dumps({"word": Shell(f"touch {marker}")}, 2)
    (folder / "pytorch_model.bin").write_bytes(content)
    line = refused(1, *encode(folder, tmp_path))
    assert "pytorch_model.bin" in line or "weights cannot be read" in line
    assert not marker.exists()


@pytest.mark.parametrize("path", ["../secret", "/etc", "1_Pooling/../../secret"])
def test_modules_and_shards_cannot_be_outside_their_folder(finished, refused, tmp_path, path):
    folder = tmp_path / "encoder"
    unsealed_copy(finished[0], folder)
    modules = json.loads((folder / "modules.json").read_text())
    kept = json.dumps(modules)
    modules[1]["path"] = path
    (folder / "modules.json").write_text(json.dumps(modules))
    assert "a path that leaves the folder" in refused(1, *encode(folder, tmp_path))
    (folder / "modules.json").write_text(kept)
    (folder / "model.safetensors").rename(tmp_path / "elsewhere.safetensors")
    index = {"weight_map": {"x": "../elsewhere.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    assert str(folder) in refused(1, *encode(folder, tmp_path))


@pytest.mark.parametrize(
    "changes",
    [
        {"tasks": ["../../../etc/passwd"]},
        {"task_options": 5},
        {"sampling": "nope"},
        {"encoder": "\x1b]0;title\x07"},
    ],
    ids=str,
)
def test_a_run_of_strange_settings_is_refused(run_copy, refused, run, changes, tmp_path):
    folder, _ = run_copy
    other = Path(shutil.copytree(folder, tmp_path / "other"))
    write_json(folder / "config.json", read_json(folder / "config.json") | changes)
    for mode in (
        ("compare", "--runs", folder, other),
        ("ensemble", "--method", "soup", "--runs", folder, other),
        ("predict", "--run", folder, "--input", __file__),
        ("export", "--run", folder, "--output", tmp_path / "out"),
    ):
        line = refused(1, "--mode", *mode)
        assert f"{folder / 'config.json'}: {next(iter(changes))}: expected" in line
    assert not list(tmp_path.rglob("comparison*"))
    found = run("--mode", "runs", "--root", folder.parent)
    assert found.returncode == 1
    assert f"cannot be read: {folder / 'config.json'}: {next(iter(changes))}" in found.stdout
    assert "other" in found.stdout  # the others are shown


@pytest.mark.parametrize("name", ["../../evil", "..", "/tmp/evil", "a/../../../evil"])
def test_the_name_of_an_encoder_cannot_move_a_runs_folder(name):
    folder = default_folder(RunConfig(mode="single", tasks=("sst",), encoder=name))
    assert folder.parent == Path("runs")
    assert ".." not in folder.parts


def test_no_secret_of_the_environment_is_written(run, small, tmp_path, monkeypatch):
    secret = "hf_verysecretverysecretverysecret"
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, secret)
    folder = tmp_path / "run"
    command = ("--mode", "single", "--task", "sst", *TINY, "--data", small)
    assert run(*command, "--output", folder).returncode == 0
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) > 5
    assert not [path for path in files if secret.encode() in path.read_bytes()]


ESCAPES = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e"


def shown(text: str) -> None:
    """What reaches a terminal has the escapes as text, and none of their characters."""
    assert r"\x1b]0;owned\x07\x1b[2J\x9b31m\u202e" in text
    assert all(letter == "\n" or letter.isprintable() for letter in text)


def test_no_escape_of_a_prediction_file_reaches_the_terminal(run, tmp_path):
    """Ids of files that somebody else sent are quoted where they are wrong."""
    (tmp_path / "sst-dev-output.csv").write_text(
        f"id \t Predicted_Sentiment \na{ESCAPES}b , 1 \na{ESCAPES}b , 1 \n"
    )
    found = run("--mode", "evaluate", "--predictions", tmp_path)
    assert found.returncode == 1
    shown(found.stderr)
    assert "expected an id of the data, found a" in found.stderr


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("mode", ["mine", "predict"])
def test_no_escape_of_a_sentence_reaches_the_terminal_and_files_have_it_as_it_is(
    finished, run, tmp_path, mode, monkeypatch
):
    texts = tmp_path / "texts.txt"
    texts.write_text(f"red{ESCAPES}\nblue\n")
    tasks = ("--tasks", "sst") if mode == "predict" else ()
    command = ("--mode", mode, "--run", finished[0], "--input", texts, *tasks)
    piped = run(*command)
    assert ESCAPES in piped.stdout
    target = tmp_path / "out.tsv"
    assert run(*command, "--output", target).returncode == 0
    assert target.read_text() == piped.stdout
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", Terminal())
        assert cli.main([str(one) for one in command]) == 0
        screen = sys.stdout.getvalue()
    shown(screen.replace("\t", " "))


@pytest.mark.parametrize("place", [f"a{ESCAPES}", f"\n{ESCAPES}\n"])
def test_no_escape_of_a_name_reaches_the_terminal(capsys, place):
    def work() -> None:
        raise FileNotFoundError(2, "No such file or directory", place)

    assert run_and_report("program", work) == 1
    shown(capsys.readouterr().err)
    shown(text_table(["run", place], [[place, "1"]]))


def test_no_archive_is_unpacked_and_nothing_is_unpickled_but_weights():
    """Who adds one has to think of names that leave their folder, and of code in pickles."""
    root = Path(sys.modules["cli"].__file__).parents[1]
    words = (
        "extractall",
        "unpack_archive",
        "allow_pickle=True",
        "pickle.load",
        "weights_only=False",
    )
    found = [
        f"{path.relative_to(root)}: {word}"
        for room in ("minbert", "losses", "tasks", "multitask", "pretrain", "ensemble", "reports")
        for path in (root / room).rglob("*.py")
        for word in words
        if word in path.read_text()
    ]
    assert found == []
