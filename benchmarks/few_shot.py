"""Classes from few examples, beside SetFit and beside logistic regression on embeddings.

    python -m benchmarks.few_shot --data DIR --output results/few-shot

Accuracy and processor seconds of training on 8, 64 and all examples per class (of SST-2 at most
20,000), with all-MiniLM-L6-v2 from the same local folder in fp32. Each finished measurement is one
JSON file, which is not repeated; rows of a package that is not installed are left out. SetFit needs
`pip install setfit`.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.__main__ import quiet_peers
from common.entry_point import start
from common.environment import environment
from common.json_files import write_json
from minbert.sources import minilm_folder
from reports.tables import markdown_table, mean_and_spread
from tasks import build_task, data_folder

DATA = ("trec", "sst2")  # scored on the dev file, which chooses nothing
SHOTS = (8, 64, None)  # training examples per class; None: all
SEEDS = (11711, 1, 2)
MOST = 20_000  # training examples of "all"
LARGE = ("sst2",)  # SetFit's list of all pairs of 20,000 texts needs more than 24 GB
STEPS = 200  # at least, of our training
BATCH = 16
PAIRS = 20  # of SetFit per example (Tunstall et al., 2022, section 3: R = 20)
PAIRS_OF_ALL = 1

Texts = Sequence[str]
Predict = Callable[[Texts], np.ndarray]
Fit = Callable[[Texts, np.ndarray, bool, int], Predict]  # texts, classes, all examples?, seed


def fine_tuned(texts: Texts, labels: np.ndarray, every: bool, seed: int) -> Predict:
    """This toolkit: encoder and head trained by cross-entropy, at least `STEPS` steps."""
    from serving import SentenceClassifier

    epochs = max(3, -(-STEPS * BATCH // len(texts)))
    fp32 = {"precision": "fp32"}  # as the others
    model = SentenceClassifier(epochs=epochs, batch_size=BATCH, settings=fp32, random_state=seed)
    return model.fit(list(texts), labels).predict


def regression(texts: Texts, labels: np.ndarray, every: bool, seed: int) -> Predict:
    """sentence-transformers and scikit-learn: logistic regression on embeddings."""
    from sentence_transformers import SentenceTransformer
    from sklearn.linear_model import LogisticRegression

    encoder = SentenceTransformer(str(minilm_folder()), device="cpu")
    head = LogisticRegression(max_iter=1000).fit(encoder.encode(list(texts)), labels)
    return lambda new: head.predict(encoder.encode(list(new)))


def setfit(texts: Texts, labels: np.ndarray, every: bool, seed: int) -> Predict:
    """SetFit with its defaults and `PAIRS` pairs per example, or one with all examples."""
    from datasets import Dataset
    from setfit import SetFitModel, Trainer, TrainingArguments

    model = SetFitModel.from_pretrained(str(minilm_folder()), device="cpu")
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            num_iterations=PAIRS_OF_ALL if every else PAIRS,
            seed=seed,
            save_strategy="no",
            report_to="none",
        )
        data = Dataset.from_dict({"text": list(texts), "label": labels})
        Trainer(model=model, args=arguments, train_dataset=data).train()
    return lambda new: np.asarray(model.predict(list(new)))


METHODS: dict[str, tuple[str, Fit]] = {  # name: package, training
    "this toolkit": ("torch", fine_tuned),
    "SetFit": ("setfit", setfit),
    "embeddings + logistic regression": ("sentence_transformers", regression),
}


def drawn(labels: np.ndarray, shots: int | None, seed: int) -> np.ndarray:
    """Return the rows of `shots` examples of each class, or of all examples up to `MOST`."""
    random = np.random.default_rng(seed)
    if shots is None:
        return random.permutation(len(labels))[:MOST]
    rows = [random.permutation(np.flatnonzero(labels == one))[:shots] for one in np.unique(labels)]
    return np.concatenate(rows)


def measured(data: str, shots: int | None, fit: Fit, seed: int, folder: Path) -> dict[str, Any]:
    """Train on the drawn examples; return accuracy, seconds and numbers of examples."""
    task = build_task(data)
    train, scored = task.read(folder, "train"), task.read(folder, "dev")
    assert train.targets is not None
    assert scored.targets is not None
    rows = drawn(train.targets, shots, seed)
    texts = [train.texts[0][row] for row in rows]
    begin = time.process_time()
    predict = fit(texts, train.targets[rows], shots is None, seed)
    trained = time.process_time() - begin
    found = predict(scored.texts[0])
    return {
        "accuracy": float(np.mean(found == scored.targets)),
        "training_seconds": round(trained, 1),
        "prediction_seconds": round(time.process_time() - begin - trained, 1),
        "examples": len(rows),
        "scored": len(scored),
    }


def name_of(data: str, shots: int | None, method: str, seed: int) -> str:
    return f"{data}-{shots or 'all'}-{method.replace(' + ', '-').replace(' ', '-').lower()}-{seed}"


def table(output: Path) -> str:
    """Return accuracy and seconds of training by data, method and examples per class."""
    rows = []
    for data, method in product(DATA, METHODS):
        row = [data, method]
        for shots in SHOTS:
            files = [output / f"{name_of(data, shots, method, seed)}.json" for seed in SEEDS]
            cells = [json.loads(file.read_text("utf-8")) for file in files if file.exists()]
            if not cells:
                row.append("")
                continue
            accuracy = mean_and_spread([100 * one["accuracy"] for one in cells], 1)
            seconds = np.mean([one["training_seconds"] for one in cells])
            row.append(f"{accuracy}, {seconds:,.0f} s, n {len(cells)}")
        rows.append(row)
    return markdown_table(["data", "method", *(f"{s or 'all'} per class" for s in SHOTS)], rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.few_shot",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", default="sample", help="folder with the folder glue")
    parser.add_argument("--output", type=Path, required=True, help="folder of the results")
    parser.add_argument("--shots", nargs="+", default=["8", "64", "all"], help="examples per class")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--seeds", type=int, default=len(SEEDS), help="number of seeds")
    args = parser.parse_args()
    quiet_peers()
    args.output.mkdir(parents=True, exist_ok=True)
    shots = [None if one == "all" else int(one) for one in args.shots]
    for seed, data, count, method in product(SEEDS[: args.seeds], DATA, shots, args.methods):
        file = args.output / f"{name_of(data, count, method, seed)}.json"
        package, fit = METHODS[method]
        if file.exists() or find_spec(package) is None:
            continue
        if method == "SetFit" and count is None and data in LARGE:
            print(f"{file.stem}: left out, as SetFit needs more than 24 GB of memory")
            continue
        found = measured(data, count, fit, seed, data_folder(args.data))
        content = {"data": data, "shots": count or "all", "method": method, "seed": seed, **found}
        content["environment"] = environment("cpu")
        write_json(file, content)
        print(f"{file.stem}: {100 * found['accuracy']:.1f} in {found['training_seconds']:,.0f} s")
    print(table(args.output))


if __name__ == "__main__":
    start("python -m benchmarks.few_shot", main)
