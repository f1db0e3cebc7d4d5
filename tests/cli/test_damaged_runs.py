"""A damaged file of a run ends in a right answer or in one line that says what to do."""

import io
import random
import shutil
import sys
from pathlib import Path

import pytest
from run_files import prediction_bytes

COMMANDS = {
    "predict": lambda run, out: ["--mode", "predict", "--run", run],
    "evaluate": lambda run, out: ["--mode", "evaluate", "--predictions", run],
    "ensemble": lambda run, out: ["--mode", "ensemble", "--runs", run, "--output", out],
}


def damage(file: Path, kind: str, draw: random.Random) -> None:
    content = bytearray(file.read_bytes()) or bytearray(1)
    place = draw.randrange(len(content))
    file.unlink()
    if kind == "a folder":
        file.mkdir()
    elif kind == "a flipped bit":
        content[place] ^= 1 << draw.randrange(8)
        file.write_bytes(content)
    elif kind != "gone":
        file.write_bytes(content[: place if kind == "truncated" else 0])


@pytest.mark.parametrize("kind", ["truncated", "a flipped bit", "gone", "a folder", "empty"])
@pytest.mark.parametrize("state", ["finished", "interrupted"])
def test_damage_ends_in_a_right_answer_or_one_line(
    state, kind, finished, interrupted, run, tmp_path, monkeypatch
):
    whole, _ = finished if state == "finished" else interrupted
    draw, expected = random.Random(kind), prediction_bytes(finished[0])
    files = [one for one in sorted(whole.rglob("*")) if one.is_file() and one.suffix != ".csv"]
    for file in draw.sample(files, 4):
        folder = tmp_path / "damaged"
        shutil.copytree(whole, folder)
        damage(folder / file.relative_to(whole), kind, draw)
        again = [*finished[1], "--output", folder, "--resume"]
        for argv in (*(make(folder, tmp_path / "out") for make in COMMANDS.values()), again):
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a cat\ta dog\n")))
            result = run(*argv)  # an exception that is not reported in lines fails here
            if result.returncode:
                assert result.stderr.strip(), (file, argv)
            elif argv is again:
                assert prediction_bytes(folder) == expected, file
        shutil.rmtree(folder)
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
