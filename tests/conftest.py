"""Settings of all tests: threads, Hypothesis, and what figures would depend on."""

import os
from collections.abc import Callable, Iterator
from unittest import mock

import hypothesis
import pytest

if "PYTEST_XDIST_WORKER" in os.environ:  # a process a core: more threads would only get in the way
    os.environ["OMP_NUM_THREADS"] = "1"

# Every run has the same examples, and as much time for each as a loaded machine needs.
hypothesis.settings.register_profile(
    "repeatable",
    derandomize=True,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("repeatable")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--gpu", action="store_true", help="let the tests use a GPU")


def pytest_configure(config: pytest.Config) -> None:
    if not config.getoption("--gpu"):  # many tests compare with tensors on the CPU
        os.environ["CUDA_VISIBLE_DEVICES"] = ""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the slow tests, those of the README first: no core waits at the end."""
    items.sort(
        key=lambda one: (one.get_closest_marker("slow") is None, one.path.parent.name != "tests")
    )


@pytest.fixture(autouse=True, scope="session")
def without_bfloat16() -> Iterator[Callable[..., object]]:
    """Precision `auto` is fp32 in this process, so that no figure depends on the CPU.

    Gives the function that decides elsewhere.
    """
    from minbert import precision

    support = precision.bfloat16_support
    with mock.patch.object(precision, "bfloat16_support", return_value=(False, "a test")):
        yield support


@pytest.fixture(scope="module")
def quick_comparisons() -> Iterator[None]:
    """Comparisons draw few bootstrap samples."""
    from reports import comparison

    with mock.patch.object(comparison, "RESAMPLES", 50):
        yield


@pytest.fixture
def bfloat16(
    monkeypatch: pytest.MonkeyPatch, without_bfloat16: Callable[..., object]
) -> Callable[[bool], None]:
    """`bfloat16(True)` is a CPU with bfloat16 instructions, `bfloat16(False)` one without."""
    from minbert import precision

    def give(has: bool) -> None:
        monkeypatch.setattr(precision, "bfloat16_support", without_bfloat16)
        monkeypatch.setattr(precision, "has_bfloat16", lambda: has)

    return give
