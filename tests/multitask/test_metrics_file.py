"""The content of metrics.json: what is refused, and what a task may be named."""

import pytest

from common.errors import RunError
from common.files import write_json
from multitask.run_folder import RunFolder


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ({"dev": {"sst": 0.5}}, r"dev: sst: found 0\.5"),
        ({"dev": {"overall": {"accuracy": 0.5}}}, "dev: overall: found"),
        (
            {"test": {"sst": {"accuracy": 1.5}}},
            "accuracy: expected a number from 0 to 1",
        ),
        ({"history": [{"epoch": 1}]}, ".*required field `dev` - at `.*history"),
        ({"cut_texts": {"sst": [1]}}, ".*cut_texts"),
    ],
)
def test_impossible_metrics_are_refused_with_their_place(content, fault, tmp_path):
    write_json(tmp_path / "metrics.json", content)
    with pytest.raises(RunError, match=rf"metrics\.json: {fault}"):
        RunFolder(tmp_path).read_metrics()
