"""A wrong setting is refused by the same line in Python, in flags, in JSON and in YAML."""

import json
import math
import random
import re
import time
from dataclasses import fields
from typing import Any

import pytest
import yaml

from cli import main
from cli.settings_flags import scalars, takes_names, takes_several
from common.errors import SettingsError
from common.settings import Settings, accepts, hints_of
from multitask.config import RunConfig
from multitask.methods import owners

COMMAND = ("--mode", "multitask", "--tasks", "sst", "qqp", "sts", "--encoder", "tiny")
WRONG = (-1, 0, 1.5, -2.5, 10**9, math.nan, "abc", "zzz")
# Flags that name files and folders take any text, and those of the first group have no value.
SKIPPED = {
    *("mode", "tasks", "task_options", "own_tasks", "preset", "outside_tasks", "regularizers"),
    *("data", "encoder", "init", "drop_leaks", "leaks_of", "loss_sizes", "measured_examples"),
    # Of the form R on the command line.
    *("projection_head", "limit", "scl_preference"),
}


def settings():
    """Names and types of the settings of mode multitask."""
    hints = hints_of(RunConfig)
    found = {one.name: hints[one.name] for one in fields(RunConfig)}
    for key, by_role in owners().items():
        if "projection_head" not in by_role:
            method = next(iter(by_role.values()))[0]
            if hasattr(method, "of_task") or "objective" not in by_role:
                found[key] = hints_of(method)[method.by_key()[key].name]
    return {key: hint for key, hint in found.items() if key not in SKIPPED and hint is not bool}


def wrong_values(hint):
    """Values that a setting cannot have, and that flags can spell."""
    texts = [value for value in WRONG if isinstance(value, str)]
    if (isinstance(hint, type) and issubclass(hint, Settings)) or hint is Any:
        return texts  # of the role of a method: no method has such a name
    values = WRONG if {int, float} & set(scalars(hint)) else texts
    if takes_several(hint) and not takes_names(hint):
        values = [[value] for value in values]
    return [value for value in values if not accepts(hint, value)]


def draws():
    draw = random.Random(11711)
    known = {key: wrong_values(hint) for key, hint in settings().items()}
    known = {key: values for key, values in known.items() if values}
    return [(key, draw.choice(known[key])) for key in draw.choices(sorted(known), k=200)]


def line_of_python(key, value):
    with pytest.raises(SettingsError) as found:
        RunConfig(mode="multitask", tasks=("sst", "qqp", "sts"), encoder="tiny", **{key: value})
    return str(found.value)


def line_of_command(capsys, *further):
    with pytest.raises(SystemExit) as ended:
        main([*COMMAND, *further])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    return said.removeprefix("run.py: ").removesuffix(" (see --help)\n")


def plain(line):
    """A line in which flags are written as settings."""
    return re.sub(r"--([a-z-]+)", lambda found: found[1].replace("-", "_"), line)


def test_two_hundred_wrong_settings_are_refused_by_the_same_line(tmp_path, capsys):
    cases = draws()
    assert len({key for key, _ in cases}) > 30
    for key, value in cases:
        begin = time.monotonic()
        expected = line_of_python(key, value)
        assert "expected" in expected
        assert "found" in expected
        text = [str(value)] if not isinstance(value, list) else list(map(str, value))
        flag = f"--{key.replace('_', '-')}"
        assert plain(line_of_command(capsys, flag, *text)) == plain(expected)
        for name, content in (("a.json", json.dumps), ("a.yaml", yaml.safe_dump)):
            (tmp_path / name).write_text(content({key: value}), "utf-8")
            found = line_of_command(capsys, "--config", str(tmp_path / name))
            assert plain(found) == plain(expected), (key, value, name)
        assert time.monotonic() - begin < 60
