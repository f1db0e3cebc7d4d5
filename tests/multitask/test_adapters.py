"""Adapters in training: own parameters for each task, which follow only its losses."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from plain import plain_losses, step_terms
from safetensors.torch import load_file
from tolerances import assert_near_in_norm

from common.errors import SettingsError
from multitask.adapters import PAL, Copies, LoRA
from multitask.assembly import assemble, build_model
from multitask.config_tasks import build_tasks
from multitask.loop.streams import next_batches
from multitask.passes import EncoderPass
from multitask.run import complete
from tasks import CS224N

LORA = LoRA(rank=4)
PALS = PAL(rank=8)
COPIES = Copies(layers=(2,))
EACH = [LORA, PALS, COPIES]
EVERY = pytest.mark.parametrize("adapter", EACH, ids=[one.name for one in EACH])


def batches_of(trainer, *tasks):
    return next_batches(trainer.streams, np.array([[*trainer.tasks].index(task) for task in tasks]))


def as_trained(trainer):
    """Give every adapter an effect: its zeros become random numbers."""
    with torch.no_grad():
        for parameter in trainer.model.adapters.parameters():
            if not parameter.any():
                parameter.normal_(std=0.1)


def gradients(module):
    return {
        n: p.grad.to_dense().clone() for n, p in module.named_parameters() if p.grad is not None
    }


def flat(tensors):
    return torch.cat([value.flatten() for value in tensors.values()])


def copied(module):
    return {name: value.clone() for name, value in module.state_dict().items()}


@pytest.mark.parametrize("adapter", EACH[:2], ids=["lora", "pal"])
def test_a_run_with_new_adapters_has_the_same_first_step(make_trainer, adapter):
    found = []
    for changes in ({}, {"adapter": adapter}):
        trainer = make_trainer(dropout=False, **changes)
        result = trainer.gradient(batches_of(trainer, "sst", "qqp", "sts"))
        found.append((result.losses, gradients(trainer.model.bi_encoder)))
    (losses, plain), (same_losses, adapted) = found
    assert np.array_equal(losses, same_losses)
    assert plain.keys() == adapted.keys()
    assert_near_in_norm(flat(adapted), flat(plain), step_terms(trainer))


def test_initial_adapters_depend_on_seed_and_task(make_trainer):
    one, again, other = (make_trainer(adapter=LORA, seed=seed).model.adapters for seed in (1, 1, 2))
    single = make_trainer(only="sts", adapter=LORA, seed=1).model.adapters
    for name, value in copied(one["sts"]).items():
        assert torch.equal(value, again["sts"].state_dict()[name])
        assert torch.equal(value, single["sts"].state_dict()[name])
        drawn = name.endswith(".a")
        assert torch.equal(value, other["sts"].state_dict()[name]) != drawn
        assert torch.equal(value, one["sst"].state_dict()[name]) != drawn


@EVERY
def test_only_the_adapters_of_the_trained_tasks_move(make_trainer, adapter):
    trainer = make_trainer(adapter=adapter)
    trainer.model.train()
    as_trained(trainer)
    before = copied(trainer.model.adapters)
    for _ in range(2):
        trainer.train_step(
            np.array([[*trainer.tasks].index(task) for task in ("sst", "sst", "sts")])
        )
    for name, value in trainer.model.adapters.state_dict().items():
        assert torch.equal(value, before[name]) == name.startswith("qqp."), name


@pytest.mark.numeric
@EVERY
@pytest.mark.parametrize("combiner", ["sum", "pcgrad", "mgda"])
@pytest.mark.parametrize("micro_batch", [None, 3])
def test_adapters_follow_only_the_loss_of_their_task(make_trainer, adapter, combiner, micro_batch):
    """Whatever weights the combiner gives the objectives on the shared encoder."""
    changes = {"adapter": adapter, "combiner": combiner, "micro_batch": micro_batch}
    trainer = make_trainer(dropout=False, batch_size=8, **changes)
    as_trained(trainer)
    batches = batches_of(trainer, "sst", "qqp", "sts")
    trainer.gradient(batches)
    found = {name: gradients(one) for name, one in trainer.model.adapters.items()}
    for name, (rows,) in batches.items():
        trainer.model.zero_grad(set_to_none=True)
        texts = trainer.model.embed(trainer.splits[name]["train"].batch(rows), name)
        losses, _ = plain_losses(trainer, name, rows, texts)
        losses[name].backward()
        expected = gradients(trainer.model.adapters[name])
        assert expected.keys() == found[name].keys() == dict(one_adapter(trainer)).keys()
        assert_near_in_norm(flat(found[name]), flat(expected), step_terms(trainer))


@pytest.mark.numeric
@EVERY
def test_passes_without_a_kept_graph_have_the_same_gradient(make_trainer, adapter):
    """Gradient caching: each piece is embedded again, with the same dropout and adapter."""
    trainer = make_trainer(adapter=adapter)
    as_trained(trainer)
    model, split = trainer.model.train(), trainer.splits["sts"]["train"]
    batches = [split.batch(rows) for rows in (np.arange(0, 3), np.arange(3, 8))]
    texts = [
        torch.cat(side) for side in zip(*(model.embed(b, "sts") for b in batches), strict=True)
    ]
    wanted = [torch.randn_like(text) for text in texts]
    torch.autograd.backward(texts, wanted)
    expected = gradients(model.adapters)
    model.zero_grad(set_to_none=True)
    model.dropout_stream.reset(model.dropout_stream.seed)
    cached = EncoderPass(model, batches, 2, "sts")
    cached.backward(wanted)
    found = gradients(model.adapters)
    assert found.keys() == expected.keys()
    assert_near_in_norm(flat(found), flat(expected), step_terms(trainer))


def one_adapter(trainer):
    return next(iter(trainer.model.adapters.values())).named_parameters()


@EVERY
def test_with_a_frozen_encoder_only_heads_and_adapters_are_trained(make_trainer, adapter):
    trainer = make_trainer(adapter=adapter, freeze_encoder=True, combiner="sum")
    trainer.model.freeze_encoder()
    trainer.optimizer = trainer.config.optimizer.build(trainer.model)
    before = copied(trainer.model)
    trainer.fit()
    after = trainer.model.state_dict()
    moved = {name for name, value in after.items() if not torch.equal(value, before[name])}
    parts = {name.partition(".")[0] for name in moved}
    assert parts == {"adapters", "heads"}
    assert {name.split(".")[1] for name in moved if name.startswith("adapters.")} == set(CS224N)


@EVERY
@pytest.mark.parametrize("schedule", ["joint", "individual"])
def test_with_a_frozen_encoder_tasks_without_an_adapter_train_their_heads(
    make_trainer, adapter, schedule
):
    settings = {"freeze_encoder": True, "combiner": "sum", "schedule": schedule}
    trainer = make_trainer(adapter=replace(adapter, only=("sts",)), **settings)
    before = copied(trainer.model)
    trainer.fit()
    after = trainer.model.state_dict()
    moved = {name for name, value in after.items() if not torch.equal(value, before[name])}
    assert {".".join(name.split(".")[:2]) for name in moved} == {
        "adapters.sts",
        *(f"heads.{task}" for task in CS224N),
    }


def test_a_frozen_encoder_with_adapters_has_dropout_and_regularisers(make_trainer):
    changes = {"freeze_encoder": True, "combiner": "sum", "smart_weight": {"sst": 1.0}}
    changes |= {"smart_dropout": "fresh"}
    trainer = make_trainer(adapter=LORA, **changes)
    trainer.model.freeze_encoder()
    trainer.model.train()
    assert trainer.model.encoder.training
    passes = trainer.model.dropout_stream.passes
    trainer.gradient(batches_of(trainer, "sst"))
    assert trainer.model.dropout_stream.passes == passes + 3, "noise has passes of its own"


@pytest.mark.parametrize(
    ("adapter", "rate"), [(LORA, 5e-4), (LoRA(lr=3e-3), 3e-3), (PALS, 2e-4)], ids=str
)
def test_adapters_have_a_learning_rate_of_their_own(make_trainer, adapter, rate):
    optimizer = replace(make_trainer().config.optimizer, lr=1e-5, head_lr=2e-4)
    trainer = make_trainer(adapter=adapter, optimizer=optimizer)
    rates = {}
    for group in trainer.optimizer.param_groups:
        rates |= {id(parameter): group["peak_lr"] for parameter in group["params"]}
    for modules, expected in (("adapters", rate), ("heads", 2e-4), ("bi_encoder", 1e-5)):
        for parameter in getattr(trainer.model, modules).parameters():
            assert rates[id(parameter)] == expected


def test_adapters_are_saved_beside_the_encoder_and_loaded(make_trainer, tmp_path):
    trainer, other = make_trainer(adapter=LORA), make_trainer("other", adapter=LORA, seed=5)
    as_trained(trainer)
    trainer.model.save(tmp_path / "saved")
    other.model.load(tmp_path / "saved")
    for name, value in trainer.model.state_dict().items():
        assert torch.equal(value, other.model.state_dict()[name])
    assert (
        load_file(tmp_path / "saved" / "adapters.safetensors").keys()
        == copied(trainer.model.adapters).keys()
    )
    make_trainer().model.save(tmp_path / "plain")
    assert not (tmp_path / "plain" / "adapters.safetensors").exists()


def test_another_run_begins_with_the_adapters_of_matching_tasks(base_config, tmp_path, capsys):
    small = {"limit": 12, "epochs": 1, "dev_limit": 8, "combiner": "sum", "adapter": LORA}
    complete(base_config.changed(**small, tasks=("sst", "sts")), tmp_path / "first")
    saved = load_file(tmp_path / "first" / "checkpoint" / "best" / "adapters.safetensors")
    cases = [
        ({}, "sst"),
        ({"adapter_lr": 1e-3}, "sst"),
        ({"adapter_alpha": 2.0}, "none"),
        ({"adapter_rank": 2}, "none"),
        ({"adapter": None}, "none"),
    ]
    for changes, expected in cases:
        config = base_config.changed(
            **{**small, "tasks": ("sst", "qqp"), "init": str(tmp_path / "first"), **changes}
        )
        model = build_model(config, build_tasks(config), torch.device("cpu"))
        assert f"adapters initialised from {config.init}: {expected}" in capsys.readouterr().out
        own = {name: v for name, v in copied(model.adapters).items() if name.startswith("sst.")}
        same = bool(own) and all(
            value.shape == saved[name].shape and torch.equal(value, saved[name])
            for name, value in own.items()
        )
        assert same == (expected == "sst")


def test_parameters_are_counted_by_task(make_trainer):
    counts = make_trainer(adapter=LORA).model.parameter_counts()
    config = make_trainer().model.encoder.config
    each = config.num_layers * 2 * LORA.rank * 2 * config.hidden_size
    assert {task: parts["adapter"] for task, parts in counts["tasks"].items()} == dict.fromkeys(
        CS224N, each
    )
    plain = make_trainer().model
    assert plain.parameter_counts()["shared"] == counts["shared"]
    assert set(plain.parameter_counts()["tasks"]["sst"]) == {"head"}
    total = counts["shared"] + sum(sum(parts.values()) for parts in counts["tasks"].values())
    model = make_trainer(adapter=LORA).model
    assert total == sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize(
    ("adapter", "line"),
    [
        (LoRA(rank=33), "adapter_rank: expected at most 32, the width of the encoder, found 33"),
        (PAL(rank=40), "adapter_rank: expected at most 32, the width"),
        (PAL(rank=3), "adapter_rank: expected a multiple of "),
        (LoRA(layers=(1, 9)), "adapter_layers: expected at most 2, the number of the enc"),
        (LoRA(top_layers=3), "adapter_top_layers: expected at most 2"),
    ],
    ids=str,
)
def test_adapters_that_do_not_fit_the_encoder_are_refused(base_config, adapter, line):
    with pytest.raises(SettingsError) as caught:
        assemble(base_config.changed(adapter=adapter))
    assert str(caught.value).startswith(line)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [({}, [0, 1]), ({"layers": (2,)}, [1]), ({"layers": (2, 1)}, [0, 1]), ({"top_layers": 1}, [1])],
)
def test_layers_are_counted_from_the_embeddings(make_trainer, settings, expected):
    config = make_trainer().model.encoder.config
    for method in (LoRA, PAL):
        assert method(**settings).places(config) == expected


def test_the_default_width_of_projected_attention_is_that_of_the_paper():
    class Bert:
        num_heads, hidden_size, num_layers, attention_dropout = 12, 768, 12, 0.1

    built = PAL().build(Bert)
    assert built.down["shared"].shape == (204, 768)
    assert built.qkv["11"].shape == (3 * 204, 204)
