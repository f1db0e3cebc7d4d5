"""Exports give the same numbers in other libraries and are written atomically."""

import copy
import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tolerances import assert_near, encoder_terms

import cli
from common.errors import EncoderError, RunError, UserError
from minbert.bi_encoder import BiEncoder
from minbert.checksums import complete_folder
from multitask.settings.config import RunConfig
from serving import load
from serving.encode_file import encoder_of_run
from serving.export import export, write

TEXTS = ["A cat sleeps.", "The sun is up, and it will not go down.", "no", "Größe? 🙂 " * 20]


def terms(encoder):
    config = encoder.encoder.config
    return encoder_terms(config, config.max_tokens)


@pytest.fixture
def exported(trained, tmp_path):
    def make(kind):
        export(trained, tmp_path / kind, kind)
        return tmp_path / kind

    return make


@pytest.mark.slow
def test_sentence_transformers_gives_the_same_embeddings(exported):
    from sentence_transformers import SentenceTransformer

    folder = exported("sentence-transformers")
    found = SentenceTransformer(str(folder), device="cpu").encode(TEXTS)
    ours = BiEncoder.from_pretrained(folder)
    assert_near(found, ours.encode(TEXTS), terms(ours))


@pytest.mark.slow
def test_transformers_gives_the_same_hidden_states(exported, model):
    from transformers import AutoModel, AutoTokenizer

    folder = exported("transformers")
    tokenizer, theirs = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder)
    with torch.inference_mode():
        hidden = theirs(**tokenizer(TEXTS[:1], return_tensors="pt")).last_hidden_state
    ours = model.model.bi_encoder.encode(TEXTS[:1], normalize=False)
    assert_near(hidden.mean(1), ours, terms(model.model.bi_encoder))


@pytest.mark.slow
@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
def test_onnx_runtime_gives_the_same_embeddings(trained, tmp_path, pooling):
    from onnxruntime import InferenceSession
    from transformers import AutoTokenizer

    loaded = load(trained)
    loaded.model.bi_encoder.pooling = pooling
    write(loaded, {}, tmp_path, "onnx")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    inputs = tokenizer(TEXTS, padding=True, return_tensors="np")
    inputs = {name: inputs[name] for name in ("input_ids", "attention_mask")}
    found, pooled = InferenceSession(tmp_path / "model.onnx").run(None, inputs)
    ours = BiEncoder.from_pretrained(tmp_path)
    assert_near(found, ours.encode(TEXTS), terms(ours))
    assert_near(pooled, ours.encode(TEXTS, normalize=False), terms(ours))


def test_exported_heads_give_the_same_predictions(exported, model):
    pairs = [("A cat sleeps.", "A cat is asleep."), ("The sun.", "The moon.")]
    ours, theirs = model.predict(pairs), load(exported("transformers")).predict(pairs)
    for task, found in ours.items():
        np.testing.assert_array_equal(found.values, theirs[task].values)


@pytest.mark.parametrize("pooling", ["cls", "max"])
def test_an_export_keeps_pooling_normalisation_and_limit(tmp_path, pooling):
    start = BiEncoder.from_pretrained("tiny", pooling, max_tokens=12)
    start.normalize = True
    start.save_pretrained(tmp_path / "start")
    flags = ["--mode", "single", "--task", "sst", "--encoder", str(tmp_path / "start")]
    flags += ["--limit", "20", "--epochs", "1", "--output", str(tmp_path / "run")]
    assert cli.main(flags) == 0
    texts = [*TEXTS, "word " * 20]
    expected = load(tmp_path / "run").encode(texts)
    for source, name in (("run", "one"), ("one", "two")):
        export(tmp_path / source, tmp_path / name, "transformers")
        model = encoder_of_run(tmp_path / name, RunConfig(mode="single", tasks=()))
        for found in (load(tmp_path / name).encode(texts), model.encode(texts)):
            np.testing.assert_array_equal(found, expected)


def test_the_card_has_data_scores_and_limits_without_local_paths(exported, trained):
    folder = exported("sentence-transformers")
    text = (folder / "README.md").read_text()
    metrics = json.loads((trained / "metrics.json").read_text())
    assert f"| sst | accuracy | {metrics['dev']['sst']['accuracy']:.4f} |" in text
    for part in ("own.csv, classification", "STS-B, split anew", "SentenceTransformer("):
        assert part in text
    for file in ("run.json", "README.md"):
        assert str(trained.parent) not in (folder / file).read_text()


def test_the_card_says_how_the_weights_were_chosen(exported, tmp_path):
    flags = ["--mode", "single", "--task", "sst", "--encoder", "tiny", "--epochs", "1"]
    flags += ["--dev-limit", "30", "--keep", "last", "--class-weights", "balanced"]
    assert cli.main([*flags, "--output", str(tmp_path / "run")]) == 0
    export(tmp_path / "run", tmp_path / "out", "transformers")
    text = (tmp_path / "out" / "README.md").read_text()
    rows = "| dev limit | 30 |", "| keep | last |", "| class weights | balanced |"
    for part in (*rows, "from the last epoch. No epoch was chosen"):
        assert part in text
    other = (exported("sentence-transformers") / "README.md").read_text()
    assert "The best epoch was chosen by its scores on these dev" in other
    assert "| keep |" not in other
    assert "| batches per step |" not in other  # it follows from the tasks


def test_other_content_is_not_replaced(exported, trained, tmp_path):
    for folder in (trained, exported("transformers")):
        with pytest.raises(EncoderError, match=r"this is a run|holds a run or an export"):
            BiEncoder.from_pretrained("tiny").save_pretrained(folder)
    mine = tmp_path / "mine"
    with pytest.raises(UserError, match="add --overwrite to replace it"):
        export(trained, folder, "transformers")
    export(trained, folder, "sentence-transformers", overwrite=True)
    assert (folder / "modules.json").exists()
    mine.mkdir()
    (mine / "notes.txt").write_text("mine")
    for place, found in ((mine, "notes.txt"), (mine / "notes.txt", "a file"), (trained, "best")):
        with pytest.raises(UserError, match=f"{found}; choose another --output"):
            export(trained, place, "transformers", overwrite=True)


def test_a_damaged_export_is_refused(exported):
    folder = exported("transformers")
    (folder / "README.md").write_text("mine")  # the card may be changed
    for name in ("model.safetensors", "heads.safetensors", "run.json"):
        content = (folder / name).read_bytes()
        for place in range(len(content) - 1, len(content) - 60, -4):
            damaged = bytearray(content)
            damaged[place] ^= 1 << place % 6  # of a float, a bit of the exponent
            (folder / name).write_bytes(damaged)
            for opened in (BiEncoder.from_pretrained, load):
                with pytest.raises(UserError, match=name):
                    opened(folder)
        (folder / name).write_bytes(content)
    load(folder)


@pytest.mark.parametrize("weight", [3e38, 1e30])  # the embeddings overflow, or their length
def test_results_that_are_not_finite_are_refused(exported, tmp_path, weight, capsys):
    folder = exported("transformers")
    (folder / "state.json").unlink()
    tensors = load_file(folder / "model.safetensors")
    tensors["encoder.layer.1.output.LayerNorm.weight"].fill_(weight)
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises(UserError, match=r"state.json: cannot be read as JSON"):
        load(folder)
    complete_folder(folder, {})
    (tmp_path / "texts.txt").write_text("A cat.")
    flags = ("--run", str(folder), "--input", str(tmp_path / "texts.txt"))
    for mode, name in (("predict", "out.tsv"), ("encode", "out.npy")):
        assert cli.main(["--mode", mode, *flags, "--output", str(tmp_path / name)]) == 1
        assert "expected finite embeddings" in capsys.readouterr().err
        assert not (tmp_path / name).exists()


def test_scores_that_are_not_finite_are_refused(model):
    weight = model.model.heads["sst"].state_dict()
    changed = {name: torch.full_like(one, 3e38) for name, one in weight.items()}
    model = copy.deepcopy(model)
    model.model.heads["sst"].load_state_dict(changed)
    with pytest.raises(RunError, match="sst: the scores are not finite"):
        model.predict(["A cat."], ["sst"])


def test_a_full_disk_leaves_no_partial_export(trained, tmp_path, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("serving.export.card", full)
    with pytest.raises(OSError, match="No space"):
        export(trained, tmp_path / "out", "transformers")
    assert list(tmp_path.iterdir()) == []
