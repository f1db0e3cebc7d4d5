"""Other libraries, called as their users do, on all-MiniLM-L6-v2 from the same local folder."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from minbert.bi_encoder import BiEncoder
from minbert.sources import minilm_folder
from serving.onnx_export import INPUTS, write_onnx

WIDTH = 384
MAX_TOKENS = 256  # the value that sentence-transformers reads
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
Encode = Callable[[Sequence[str]], np.ndarray]


def sentence_transformer(precision: str, device: torch.device) -> Any:
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(
        str(minilm_folder()), device=str(device), model_kwargs={"dtype": DTYPES[precision]}
    )


def sentence_transformers_encode(model: Any, batch_size: int) -> Encode:
    def encode(texts: Sequence[str]) -> np.ndarray:
        found = model.encode(list(texts), batch_size=batch_size, convert_to_tensor=True)
        return found.float().cpu().numpy()

    return encode


def plain_tokenizer() -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(minilm_folder())


def plain_model(precision: str, device: torch.device) -> Any:
    from transformers import AutoModel

    return AutoModel.from_pretrained(minilm_folder(), dtype=DTYPES[precision]).to(device).eval()


def mean_pooled(states: Tensor, mask: Tensor) -> Tensor:
    """Average states (B, L, H) over a mask (B, L): (B, H) in float32."""
    mask = mask[..., None].float()
    return (states.float() * mask).sum(1) / mask.sum(1)


def tokenised(tokenizer: Any, texts: Sequence[str]) -> list[list[int]]:
    return tokenizer(list(texts), truncation=True, max_length=MAX_TOKENS)["input_ids"]


def pad(tokenizer: Any, lists: list[list[int]]) -> Any:
    return tokenizer.pad({"input_ids": lists}, return_tensors="pt")


def padded_encode(embed: Callable[[Any], Tensor], tokenizer: Any, batch_size: int) -> Encode:
    """Return an encoder of padded batches, sorted by number of tokens.

    `embed` returns the embeddings (B, H) of a padded batch, on the CPU or a GPU.
    """

    @torch.inference_mode()
    def encode(texts: Sequence[str]) -> np.ndarray:
        lists = tokenised(tokenizer, texts)
        order = np.argsort([-len(ids) for ids in lists], kind="stable")
        result = torch.empty(len(texts), WIDTH)
        for begin in range(0, len(order), batch_size):
            rows = order[begin : begin + batch_size]
            embeddings = embed(pad(tokenizer, [lists[row] for row in rows]))
            result[torch.from_numpy(rows)] = embeddings.cpu()
        return torch.nn.functional.normalize(result).numpy()

    return encode


def transformers_encode(model: Any, tokenizer: Any, batch_size: int) -> Encode:
    def embed(inputs: Any) -> Tensor:
        inputs = inputs.to(model.device)
        return mean_pooled(model(**inputs).last_hidden_state, inputs["attention_mask"])

    return padded_encode(embed, tokenizer, batch_size)


def onnx_encode(tokenizer: Any, batch_size: int) -> Encode:
    """Return an encoder of ONNX Runtime on the CPU: all graph optimisations, our export."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "minilm.onnx"
        write_onnx(BiEncoder.from_pretrained("minilm"), file)
        providers = ["CPUExecutionProvider"]
        session = onnxruntime.InferenceSession(str(file), options, providers=providers)

    def embed(inputs: Any) -> Tensor:
        arrays = {name: inputs[name].numpy() for name in INPUTS}
        return torch.from_numpy(session.run(["pooled"], arrays)[0])

    return padded_encode(embed, tokenizer, batch_size)
