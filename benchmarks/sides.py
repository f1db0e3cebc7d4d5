"""Scripts that benchmarks run and time in a process of their own: `python -m benchmarks.sides`.

Each imports only what its user would, since imports are part of what is measured.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def encode_with_peer(file: str, output: str) -> None:
    """Encode the sentences of a file as a minimal sentence-transformers script does."""
    import numpy as np
    from sentence_transformers import SentenceTransformer

    from minbert.sources import minilm_folder

    sentences = Path(file).read_text("utf-8").splitlines()
    np.save(output, SentenceTransformer(str(minilm_folder())).encode(sentences))


def first_step(output: str) -> None:
    """Run the command line up to its first training step."""
    from cli import main
    from multitask.loop.trainer import Trainer  # a run imports it, too

    step = Trainer.train_step

    def end_after_step(self: Trainer, *args: object) -> None:
        step(self, *args)  # type: ignore[arg-type]
        end()

    Trainer.train_step = end_after_step  # type: ignore[assignment,method-assign]
    sys.exit(main(["--mode", "single", "--task", "sts", "--output", output]))


def first_step_of_peer(output: str) -> None:
    """Run a minimal sentence-transformers training script up to its first step."""
    from datasets import Dataset
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
        losses,
    )
    from transformers import TrainerCallback

    from minbert.sources import minilm_folder
    from tasks import build_task, data_folder

    class EndAfterFirstStep(TrainerCallback):
        def on_step_end(self, *args: object, **kwargs: object) -> None:
            end()

    examples = build_task("sts").read(data_folder("sample"), "train")
    assert examples.targets is not None
    first, second = examples.texts
    scores = [float(target) / 5 for target in examples.targets]
    model = SentenceTransformer(str(minilm_folder()))
    SentenceTransformerTrainer(
        model=model,
        args=SentenceTransformerTrainingArguments(
            output_dir=output,
            per_device_train_batch_size=16,
            optim="adamw_torch_fused",
            report_to="none",
            save_strategy="no",
        ),
        train_dataset=Dataset.from_dict({"sentence1": first, "sentence2": second, "score": scores}),
        loss=losses.CosineSimilarityLoss(model),
        callbacks=[EndAfterFirstStep()],
    ).train()


def end() -> None:
    """End the process at once: what follows the first step is not measured."""
    print("first step finished", flush=True)
    os._exit(0)


SCRIPTS = (encode_with_peer, first_step, first_step_of_peer)

if __name__ == "__main__":
    {one.__name__: one for one in SCRIPTS}[sys.argv[1]](*sys.argv[2:])
