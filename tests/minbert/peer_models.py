"""Small random models of `transformers`, the reference for the encoder."""

import json
import os
import string

import torch

CORPUS = [
    "the cat sleeps on a warm stone in the sun",
    "a dog barked at the tired postman again and again",
    "unbelievably good films are seldom seen twice",
    "Zoë drank café au lait; naïve, she paid 12.50 € for it",
]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LETTERS = string.ascii_letters + string.digits + "éëï中文"
PIECES = [
    *SPECIAL,
    *LETTERS,
    *(f"##{letter}" for letter in LETTERS),
    *".,;!?'()-€",
    *["the", "cat", "dog", "sleeps", "stone", "good", "film", "The", "Cat"],
    *["##ing", "##ed", "##s", "##ly"],
]

# Very different lengths, an empty one, one over every limit, characters no vocabulary has.
SENTENCES = [
    "The cat sleeps.",
    "",
    " ".join(CORPUS * 6),
    "A dog barked; unbelievably good!",
    "Zoë's café 中文 🙂 naïve",
    "x",
]


def write_wordpiece(folder, lower=True):
    """`vocab.txt` with `tokenizer_config.json`."""
    (folder / "vocab.txt").write_text("\n".join(PIECES) + "\n", "utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": lower}))


def train_bpe():
    """A byte-level BPE tokenizer as RoBERTa has it, trained on a few sentences."""
    from tokenizers import ByteLevelBPETokenizer

    bpe = ByteLevelBPETokenizer()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    bpe.train_from_iterator(CORPUS * 2, vocab_size=330, special_tokens=special, show_progress=False)
    return bpe


def write_bpe(folder, single_file=True):
    """`tokenizer.json`, or `vocab.json` with `merges.txt`."""
    from tokenizers.processors import RobertaProcessing

    bpe = train_bpe()
    if single_file:
        bpe._tokenizer.post_processor = RobertaProcessing(
            ("</s>", 2), ("<s>", 0), add_prefix_space=False
        )
        bpe.save(str(folder / "tokenizer.json"))
    else:
        bpe.save_model(str(folder))


def shake(model, seed=0):
    """Large random weights, biases and norms: with the usual start a wrong one would not show."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.normal_(0.0, 0.1, generator=generator)
            if "LayerNorm.weight" in name:
                parameter.add_(1.0)
            if name.endswith("bias"):
                parameter.mul_(3.0)
    return model.eval()


def make(kind, seed=0, **changes):
    """A `BertModel`, `RobertaModel`, `BertForMaskedLM`, ... of transformers with random weights."""
    import transformers

    family = next(name for name in ("XLMRoberta", "Roberta", "Bert") if kind.startswith(name))
    shape = {
        "vocab_size": len(PIECES) if family == "Bert" else 340,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 48,
        "max_position_embeddings": 40,
        "pad_token_id": 0 if family == "Bert" else 1,
    }
    config = getattr(transformers, f"{family}Config")(**shape | changes)
    return shake(getattr(transformers, kind)(config), seed)


def save(folder, kind="BertModel", lower=True, single_file=True, **changes):
    """A folder as transformers writes it, tokenizer included; returns its model."""
    folder.mkdir(parents=True, exist_ok=True)
    model = make(kind, **changes)
    model.save_pretrained(folder)
    if kind.startswith("Bert"):
        write_wordpiece(folder, lower)
    else:
        write_bpe(folder, single_file)
        (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "RobertaTokenizer"}')
    return model


def padded(tokens, pad_id=0):
    """TokenLists -> the padded inputs that transformers takes."""
    width = int(tokens.lengths.max())
    ids = torch.full((len(tokens), width), pad_id)
    mask = torch.zeros_like(ids)
    types = torch.zeros_like(ids)
    for row, (begin, end) in enumerate(zip(tokens.offsets, tokens.offsets[1:], strict=False)):
        ids[row, : end - begin] = torch.from_numpy(tokens.ids[begin:end]).long()
        mask[row, : end - begin] = 1
        if tokens.segments is not None:
            types[row, : end - begin] = torch.from_numpy(tokens.segments[begin:end]).long()
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}


class Mine:
    """An object whose unpickling would create a file: a stand-in for malicious code."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return os.mkdir, (str(self.marker),)
