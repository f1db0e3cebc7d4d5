"""One small JSON a finished run, to be kept under results/: python -m reports.cells RUN FILE"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from minbert.json_files import read_json, write_json
from multitask.run_folder import RunError, finished_metrics


def cell(run: Path) -> dict[str, Any]:
    """Configuration, environment and metrics of a run; folders are named without their path.

    Raises RunError if the run is not finished.
    """
    metrics = finished_metrics(run)
    if metrics is None:
        raise RunError(f"{run}: expected a finished run with metrics.json, found none")
    config = read_json(run / "config.json", RunError)
    for key in ("data", "init", "encoder"):
        if config[key]:
            config[key] = Path(config[key]).name
    return {"config": config} | metrics


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m reports.cells", description=__doc__)
    parser.add_argument("run", type=Path, help="folder of a finished run")
    parser.add_argument(
        "file", type=Path, help="JSON file to write, such as results/STUDY/CELL.json"
    )
    args = parser.parse_args()
    args.file.parent.mkdir(parents=True, exist_ok=True)
    write_json(args.file, cell(args.run))


if __name__ == "__main__":
    main()
