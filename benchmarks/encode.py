"""Speed of embedding real text beside other libraries, and agreement of the embeddings."""

import argparse
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
import torch.nn.functional as F
from sentence_transformers import SentenceTransformer
from torch import Tensor
from transformers import AutoModel, AutoTokenizer

from benchmarks.timing import Figures, figures, gemm_seconds, in_rounds, timed
from minbert.bi_encoder import BiEncoder
from minbert.sources import minilm_folder
from serving.onnx_export import write_onnx
from tasks import build_task, data_folder

PEER = "sentence-transformers fp32, batch 32"
FOLDER = str(minilm_folder())
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


def measure(args: argparse.Namespace) -> dict[str, Figures]:
    """Measure sentences/s on the first dev texts of QQP, then on the dev sentences of SST."""
    device = torch.device(args.device)
    model = BiEncoder.from_pretrained("minilm").to(device)
    encoders = make_encoders(model, args.precisions, device)
    groups = {}
    for task in ("qqp", "sst"):
        columns = build_task(task).read(data_folder(args.data), "dev").texts
        texts = [text for column in columns for text in column][: args.texts]
        tokens = int(model.tokenizer(texts).lengths.sum())
        sides = {key: partial(timed, partial(run, texts), device) for key, run in encoders.items()}
        for precision in args.precisions:
            sides[f"limit of {precision}"] = partial(gemm_seconds, tokens, precision, device)
        found = figures(in_rounds(sides, args.repetitions), PEER, len(texts))
        expected = torch.as_tensor(encoders[PEER](texts)).double()
        for name, encode in encoders.items():
            if limit := found.get(f"limit of {'bf16' if 'bf16' in name else 'fp32'}"):
                found[name]["of GEMM limit"] = found[name]["median"] / limit["median"]
            cosines = F.cosine_similarity(torch.as_tensor(encode(texts)).to(expected), expected)
            found[name]["cosine min"] = float(cosines.min())
        groups[f"{task} dev, {len(texts)} sentences"] = found
    return groups


def make_encoders(model: BiEncoder, precisions: list[str], device: torch.device) -> dict[str, Any]:
    """Return all encoders by name; PEER is always among them."""
    encoders: dict[str, Any] = {}
    for precision in dict.fromkeys(["fp32", *precisions]):
        dtype = {"dtype": DTYPES[precision]}
        peer = SentenceTransformer(FOLDER, device=str(device), model_kwargs=dtype)
        for size in (16, 32):
            encode = partial(peer.encode, batch_size=size, convert_to_tensor=True)
            encoders[f"sentence-transformers {precision}, batch {size}"] = encode
    for precision in precisions:
        tokenizer, plain = transformers_model(precision, device)
        embed = partial(mean_pooled, tokenizer, plain)
        encoders[f"transformers {precision}, bucketed"] = partial(encode_bucketed, tokenizer, embed)
        if precision == "fp32" and device.type == "cpu":
            embed = onnx_embed(model, tokenizer)
            encoders["ONNX Runtime fp32, bucketed"] = partial(encode_bucketed, tokenizer, embed)
        encoders[f"ours {precision}"] = partial(model.encode, precision=precision)
    return encoders


def transformers_model(precision: str, device: torch.device) -> tuple[Any, Any]:
    """Return tokenizer and model of transformers."""
    model = AutoModel.from_pretrained(FOLDER, dtype=DTYPES[precision])
    tokenizer = AutoTokenizer.from_pretrained(FOLDER, model_max_length=256)  # as the peer
    return tokenizer, model.to(device).eval()


def mean_pooled(tokenizer: Any, model: Any, ids: list[list[int]]) -> Any:
    """Return the mean over the tokens of each text, from one padded pass: (B, H) in float32."""
    inputs = tokenizer.pad({"input_ids": ids}, return_tensors="pt").to(model.device)
    mask = inputs["attention_mask"][..., None].float()
    return (model(**inputs).last_hidden_state.float() * mask).sum(1) / mask.sum(1)


def onnx_embed(model: BiEncoder, tokenizer: Any) -> Any:
    """Return the same function with ONNX Runtime, on our export."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    with tempfile.TemporaryDirectory() as folder:
        write_onnx(model, Path(folder, "minilm.onnx"))
        session = onnxruntime.InferenceSession(f"{folder}/minilm.onnx", options)
    pad, run = partial(tokenizer.pad, return_tensors="np"), partial(session.run, ["pooled"])
    return lambda ids: torch.from_numpy(run(dict(pad({"input_ids": ids})))[0])


@torch.inference_mode()
def encode_bucketed(tokenizer: Any, embed: Callable[..., Tensor], texts: list[str]) -> Tensor:
    """Embed padded batches of 64 texts, sorted by number of tokens."""
    ids = tokenizer(texts, truncation=True)["input_ids"]
    order = np.argsort([-len(one) for one in ids], kind="stable")
    batches = [order[begin : begin + 64] for begin in range(0, len(order), 64)]
    embeddings = torch.cat([embed([ids[row] for row in rows]).cpu() for rows in batches])
    return F.normalize(embeddings[torch.from_numpy(order.argsort())])
