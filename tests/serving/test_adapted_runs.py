"""Runs with adapters: predictions and embeddings by task, exports with a merged adapter."""

import json

import numpy as np
import pytest
from tolerances import assert_near, encoder_terms

import cli
from common.errors import EncoderError, RunError, SettingsError, SharedEncoderWarning
from minbert.bi_encoder import BiEncoder
from minbert.words import build_bilstm
from multitask.config_tasks import build_tasks
from multitask.settings.config import RunConfig
from multitask.soft_targets import computed
from multitask.training import Run
from serving import MultiTaskModel
from serving.export import export
from serving.joined_passes import EmbeddingRequest, answers
from serving.run_encoder import encoder_of_run, of_one_task
from tasks import build_task, data_folder
from tasks.predictions import read_scores, scores_name

SHORT = ("--encoder", "tiny", "--epochs", "2", "--limit", "40", "--adapter-lr", "0.05")
TEXTS = ["A cat sleeps.", "The sun is up, and it will not go down.", "no"]
PAIRS = [("A cat sleeps.", "A cat is asleep."), ("The sun.", "The moon.")]


def trained_run(folder, *flags):
    assert cli.main(["--mode", *flags, *SHORT, "--output", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def lora(tmp_path_factory):
    """A run of three tasks with LoRA in every linear layer; read only."""
    targets = ("--adapter-targets", "query", "key", "value", "output", "up", "down")
    tasks = ("multitask", "--tasks", "sst", "qqp", "sts", "--adapter", "lora")
    return trained_run(tmp_path_factory.mktemp("lora") / "run", *tasks, *targets)


@pytest.fixture(scope="module")
def pal(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pal") / "run"
    return trained_run(folder, "single", "--task", "sst", "--adapter", "pal", "--freeze-encoder")


def terms_of(model):
    config = model.model.encoder.config
    return encoder_terms(config, config.max_tokens)


@pytest.mark.numeric
def test_each_head_has_the_adapter_of_its_task(lora):
    model = MultiTaskModel.load(lora)
    for task in model.tasks:
        columns = build_task(task).read(data_folder("sample"), "dev").texts
        texts = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
        found = model.predict(texts, [task])[task]
        values = found.values if found.probabilities is None else found.probabilities
        kept = read_scores(lora / "predictions" / scores_name(task, "dev")).values
        assert_near(values, kept, terms_of(model))
    together = model.predict(PAIRS)
    for task in model.tasks:
        assert_near(
            together[task].values, model.predict(PAIRS, [task])[task].values, terms_of(model)
        )
    half = model.predict(PAIRS, precision="bf16")["sts"].values
    np.testing.assert_allclose(half, together["sts"].values, atol=0.2)


def test_embeddings_are_those_of_a_task_or_of_the_shared_encoder(lora, pal, recwarn):
    model = Run(lora).model
    sst, sts = (model.encode(TEXTS, task=task) for task in ("sst", "sts"))
    assert not recwarn.list
    with pytest.warns(SharedEncoderWarning) as caught:
        shared = model.encode(TEXTS)
    assert [str(one.message) for one in caught] == [
        "embeddings of the shared encoder, without an adapter; task chooses one: sst, qqp, sts"
    ]
    assert caught[0].filename == __file__
    for one, other in ((sst, sts), (sst, shared), (sts, shared)):
        assert np.abs(one - other).max() > 1e-3
    opened = BiEncoder.from_pretrained(lora / "checkpoint" / "best")
    assert np.array_equal(shared, opened.encode(TEXTS))
    with pytest.raises(RunError, match="task: expected one of sst, qqp, sts, found cola"):
        model.encode(TEXTS, task="cola")
    assert np.abs(Run(pal).model.encode(TEXTS, task="sst")).max() > 0


def test_a_run_without_adapters_takes_no_task(model):
    with pytest.raises(RunError, match="task: expected none for a run without adapters, found sst"):
        model.encode(TEXTS, task="sst")


def test_the_command_line_encodes_with_an_adapter(lora, tmp_path, capsys):
    (tmp_path / "in.txt").write_text("\n".join(TEXTS) + "\n", "utf-8")
    command = ["--mode", "encode", "--input", str(tmp_path / "in.txt")]

    def encoded(name, *flags):
        file = tmp_path / f"{name}.npy"
        status = cli.main([*command, "--output", str(file), *flags])
        return status, np.load(file) if file.exists() else None, capsys.readouterr().err

    model = MultiTaskModel.load(lora)
    _, found, errors = encoded("a", "--run", str(lora), "--task", "sts")
    assert_near(found, model.encode(TEXTS, task="sts"), terms_of(model))
    assert "shared encoder" not in errors
    _, found, errors = encoded("b", "--run", str(lora))
    assert_near(found, model.model.bi_encoder.encode(TEXTS), terms_of(model))
    assert "without an adapter; --task chooses one: sst, qqp, sts" in errors
    for flags, line in (
        (("--run", str(lora), "--task", "cola"), "--task: expected one of sst, qqp, sts, found c"),
        (("--run", str(lora), "--task", "sst", "--compile"), "--compile: expected an encoder with"),
    ):
        status, found, errors = encoded("c", *flags)
        assert (status, found) == (1, None)
        assert line in errors


@pytest.mark.numeric
def test_an_export_of_a_task_has_its_adapter_in_the_weights(lora, tmp_path):
    """The unmerged forward pass gives the same numbers."""
    model = MultiTaskModel.load(lora)
    for task in ("sst", "sts"):
        folder = tmp_path / task
        export(lora, folder, "sentence-transformers", task=task)
        found = BiEncoder.from_pretrained(folder).encode(TEXTS)
        assert_near(found, model.encode(TEXTS, task=task), terms_of(model))
        alone = MultiTaskModel.load(folder)
        assert alone.tasks == (task,)
        assert alone.config.adapter is None
        assert not (folder / "adapters.safetensors").exists()
        expected = model.predict(PAIRS, [task])[task].values
        assert_near(alone.predict(PAIRS)[task].values, expected, terms_of(model))
        card = (folder / "README.md").read_text("utf-8")
        scores = json.loads((lora / "metrics.json").read_text())["dev"]
        metric, value = next(iter(scores[task].items()))
        assert f"| {task} | {metric} | {value:.4f} |" in card
        assert "| qqp |" not in card


@pytest.mark.slow
@pytest.mark.numeric
def test_other_libraries_open_a_merged_export(lora, tmp_path):
    import torch
    from sentence_transformers import SentenceTransformer
    from transformers import AutoModel, AutoTokenizer

    model = MultiTaskModel.load(lora)
    expected = model.encode(TEXTS, task="sst")
    export(lora, tmp_path / "st", "sentence-transformers", task="sst")
    found = SentenceTransformer(str(tmp_path / "st"), device="cpu").encode(TEXTS)
    assert_near(found, expected, terms_of(model))
    export(lora, tmp_path / "hf", "transformers", task="sst")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "hf")
    theirs = AutoModel.from_pretrained(tmp_path / "hf")
    with torch.inference_mode():
        hidden = theirs(**tokenizer(TEXTS[:1], return_tensors="pt")).last_hidden_state
    assert_near(hidden.mean(1), expected[:1], terms_of(model))


def test_an_export_with_adapters_is_replaced(lora, tmp_path):
    export(lora, tmp_path / "all", "minbert")
    assert (tmp_path / "all" / "adapters.safetensors").exists()
    export(lora, tmp_path / "all", "minbert", overwrite=True)
    assert MultiTaskModel.load(tmp_path / "all").model.adapters


def test_an_export_of_every_adapter_is_encoded_as_its_run(lora, tmp_path):
    export(lora, tmp_path / "all", "minbert")
    config = RunConfig(tasks=())
    for task in ("sst", "sts"):
        one, other = (encoder_of_run(run, config, task) for run in (lora, tmp_path / "all"))
        np.testing.assert_array_equal(one.encode(TEXTS), other.encode(TEXTS))
    with pytest.warns(SharedEncoderWarning):
        encoder_of_run(tmp_path / "all", config)


def test_an_encoder_is_not_saved_over_a_run_or_an_export(lora, tmp_path):
    encoder = BiEncoder.from_pretrained("tiny")
    export(lora, tmp_path / "all", "minbert")
    for folder in (lora, tmp_path / "all"):
        kept = (folder / "config.json").read_bytes()
        with pytest.raises(EncoderError, match="expected a folder without a run or the heads of"):
            encoder.save_pretrained(folder)
        assert (folder / "config.json").read_bytes() == kept
    encoder.save_pretrained(tmp_path / "encoder")
    encoder.save_pretrained(tmp_path / "encoder")


def test_a_run_is_not_an_encoder(lora):
    with pytest.raises(EncoderError, match=r"found a run; its encoder is in .*best, and --init"):
        BiEncoder.from_pretrained(lora)


def test_exports_without_an_adapter_to_merge_are_refused(lora, pal, trained, tmp_path):
    cases = [
        (lora, None, "task: expected the task whose adapter is merged, sst, qqp, sts, found non"),
        (lora, "cola", "task: expected one of sst, qqp, sts, found cola"),
        (pal, "sst", "task: expected adapters that can be merged into weights, found pal; --mo"),
        (trained, "sst", "task: expected none for a run without adapters, found sst"),
    ]
    for run, task, line in cases:
        with pytest.raises((RunError, SettingsError)) as caught:
            export(run, tmp_path / "out", "transformers", task=task)
        assert line in str(caught.value)
        assert not (tmp_path / "out").exists()


def test_tasks_with_adapters_are_encoded_in_separate_passes(lora, monkeypatch):
    model = MultiTaskModel.load(lora)
    seen = []
    encode = model.model.bi_encoder.encode_window

    def counted(encoder, tokens, **settings):
        seen.append(len(tokens))
        return encode(encoder, tokens, **settings)

    monkeypatch.setattr(model.model.bi_encoder, "encode_window", counted)
    model.predict(PAIRS, ["qqp", "sts"])
    assert seen == [4, 4]


def test_a_teacher_with_adapters_teaches_with_those_of_the_task(lora):
    run, task = Run(lora), build_task("sts")
    examples = task.read(data_folder("sample"), "dev")
    found = computed(lora, run.config, task, examples, embeddings=True)
    model = run.model
    kept = read_scores(lora / "predictions" / scores_name("sts", "dev")).values
    assert_near(found["scores"], kept, terms_of(model))
    expected = model.encode(examples.texts[0], task="sts", normalize=False)
    assert np.array_equal(found["embeddings"][:, 0], expected.astype(np.float16))


def test_the_configuration_of_one_task_is_that_of_a_run():
    config = RunConfig(
        tasks=("sst", "qqp", "sts"), adapter="lora", combiner="epo", preference=(1, 2, 3),
        smart_weight={"sts": 1.0}, sampling="hybrid", first_task="qqp", limit={"qqp": 9},
        auxiliary=("qqp",), select_by="pearson",
        task_options={"qqp": {"pair": "joint"}, "sts": {"head": "cosine"}},
    )  # fmt: skip
    for task in config.tasks:
        one = of_one_task(config, task)
        assert (one.tasks, one.adapter, set(one.task_options) <= {task}) == ((task,), None, True)
        assert one.main_tasks == (task,)
        assert list(build_tasks(one)) == [task]
        assert RunConfig.from_json(one.to_json()).to_json() == one.to_json()


def test_a_bilstm_has_no_adapters(tmp_path, capsys):
    build_bilstm(tmp_path / "words", ["a film to love"], units=4, embedding_size=8)
    train = ("--mode", "single", "--task", "sst", "--adapter", "lora", "--limit", "20")
    place = ("--encoder", str(tmp_path / "words"), "--output", str(tmp_path / "run"))
    with pytest.raises(SystemExit, match="2"):
        cli.main([*train, *place])
    line = "--adapter lora: expected a transformer, found a BiLSTM"
    assert line in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore::common.errors.SharedEncoderWarning")
def test_joined_requests_for_embeddings_have_the_adapter_of_their_task(lora):
    model = MultiTaskModel.load(lora)
    tokens = model.model.bi_encoder.tokenizer(TEXTS)
    asked = [("sst", False), (None, True), ("sts", True), ("sst", True)]
    found = answers(model, [EmbeddingRequest(tokens, unit, task) for task, unit in asked])
    for vectors, (task, unit) in zip(found, asked, strict=True):
        expected = model.encode(TEXTS, normalize=unit, task=task)
        assert_near(vectors, expected, terms_of(model))
    assert not np.allclose(found[1], found[2], atol=1e-3)
