"""Static students: fitted to the encoder's embeddings, and opened by sentence-transformers."""

import numpy as np
import pytest
import tokenizers
import torch
from safetensors.torch import load_file
from tolerances import assert_near, assert_near_in_norm, encoder_terms

import cli
from common.errors import EncoderError, RunError, SettingsError, UserError
from minbert.bi_encoder import BiEncoder
from minbert.tokenizer import Tokenizer
from serving import static
from serving.export import export
from serving.static import distil, left_out, token_bags, weighted_tokens
from serving.static_export import StaticSettings, save_student
from tasks import build_task, data_folder

WIDTH = 12
TEXTS = ["A cat sleeps.", "The sun is up, and it will not go down.", "no", "Größe? 🙂 " * 20]


@pytest.fixture(scope="module")
def teacher():
    return BiEncoder.from_pretrained("tiny")


@pytest.fixture(scope="module")
def texts():
    examples = build_task("sts").read(data_folder("sample"), "train")
    return [text for column in examples.texts for text in column]


@pytest.fixture(scope="module")
def student(teacher, texts):
    return distil(teacher, texts, WIDTH)


def mean_of(table, tokenizer, text):
    """The mean of the rows of a text's tokens, one by one, in float64."""
    total, count = np.zeros(table.shape[1]), 0
    for number in tokenizer.encode(text, add_special_tokens=False).ids:
        total += table[number].double().numpy()
        count += 1
    return total / count


def cosine(one, other):
    return one @ other / np.linalg.norm(one) / np.linalg.norm(other)


def test_the_fit_improves_the_cosine_of_held_out_texts(teacher, texts, student):
    known = list(dict.fromkeys(texts))
    assert student.held_out == round(static.SHARE * len(known))
    assert student.texts + student.held_out == len(known)
    rows = np.random.default_rng(0).permutation(len(known))[: student.held_out]
    held = [known[row] for row in rows]
    projection, backend = student.projection.double().numpy(), teacher.tokenizer.backend
    found = [
        cosine(projection @ mean_of(student.table, backend, one), embedding.astype(np.float64))
        for one, embedding in zip(held, teacher.encode(held), strict=True)
    ]
    assert student.cosine > student.untrained
    terms = encoder_terms(teacher.encoder.config, teacher.tokenizer.max_tokens)
    assert_near(student.cosine, np.mean(found), terms)


def test_the_projection_keeps_the_largest_share_of_inner_products(teacher, texts, student):
    known = list(dict.fromkeys(texts))
    rows = np.random.default_rng(0).permutation(len(known))[student.held_out :]
    targets = teacher.encode([known[row] for row in rows], normalize=True).astype(np.float64)
    projection = student.projection.double().numpy()
    assert_near(projection.T @ projection, np.eye(WIDTH), teacher.width)
    kept = np.linalg.svd(targets, compute_uv=False)[:WIDTH]
    assert_near_in_norm(np.linalg.norm(targets @ projection, axis=0), kept, teacher.width)


def test_tokens_start_from_their_embeddings_weighted_by_frequency(teacher):
    tokenizer = teacher.tokenizer
    counts = np.arange(tokenizer.vocab_size) % 7
    found = weighted_tokens(teacher, counts, progress=False)
    terms = encoder_terms(teacher.encoder.config, 3)
    for piece in ("the", "a", "."):
        (number,) = tokenizer.backend.encode(piece, add_special_tokens=False).ids
        share = (counts[number] + 1) / (counts + 1).sum()
        expected = teacher.encode([piece])[0] * static.RARE / (static.RARE + share)
        assert_near(found[number], expected, terms)
    assert not found[left_out(tokenizer)].any()


def test_the_linear_map_is_that_of_ridge_regression(teacher, texts):
    bags, known = token_bags(teacher.tokenizer, texts)
    tokens = weighted_tokens(teacher, np.ones(teacher.tokenizer.vocab_size), progress=False)
    goals = torch.from_numpy(teacher.encode(known, normalize=True))[:, :WIDTH]
    means = np.stack([mean_of(tokens, teacher.tokenizer.backend, one) for one in known])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    ridge = static.RIDGE * np.trace(means.T @ means) / teacher.width
    stacked = np.vstack([means, np.sqrt(ridge) * np.eye(teacher.width)])
    zeros = np.zeros((teacher.width, WIDTH))
    matrix, *_ = np.linalg.lstsq(stacked, np.vstack([goals.double().numpy(), zeros]), rcond=None)
    expected = tokens.double().numpy() @ matrix
    expected /= np.linalg.norm(expected, axis=1).mean()
    found = static.mapped(tokens, bags, goals)
    # The regularised system magnifies rounding at most by the inverse of the ridge's share.
    scale = teacher.width / static.RIDGE
    assert_near_in_norm(found, expected, teacher.width, scale)


def test_adam_moves_only_tokens_of_the_texts(teacher, texts, monkeypatch):
    monkeypatch.setattr(static, "EPOCHS", 2)
    bags, known = token_bags(teacher.tokenizer, texts)
    table = torch.randn(teacher.tokenizer.vocab_size, WIDTH)
    goals = torch.from_numpy(teacher.encode(known))[:, :WIDTH]
    rows = np.arange(30)
    *_, last = static.fit(table, bags, goals, rows, np.random.default_rng(0))
    moved = (last != table).any(1).nonzero()[:, 0]
    np.testing.assert_array_equal(moved, np.unique(bags.select(rows).ids))


@pytest.fixture(scope="module")
def exported(trained, tmp_path_factory):
    folder = tmp_path_factory.mktemp("static") / "out"
    command = ["--mode", "export", "--format", "static", "--run", str(trained), "--width", "12"]
    assert cli.main([*command, "--output", str(folder)]) == 0
    return folder


@pytest.mark.slow
def test_sentence_transformers_gives_our_numbers(exported):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    theirs = SentenceTransformer(str(exported), device="cpu")
    assert isinstance(theirs[0], StaticEmbedding)
    table = load_file(exported / "model.safetensors")["embedding.weight"]
    assert table.shape[1] == WIDTH
    backend = tokenizers.Tokenizer.from_file(str(exported / "tokenizer.json"))
    expected = np.stack([mean_of(table, backend, text) for text in TEXTS])
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    longest = max(len(backend.encode(text).ids) for text in TEXTS)
    assert_near(theirs.encode(TEXTS), expected, longest + WIDTH)
    assert not theirs.encode([""]).any()


def test_the_exported_tokenizer_reads_whole_texts_as_the_encoder_does(teacher, student, tmp_path):
    """The casing of its folder, which sentence-transformers does not apply, is in the file."""
    backend = tokenizers.Tokenizer.from_str(teacher.tokenizer.backend.to_str())
    backend.normalizer = tokenizers.normalizers.NFC()
    cased = Tokenizer(backend, max_tokens=5, lower=True)
    save_student(student, cased, tmp_path)
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    text = "The Film and THE Story of the movie"
    expected = teacher.tokenizer.backend.encode(text, add_special_tokens=False).ids
    assert theirs.encode(text, add_special_tokens=False).ids == expected
    assert len(expected) > cased.max_tokens
    assert cased.backend.encode(text, add_special_tokens=False).ids != expected


def test_a_seed_reproduces_the_file(exported, trained, model, tmp_path):
    def weights(name, seed):
        export(trained, tmp_path / name, "static", static=StaticSettings(WIDTH, seed=seed))
        return (tmp_path / name / "model.safetensors").read_bytes()

    first = (exported / "model.safetensors").read_bytes()
    assert weights("same", model.config.seed) == first
    assert weights("other", 3) != first


def test_the_card_has_the_measured_cosine_and_the_limits(exported, trained):
    text = (exported / "README.md").read_text("utf-8")
    for part in ('SentenceTransformer("DIR")', "after the fit | 0.", "Word order has no effect"):
        assert part in text
    for file in ("run.json", "README.md"):
        assert str(trained.parent) not in (exported / file).read_text("utf-8")


def test_texts_come_from_a_file(trained, tmp_path, capsys):
    (tmp_path / "in.txt").write_text("\n".join([f"the cat has {i} suns" for i in range(40)] * 2))
    command = ["--mode", "export", "--format", "static", "--run", str(trained)]
    command += ["--output", str(tmp_path / "out"), "--texts", str(tmp_path / "in.txt")]
    assert cli.main(command) == 0
    card = (tmp_path / "out" / "README.md").read_text("utf-8")
    assert "| texts of the fit | 36 |" in card
    assert "a vector of 32 numbers" in card  # the width of the encoder
    (tmp_path / "in.txt").write_text("the cat\n\nthe sun\n")
    assert cli.main([*command, "--overwrite"]) == 1
    assert "texts: expected at least 20 different ones with known tokens, found 2" in (
        capsys.readouterr().err
    )


def test_what_cannot_be_a_student_is_refused(teacher, texts, trained, tmp_path):
    for width in (0, 33):
        with pytest.raises(SettingsError, match=f"width: expected from 1 to 32.*found {width}"):
            distil(teacher, texts, width)
    for few in ([], ["", "🙂"] * 20, texts[:19]):
        with pytest.raises(UserError, match=r"at least 20 different ones.*found (0|19)"):
            distil(teacher, few)
    with pytest.raises(RunError, match="without adapters, found sst"):
        export(trained, tmp_path / "out", "static", task="sst")
    joint = tmp_path / "joint"
    command = ["--mode", "single", "--task", "qqp", "--pair", "joint", "--encoder", "tiny"]
    assert cli.main([*command, "--epochs", "1", "--limit", "9", "--output", str(joint)]) == 0
    with pytest.raises(RunError, match="expected a run that embeds single texts"):
        export(joint, tmp_path / "out", "static")
    assert not (tmp_path / "out").exists()


def test_an_exported_student_is_no_run(trained, tmp_path):
    export(trained, tmp_path / "out", "static", static=StaticSettings(WIDTH))
    with pytest.raises(EncoderError, match="found a static student, which only sentence-transf"):
        BiEncoder.from_pretrained(tmp_path / "out")
