"""Figures and the Python code of docs/comparing.md."""

import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from common.json_files import read_json
from multitask.settings.config import RunConfig
from studies.until_sure import sentence
from studies.until_sure.sealed_comparison import read_comparison, verify
from studies.until_sure.simulation import TINY
from studies.until_sure.stopping import A_BETTER, B_BETTER, SMALL

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "comparing.md").read_text("utf-8")
RESULTS = ROOT / "results" / "until-sure"
CASES = read_json(RESULTS / "simulation.json")["cases"]


def row(case: dict[str, Any]) -> str:
    """Return a row of the page's table."""
    found = case["verdicts"]
    shares = [case["wrong"], found[A_BETTER] + found[B_BETTER], found[SMALL]]
    cells = [case["noise"], f"{case['effect']:g}", *(f"{share:.1%}" for share in shares)]
    cells += [f"{case['pairs']['mean']:.1f}", f"{case['runs_saved']:.0%}"]
    cells += [f"{case['settled_within_fixed']:.0%}", f"{case['fixed_t_test_finds']:.0%}"]
    return f"| {' | '.join(cells)} |"


def plain(noise: str, margin: float) -> list[dict[str, Any]]:
    """Return the cases of new seeds only."""
    return [
        one
        for one in CASES
        if (one["noise"], one["margin"], one["deviation_of_examples"]) == (noise, margin, 0)
    ]


def test_the_table_is_that_of_the_stored_simulation():
    for noise in ("normal", "t3"):
        for case in plain(noise, 1.5):
            assert row(case) in PAGE


def test_the_sentences_on_wrong_verdicts_are_those_of_the_stored_simulation():
    (normal,), (heavy,) = plain("normal", TINY), plain("t3", TINY)
    (skewed,), (usual,) = plain("exponential", TINY), plain("exponential", 1.5)
    wrong = f"{normal['wrong']:.1%} of the verdicts are wrong (heavy tails: {heavy['wrong']:.1%})"
    text = " ".join(PAGE.split())
    assert wrong in text
    assert f"finds a difference in {normal['t_test_after_each_pair_finds']:.0%}" in text
    assert f"{usual['wrong']:.1%} (with the margin) and {skewed['wrong']:.1%} (with none)" in text


@pytest.mark.parametrize("name", ["pooling", "surgery"])
def test_the_real_pairs_are_those_of_the_sealed_files(name):
    content = read_comparison(RESULTS / f"{name}.json")
    assert {line for _, line in verify(RESULTS / f"{name}.json")} == {None}
    said, _, _ = sentence(content).rpartition("; ")[0].rpartition("; ")
    assert said in " ".join(PAGE.split())


@pytest.mark.slow
def test_the_python_code_of_the_page_runs(tmp_path, monkeypatch, capsys):
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    small = partial(RunConfig, encoder="tiny", linear="mkl")
    monkeypatch.setattr("multitask.RunConfig", small, raising=False)
    exec(compile(code, "comparing.md", "exec"), {})
    assert "3 pairs" in capsys.readouterr().out.splitlines()[-1]
