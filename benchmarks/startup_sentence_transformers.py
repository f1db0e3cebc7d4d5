"""A minimal sentence-transformers training script up to its first step, then the process ends."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from datasets import Dataset
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
    losses,
)
from transformers import TrainerCallback

import tasks.sample
from minbert.sources import minilm_folder
from tasks import build_task


class EndAfterFirstStep(TrainerCallback):
    def on_step_end(self, *args: object, **kwargs: object) -> None:
        print("first step finished", flush=True)
        os._exit(0)


def main() -> None:
    examples = build_task("sts").read(Path(tasks.sample.__file__).parent, "train")
    assert examples.targets is not None
    model = SentenceTransformer(str(minilm_folder()))
    data = Dataset.from_dict(
        {
            "sentence1": examples.texts[0],
            "sentence2": examples.texts[1],
            "score": [float(target) / 5 for target in examples.targets],
        }
    )
    trainer = SentenceTransformerTrainer(
        model=model,
        args=SentenceTransformerTrainingArguments(
            output_dir=sys.argv[1],
            per_device_train_batch_size=16,
            optim="adamw_torch_fused",
            report_to="none",
            save_strategy="no",
        ),
        train_dataset=data,
        loss=losses.CosineSimilarityLoss(model),
        callbacks=[EndAfterFirstStep()],
    )
    trainer.train()


if __name__ == "__main__":
    main()
