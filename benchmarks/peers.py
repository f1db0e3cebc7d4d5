"""Other libraries, called as their users do, on all-MiniLM-L6-v2 from the same local folder."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from minbert.sources import minilm_folder
from minbert.tokenizer import Tokenizer
from serving.static import Student
from serving.static_export import save_student

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


def padded_encode(
    states_of: Callable[[Any], Tensor], tokenizer: Any, batch_size: int, bucketed: bool
) -> Encode:
    """Return an encoder of padded batches, in text order or sorted by number of tokens.

    `states_of` returns the last hidden states (B, L, H) of a padded batch, on the CPU or a GPU.
    """

    @torch.inference_mode()
    def encode(texts: Sequence[str]) -> np.ndarray:
        lists = tokenizer(list(texts), truncation=True, max_length=MAX_TOKENS)["input_ids"]
        order = np.arange(len(texts))
        if bucketed:
            order = np.argsort([-len(ids) for ids in lists], kind="stable")
        result = torch.empty(len(texts), WIDTH)
        for begin in range(0, len(order), batch_size):
            rows = order[begin : begin + batch_size]
            inputs = pad(tokenizer, [lists[row] for row in rows])
            states = states_of(inputs)
            mask = inputs["attention_mask"].to(states.device)
            result[torch.from_numpy(rows)] = mean_pooled(states, mask).cpu()
        return torch.nn.functional.normalize(result).numpy()

    return encode


def transformers_encode(model: Any, tokenizer: Any, batch_size: int, bucketed: bool) -> Encode:
    def states_of(inputs: Any) -> Tensor:
        return model(**inputs.to(model.device)).last_hidden_state

    return padded_encode(states_of, tokenizer, batch_size, bucketed)


def pad(tokenizer: Any, lists: list[list[int]]) -> Any:
    return tokenizer.pad({"input_ids": lists}, return_tensors="pt")


def onnx_encode(tokenizer: Any, batch_size: int, int8: bool = False) -> Encode:
    """Return an ONNX Runtime encoder: CPU, all graph optimisations, sorted batches.

    With `int8`, weights have a scale per output channel; activations are quantised dynamically.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "minilm.onnx"
        export_onnx(file)
        if int8:
            from onnxruntime.quantization import QuantType, quantize_dynamic

            quantised = Path(folder) / "int8.onnx"
            quantize_dynamic(file, quantised, weight_type=QuantType.QInt8, per_channel=True)
            file = quantised
        providers = ["CPUExecutionProvider"]
        session = onnxruntime.InferenceSession(str(file), options, providers=providers)

    def states_of(inputs: Any) -> Tensor:
        return torch.from_numpy(session.run(None, onnx_inputs(inputs))[0])

    return padded_encode(states_of, tokenizer, batch_size, bucketed=True)


def openvino_encode(tokenizer: Any, batch_size: int, calibration: Sequence[str]) -> Encode:
    """Return an OpenVINO encoder in int8: CPU, sorted batches.

    NNCF quantises weights and activations, whose ranges come from the texts of `calibration`.
    """
    import nncf
    import openvino

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "minilm.onnx"
        export_onnx(file)
        model = openvino.convert_model(str(file))
    lists = tokenizer(list(calibration), truncation=True, max_length=MAX_TOKENS)["input_ids"]
    samples = nncf.Dataset([onnx_inputs(pad(tokenizer, [ids])) for ids in lists])
    kind = nncf.ModelType.TRANSFORMER
    quantised = nncf.quantize(model, samples, model_type=kind, subset_size=len(lists))
    settings = {
        "INFERENCE_NUM_THREADS": torch.get_num_threads(),
        "INFERENCE_PRECISION_HINT": "f32",  # of the other layers; else bf16 where the CPU has it
    }
    compiled = openvino.Core().compile_model(quantised, "CPU", settings)

    def states_of(inputs: Any) -> Tensor:
        return torch.from_numpy(compiled(onnx_inputs(inputs))[0])

    return padded_encode(states_of, tokenizer, batch_size, bucketed=True)


def onnx_inputs(inputs: Any) -> dict[str, np.ndarray]:
    return {name: inputs[name].numpy() for name in ("input_ids", "attention_mask")}


def model2vec_encode(width: int) -> Encode:
    """Return a model2vec encoder, distilled from the same weights by its own `distill`."""
    from model2vec.distill import distill

    return distill(str(minilm_folder()), pca_dims=width).encode


def static_encode(student: Student, tokenizer: Tokenizer) -> Encode:
    """Return our static student as sentence-transformers opens its export."""
    from sentence_transformers import SentenceTransformer

    with tempfile.TemporaryDirectory() as folder:
        save_student(student, tokenizer, Path(folder))
        model = SentenceTransformer(folder, device="cpu")
    return sentence_transformers_encode(model, 1024)


class LastStates(torch.nn.Module):
    """A model with the last hidden states as its only output, for export."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        found = self.model(input_ids=input_ids, attention_mask=attention_mask)
        return found.last_hidden_state


def export_onnx(file: Path) -> None:
    model = LastStates(plain_model("fp32", torch.device("cpu")))
    ids = torch.ones(2, 7, dtype=torch.long)
    axes = {0: "batch", 1: "tokens"}
    torch.onnx.export(
        model,
        (ids, torch.ones_like(ids)),
        str(file),
        input_names=["input_ids", "attention_mask"],
        output_names=["states"],
        dynamic_axes={"input_ids": axes, "attention_mask": axes, "states": axes},
        dynamo=False,
    )
