"""Time and memory of mining similar sentence pairs, compared with paraphrase_mining.

    python -m benchmarks.mining --data DIR --sentences 100000 --output results/scale/mining.json

The sentences are from Quora, STS and SST-2. Each side runs in its own process, whose memory is
sampled twenty times per second. Ours is `--mode mine`, checked by brute force on a sample of rows.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.output import write_figures
from benchmarks.scale import run_monitored
from common.entry_point import start
from minbert.bi_encoder import BiEncoder
from minbert.sources import minilm_folder
from tasks import build_task, data_folder

TASKS = ("qqp", "sts", "sst2")
SAMPLE = 500  # rows compared with brute force


def sentences_of(folder: Path, count: int) -> list[str]:
    """Return distinct sentences of the available training files."""
    found: dict[str, None] = {}
    for name in TASKS:
        task = build_task(name)
        if Path(task.source.where(folder, "train")).exists():
            for column in task.read(folder, "train").texts:
                found |= dict.fromkeys(" ".join(text.split()) for text in column)
    found.pop("", None)
    return list(found)[:count]


def missed(sentences: list[str], found: list[list[str]]) -> int:
    """Count pairs above the lowest score, of sampled rows, that only float64 brute force finds.

    Pairs within rounding of the lowest score are ignored.
    """
    embeddings = BiEncoder.from_pretrained("minilm").encode(sentences, normalize=True)
    rows = np.random.default_rng(0).permutation(len(sentences))[:SAMPLE]
    least = min(float(row[0]) for row in found)
    known = {frozenset((int(row[1]) - 1, int(row[2]) - 1)) for row in found}
    count = 0
    for row in rows:
        cosines = embeddings.astype(np.float64) @ embeddings[row].astype(np.float64)
        cosines[row] = -2
        for other in np.flatnonzero(cosines > least + 1e-3):
            count += frozenset((int(row), int(other))) not in known
    return count


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", required=True, help="folder with the CS224N files and glue/")
    parser.add_argument("--sentences", type=int, default=100_000)
    parser.add_argument("--top", type=int, default=10_000, help="number of pairs")
    parser.add_argument("--output", type=Path, help="write the figures as JSON")
    args = parser.parse_args()
    sentences = sentences_of(data_folder(args.data), args.sentences)
    with tempfile.TemporaryDirectory() as place:
        file, target = Path(place) / "sentences.txt", Path(place) / "pairs.tsv"
        file.write_text("\n".join(sentences) + "\n", "utf-8")
        mine = ["run.py", "--mode", "mine", "--input", str(file), "--top", str(args.top)]
        ours = run_monitored([sys.executable, *mine, "--output", str(target)])
        with target.open(encoding="utf-8", newline="") as opened:
            found = list(csv.reader(opened, delimiter="\t"))[1:]
        mining = float(ours.pop("stderr").strip().splitlines()[-1].split(" in ")[1].split()[0])
        peer = [sys.executable, "-m", "benchmarks.sides", "mine_with_peer"]
        theirs = run_monitored([*peer, str(minilm_folder()), str(file), str(args.top)])
        parts = json.loads(theirs.pop("stdout").strip().splitlines()[-1])
    ours.pop("stdout")
    theirs.pop("stderr")
    result = {
        "sentences": len(sentences),
        "pairs": len(sentences) * (len(sentences) - 1) // 2,
        "top": args.top,
        "ours": ours | {"mining": mining, "least": float(found[-1][0])},
        "sentence-transformers": theirs | {k: round(v, 4) for k, v in parts.items()},
        "times_faster": round(theirs["seconds"] / ours["seconds"], 2),
        "times_faster_mining_alone": round(parts["mining"] / mining, 2),
        "missed_of_a_sample": missed(sentences, found),
    }
    print(json.dumps(result, indent=2))
    write_figures(args.output, result)


if __name__ == "__main__":
    start("python -m benchmarks.mining", main)
