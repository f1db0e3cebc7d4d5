"""Measurement of a joint run: gradients, sketches, resuming, refusals."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from plain import plain_losses, step_terms
from tolerances import DEVIATIONS, assert_near, assert_near_in_norm

from common.atomic_files import remove
from common.errors import RunError, SettingsError
from multitask import STOP, RunConfig, measure_affinity, train
from multitask.affinity.estimators import SHARE, look_ahead
from multitask.affinity.measures import MeasureFiles, Measures
from multitask.affinity.probe import Probe
from multitask.affinity.run import FILE, MEASURES, faults
from multitask.affinity.run import JOINT as JOINT_RUN
from multitask.affinity.sketch import Sketch
from multitask.control import RunControl
from multitask.loop.gradients import GradientRows
from multitask.loop.trainer import Trainer
from multitask.storage.run_folder import RunFolder
from tasks.text_files import DataError

JOINT = RunConfig(
    tasks=("sst", "sts", "qqp"),
    encoder="tiny",
    limit=24,
    dev_limit=10,
    test_limit=10,
    epochs=2,
    batch_size=4,
)

pytestmark = pytest.mark.usefixtures("quick_intervals")


@pytest.fixture
def probe():
    one = Probe(JOINT)
    one.model.eval()
    return one


@pytest.fixture
def batches(probe):
    return [several[0] for several in probe.batches(1, 4).values()]


def weights_of(probe):
    return {name: value.clone() for name, value in probe.model.state_dict().items()}


def explicit_gradients(probe, batches):
    """The gradient (D,) of each task on the shared parameters, from a plain pass, and its loss."""
    shared = [p for several in probe.model.sections().values() for p in several]
    probe.model.encoder.embeddings.word.sparse = False
    found, losses = [], []
    for name, rows in zip(probe.tasks, batches, strict=True):
        values, _ = plain_losses(probe, name, rows)
        loss = torch.stack(list(values.values())).sum()
        gradients = torch.autograd.grad(loss, shared, allow_unused=True)
        flat = [
            (torch.zeros_like(p) if g is None else g).flatten()
            for p, g in zip(shared, gradients, strict=True)
        ]
        found.append(torch.cat(flat))
        losses.append(float(loss.detach()))
    probe.model.encoder.embeddings.word.sparse = True
    return shared, torch.stack(found), losses


# One round


def test_a_round_leaves_weights_and_gradients_as_they_were(probe, batches):
    before = weights_of(probe)
    probe.measure_round(batches)
    after = probe.model.state_dict()
    assert all(torch.equal(after[name], value) for name, value in before.items())
    assert all(one.grad is None for one in probe.model.parameters())


def test_losses_and_gram_matrices_are_those_of_explicit_gradients(probe, batches):
    losses, grams, _ = probe.measure_round(batches)
    _, rows, expected = explicit_gradients(probe, batches)
    terms = step_terms(probe)
    assert_near(losses, expected, terms)
    exact = rows.double() @ rows.double().T
    scale = float(torch.diagonal(exact).max())
    assert_near(grams.sum(0), exact, 2 * terms, scale=scale)


def test_look_ahead_is_the_effect_of_an_explicit_step(probe, batches):
    """Up to the curvature of the losses."""
    losses, grams, _ = probe.measure_round(batches)
    found = look_ahead(losses[None], grams[None])[0]
    shared, rows, before = explicit_gradients(probe, batches)
    kept = [p.detach().clone() for p in shared]
    effects = np.zeros_like(found)
    rate = SHARE * sum(before) / float((rows.double() ** 2).sum())
    for i, row in enumerate(rows):
        with torch.no_grad():
            for p, step in zip(shared, row.split([p.numel() for p in shared]), strict=True):
                p.sub_(rate * step.view_as(p))
            for j, name in enumerate(probe.tasks):
                values, _ = plain_losses(probe, name, batches[j])
                effects[i, j] = 1 - float(torch.stack(list(values.values())).sum()) / before[j]
            for p, old in zip(shared, kept, strict=True):
                p.copy_(old)
    np.testing.assert_allclose(found.diagonal(), effects.diagonal(), rtol=0.2)
    others = ~np.eye(len(found), dtype=bool)
    half = np.abs(effects[others]).max() / 2
    np.testing.assert_allclose(found[others], effects[others], rtol=0, atol=half)


def test_no_example_is_measured_twice_after_an_epoch_and_epochs_have_other_batches(probe):
    several = probe.batches(1, 100)
    for rows in several.values():
        assert len(rows) == 24 // JOINT.batch_size
        assert len(set(np.concatenate(rows).tolist())) == 24
    assert len(probe.batches(1, 4)["sst"]) == 4
    other = probe.batches(2, 100)["sst"]
    assert not all(np.array_equal(a, b) for a, b in zip(several["sst"], other, strict=True))


def test_too_few_examples_and_negative_losses_are_refused(probe, batches, monkeypatch):
    few = Probe(JOINT.changed(limit=4))
    with pytest.raises(RunError, match=r"4 or more batches of 4 examples of each task, found 1 of"):
        few.batches(1, 16)
    monkeypatch.setattr(probe, "differentiated_loss", lambda unit: -1.0)
    with pytest.raises(RunError, match="expected losses of 0 or more, found -1 of sst"):
        probe.measure_round(batches)


# Sketches


def rows_of(probe, batches):
    """The rows of gradients of a round, and the same as one matrix (m, D)."""
    for place, (name, rows) in enumerate(zip(probe.tasks, batches, strict=True)):
        values, _ = plain_losses(probe, name, rows)
        torch.stack(list(values.values())).sum().backward()
        probe.rows.collect(place)
    probe.rows.reduce()
    dense = torch.stack(probe.rows.buffer[: len(batches)])
    words = torch.zeros(len(batches), *probe.rows.sparse.shape)
    words[:, probe.rows.sparse_indices] = probe.rows.sparse_values
    return torch.cat([dense, words.flatten(1)], 1).double()


def test_with_a_column_per_coordinate_a_sketch_keeps_products_exactly(probe, batches):
    whole = rows_of(probe, batches)
    columns = whole.shape[1]
    sketch = Sketch(probe.rows, seed=1, columns=columns)
    found = torch.stack([sketch(place) for place in range(len(batches))]).double()
    assert_near_in_norm(found @ found.T, whole @ whole.T, 1)
    assert torch.equal(found.abs(), whole.abs())


def test_products_of_sketches_are_near_those_of_gradients(probe, batches):
    whole = rows_of(probe, batches)
    exact, columns = whole @ whole.T, 1021
    lengths = exact.diagonal().sqrt()
    for seed in range(3):
        sketch = Sketch(probe.rows, seed, columns)
        found = torch.stack([sketch(place) for place in range(len(batches))]).double()
        errors = (found @ found.T - exact) / torch.outer(lengths, lengths)
        # Their standard deviation is at most sqrt(2 / columns), for a vector with itself.
        assert float(errors.abs().max()) < DEVIATIONS * np.sqrt(2 / columns)


def test_the_sketch_of_a_seed_is_the_same_again():
    parameters = {"a": [torch.nn.Parameter(torch.zeros(30))]}
    found = []
    for _ in range(2):
        rows = GradientRows(parameters)
        parameters["a"][0].grad = torch.arange(30.0)
        rows.collect(0)
        found.append(Sketch(rows, 7, columns=11)(0))
    assert torch.equal(*found)


# Files and runs


def test_measures_are_read_as_written_and_belong_to_one_run(tmp_path):
    shapes = ((2, 3), (2, 1, 3, 3), (2, 3, 5))
    one = Measures(*(np.random.default_rng(0).normal(size=s) for s in shapes), ("layer 1",), 1.5)
    file = tmp_path / "measures" / "one.npz"
    assert Measures.load(file, "a") is None
    one.save(file, "a")
    found = Measures.load(file, "a")
    assert (found.parts, found.seconds) == (("layer 1",), 1.5)
    assert all(np.array_equal(getattr(found, n), getattr(one, n)) for n in ("losses", "grams"))
    assert Measures.load(file, "b") is None
    whole = file.read_bytes()
    for damaged in (b"", b"PK", b"text", whole[:300], whole.replace(b"losses.npy", b"losses.txt")):
        file.write_bytes(damaged)
        with pytest.raises(RunError, match=r"one\.npz: expected measures of gradients, found"):
            Measures.load(file, "a")


@pytest.mark.parametrize(
    "change",
    [
        {"parts": ("layer 1", "layer 2")},
        {"sketches": np.zeros((2, 2, 5))},
        {"losses": np.zeros(3)},
        {"losses": np.full((2, 3), "a")},
        {"grams": np.full((2, 1, 3, 3), np.nan)},
        {"seconds": "soon"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_measures_that_do_not_fit_are_refused(change, tmp_path):
    arrays = (np.zeros((2, 3)), np.zeros((2, 1, 3, 3)), np.zeros((2, 3, 5)))
    replace(Measures(*arrays, ("layer 1",), 1.5), **change).save(tmp_path / "one.npz", "a")
    with pytest.raises(RunError, match=r"one\.npz: expected measures of gradients, found"):
        Measures.load(tmp_path / "one.npz", "a")


@pytest.fixture(scope="module")
def measured(tmp_path_factory, quick_intervals):
    folder = tmp_path_factory.mktemp("affinity")
    return folder, measure_affinity(JOINT, folder, rounds=4, seeds=2)


def without_times(folder):
    found = json.loads((folder / FILE).read_text())
    return {key: one for key, one in found.items() if not key.endswith("seconds")}


def test_the_joint_run_is_the_run_that_is_trained_without_measurement(measured, tmp_path):
    folder, _ = measured
    plain = train(JOINT.changed(mode="multitask", keep="last", patience=None), tmp_path / "plain")
    for run in (folder / "joint-seed11711", plain.folder):
        assert RunFolder(run).metrics() is not None
    weights = [
        (RunFolder(run).best / "model.safetensors").read_bytes()
        for run in (folder / "joint-seed11711", plain.folder)
    ]
    assert weights[0] == weights[1]


def test_the_result_has_all_estimates_and_is_the_content_of_the_file(measured):
    folder, found = measured
    assert found.seeds == (11711, 11712)
    assert found.rounds == 2 * JOINT.epochs * 4
    stored = json.loads((folder / FILE).read_text())
    assert stored == found.to_json()
    assert list(stored["estimates"]) == ["gram", "lookahead", "linear"]
    for one in found.estimates.values():
        assert len(one.subsets) == 7
        low, high = one.ends
        assert (low <= high).all()
        assert one.groupings[-1].total >= one.groupings[0].total
        ends = np.stack([one.ends[:, 1, 0], one.ends[:, 0, 1]], 1)
        np.testing.assert_allclose(one.interval((0, 1)), ends, rtol=1e-12)
    pair = found.gains("sts", "sst", estimator="linear")
    # 1 minus a quotient of sums of at most a few hundred float64 terms, in another order.
    assert pair["sst"] == pytest.approx(found.estimates["linear"].pairs[1, 0], abs=1e-12)
    with pytest.raises(ValueError, match=r"expected one of sst, sts, qqp, found 'rte'"):
        found.gains("sst", "rte")


def test_a_second_call_measures_nothing_and_one_for_more_rounds_says_how(measured, monkeypatch):
    folder, _ = measured
    before = without_times(folder)
    monkeypatch.setattr(Probe, "measure", None)
    measure_affinity(JOINT, folder, rounds=4, seeds=2)
    assert without_times(folder) == before
    line = r"rounds-6.npz: expected measures with rounds 6, found those with 4; .* --overwrite"
    with pytest.raises(RunError, match=line):
        measure_affinity(JOINT, folder, rounds=6)


def test_measures_of_another_epoch_or_other_data_are_not_used(measured, tmp_path):
    folder = shutil.copytree(measured[0], tmp_path / "copy")
    kept = folder / f"{MEASURES}11711"
    one, two = (MeasureFiles(kept, folder / f"{JOINT_RUN}11711", 4).file(k) for k in (1, 2))
    first = one.read_bytes()
    one.write_bytes(two.read_bytes())
    with pytest.raises(RunError, match=r"epoch-1-.*: expected the measures of this run, found non"):
        measure_affinity(JOINT, folder, rounds=4)
    one.write_bytes(first)
    measure_affinity(JOINT, folder, rounds=4)
    (folder / f"{JOINT_RUN}11711" / "data.json").write_text('{"sst train": "of another file"}')
    with pytest.raises(RunError, match=r"expected the files with which this run began"):
        measure_affinity(JOINT, folder, rounds=4)
    remove(folder / f"{JOINT_RUN}11711")  # the next one measures again
    one.write_bytes(b"of another run")
    again = measure_affinity(JOINT, folder, rounds=4)
    assert np.array_equal(
        again.chosen.pairs, measure_affinity(JOINT, folder, rounds=4).chosen.pairs
    )
    assert one.read_bytes() != b"of another run"


def test_another_number_of_rounds_in_the_middle_is_refused_before_training(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(Probe, "measure", interrupt_in(2, Probe.measure))
        with pytest.raises(KeyboardInterrupt):
            measure_affinity(JOINT, tmp_path, rounds=4)
    with pytest.raises(RunError, match="expected measures with rounds 6, found those with 4"):
        measure_affinity(JOINT, tmp_path, rounds=6)
    found = measure_affinity(JOINT, tmp_path, rounds=4)
    assert found.rounds == 2 * 4


def test_overwriting_with_missing_data_keeps_the_measures(measured, tmp_path):
    folder = shutil.copytree(measured[0], tmp_path / "copy")
    nowhere = JOINT.changed(data="nowhere")
    with pytest.raises(DataError, match="expected a data file, found none"):
        measure_affinity(nowhere, folder, rounds=4, overwrite=True)
    before = without_times(folder)
    measure_affinity(JOINT, folder, rounds=4, seeds=2)
    assert without_times(folder) == before


def test_control_overwrites_and_a_stopped_run_is_no_measurement(tmp_path):
    control = RunControl(callbacks=(lambda end: STOP,))
    for again in (False, True):
        with pytest.raises(RunError, match="2 epochs, found one stopped by a callback after 1"):
            measure_affinity(JOINT, tmp_path, rounds=4, control=control, overwrite=again)
    found = measure_affinity(JOINT, tmp_path, rounds=4, control=RunControl(overwrite=True))
    assert found.rounds == 2 * 4


def test_too_few_examples_are_refused_before_training(tmp_path):
    with pytest.raises(RunError, match="expected 4 or more batches of 24 examples of each task"):
        measure_affinity(JOINT.changed(batch_size=24), tmp_path)
    assert not list(tmp_path.rglob("best"))


def test_gains_need_different_known_tasks(measured):
    found = measured[1]
    for names, given in (((), "none"), (("sst", "sst"), "sst, sst")):
        with pytest.raises(ValueError, match=f"expected different tasks, found {given}"):
            found.gains(*names)
    with pytest.raises(ValueError, match="expected one of gram, lookahead, linear, found 'grams'"):
        found.gains("sst", "sts", estimator="grams")


def interrupt_in(epoch, measure):
    def stop(self, weights, number, rounds):
        if number == epoch:
            raise KeyboardInterrupt
        return measure(self, weights, number, rounds)

    return stop


def check_stopped(owner, method, stop, measured, folder, monkeypatch):
    """Check that a measurement that `stop` interrupts goes on to the uninterrupted one's result."""
    with monkeypatch.context() as patch:
        patch.setattr(owner, method, stop)
        with pytest.raises(KeyboardInterrupt):
            measure_affinity(JOINT, folder, rounds=4, seeds=2)
    measure_affinity(JOINT, folder, rounds=4, seeds=2)
    assert without_times(folder) == without_times(measured[0])


@pytest.mark.parametrize("epoch", [1, 2])
def test_a_run_that_is_stopped_while_it_measures_goes_on(epoch, measured, tmp_path, monkeypatch):
    check_stopped(
        Probe, "measure", interrupt_in(epoch, Probe.measure), measured, tmp_path, monkeypatch
    )


@pytest.mark.parametrize("epoch", [1, 2])
def test_a_run_that_is_stopped_while_it_scores_measures_the_weights_of_each_epoch(
    epoch, measured, tmp_path, monkeypatch
):
    evaluate = Trainer.evaluate

    def stop(self):
        if len(self.progress.history) == epoch - 1:
            raise KeyboardInterrupt
        return evaluate(self)

    check_stopped(Trainer, "evaluate", stop, measured, tmp_path, monkeypatch)


# Settings


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"tasks": ("sst",)}, "tasks: expected two or more, found sst"),
        ({"freeze_encoder": True}, "freeze_encoder: expected an encoder in training"),
        ({"probe_epochs": 1}, "probe_epochs: expected an encoder in training"),
        ({"sampling": "hybrid"}, "sampling hybrid: expected all tasks in every epoch"),
        ({"keep": "best"}, "keep: expected last, because each epoch is measured, found best"),
        ({"patience": 2}, "patience: expected None"),
    ],
)
def test_configurations_without_gradients_of_all_tasks_are_refused(changes, line, tmp_path):
    with pytest.raises(SettingsError, match=line):
        measure_affinity(JOINT.changed(**changes), tmp_path)
    assert not list(tmp_path.iterdir())


def test_wrong_arguments_and_folders_are_refused(tmp_path):
    known = {"estimator": "gram", "groups": 2, "rounds": 4, "seeds": 1}
    assert not list(faults(JOINT, **known))
    for name, value, line in (
        ("estimator", "grams", "found 'grams'; did you mean gram?"),
        ("rounds", 3, "rounds: expected an even number from 4, found 3"),
        ("rounds", 2, "rounds: expected an even number from 4, found 2"),
        ("groups", 0, "groups: expected a number from 1, found 0"),
        ("seeds", 0, "seeds: expected a number from 1, found 0"),
    ):
        (found,) = faults(JOINT, **known | {name: value})
        assert line in found
    with pytest.raises(SettingsError, match="rounds: expected a whole number, found '4'"):
        measure_affinity(JOINT, tmp_path, rounds="4")
    (tmp_path / "notes.txt").touch()
    with pytest.raises(RunError, match=r"mode affinity, found notes.txt; choose another --output"):
        measure_affinity(JOINT, tmp_path)
    (tmp_path / "notes.txt").unlink()
    (tmp_path / "advice").mkdir()  # of the user: there is no measurement
    with pytest.raises(RunError, match=r"mode affinity, found advice; choose another --output"):
        measure_affinity(JOINT, tmp_path)
