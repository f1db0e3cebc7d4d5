"""Prediction files of a course's tasks for tests: sound ones of any quality, and their data."""

import numpy as np

from reports.submissions.diagnosis import diagnose
from reports.submissions.prediction_names import read_headers

SIZES = {"sst": 1101, "qqp": 4000, "sts": 863}
STEMS = {"sst": "ids-sst", "qqp": "quora", "sts": "sts"}
LABELS = {"sst": "sentiment", "qqp": "is_duplicate", "sts": "similarity"}
TEXTS = {"sst": ["sentence"], "qqp": ["sentence1", "sentence2"], "sts": ["sentence1", "sentence2"]}
CS224N = {"sst": "sst-{}-output.csv", "qqp": "para-{}-output.csv", "sts": "sts-{}-output.csv"}
GOETTINGEN = {
    "sst": "bert/sst-sentiment-{}-output.csv",
    "qqp": "bert/quora-paraphrase-{}-output.csv",
    "sts": "bert/sts-similarity-{}-output.csv",
}
COLUMNS = {
    "sst": "Predicted_Sentiment",
    "qqp": "Predicted_Is_Paraphrase",
    "sts": "Predicted_Similiary",
}
SHARES = {"sst": [0.12, 0.26, 0.21, 0.25, 0.16], "qqp": [0.62, 0.38]}


def true_labels(task, split, size):
    rng = np.random.default_rng([len(task), len(split), size])
    if task == "sts":
        return np.round(rng.beta(1.3, 1.1, size) * 25) / 5
    return rng.choice(len(SHARES[task]), size, p=SHARES[task])


def write_data(folder):
    """Write files of CS224N's names and sizes, with labels in the test files, too."""
    for task, size in SIZES.items():
        for split, name in (("train", "train"), ("dev", "dev"), ("test", "test-student")):
            rows = ["\t".join(["", "id", *TEXTS[task], LABELS[task]])]
            for row, label in enumerate(true_labels(task, split, size)):
                texts = [f"text {row} of {split}"] * len(TEXTS[task])
                rows.append("\t".join([str(row), identity(task, split, row), *texts, str(label)]))
            (folder / f"{STEMS[task]}-{name}.csv").write_text("\n".join(rows) + "\n")


def identity(task, split, row):
    return f"{task}{split}{row:06}"


def sound(task, split, quality, seed):
    """Predictions that are right with about this probability, or correlated so strongly.

    Half of the errors of sst are a neighbouring class, as with trained models.
    """
    rng, gold = np.random.default_rng(seed), true_labels(task, split, SIZES[task])
    if task == "sts":
        noise = rng.normal(0, gold.std() * np.sqrt(1 / quality**2 - 1), len(gold))
        values = (gold - gold.mean() + noise) * quality + gold.mean()
        return np.clip(values, -0.2, 5.3)
    if task == "qqp":
        return np.where(rng.random(len(gold)) < quality, gold, 1 - gold)
    near = np.clip(gold + rng.choice([-1, 1], len(gold)), 0, 4)
    far = rng.choice(5, len(gold), p=SHARES[task])
    guess = np.where(rng.random(len(gold)) < 0.5, near, far)
    return np.where(rng.random(len(gold)) < quality, gold, guess)


def write(folder, task, values, split="dev", ids=None, names=CS224N, row="{} , {} \n"):
    file = folder / names[task].format(split)
    file.parent.mkdir(parents=True, exist_ok=True)
    ids = [identity(task, split, n) for n in range(len(values))] if ids is None else ids
    header = f"id \t {COLUMNS[task]} \n" if " , " in row else f"id,{COLUMNS[task]}\n"
    values = np.array(values, float) if task == "qqp" else values  # 1.0, as in the leaderboard
    file.write_text(header + "".join(map(row.format, ids, np.array(values).tolist())))
    return file


def diagnosed(folder, data, **options):
    return diagnose(read_headers(folder), data, **options)


def kinds(folder, data, **options):
    return [finding.kind for one in diagnosed(folder, data, **options) for finding in one.findings]
