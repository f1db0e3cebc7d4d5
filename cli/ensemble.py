"""Merge the predictions of several finished runs: run.py --mode ensemble --runs RUN RUN RUN

Each run is a member for all tasks that it has predicted. TASK=RUN uses a run for one task only. By
default, classes are chosen by majority vote, and similarities are averaged.
"""

import argparse
from pathlib import Path
from zlib import crc32

from cli.flags import SEVERAL, Parser, path
from cli.training import add_output
from common.errors import counted
from ensemble.merge import METHODS
from multitask.settings.config import RunConfig

HELP = (
    "vote: majority vote of classes; average: class with the largest mean probability; greedy: "
    "members are chosen on one half of dev, and scored on the other (default: vote)"
)


def add_flags(parser: Parser) -> None:
    add, text = parser.add_argument, "folders of finished runs (required)"
    add("--runs", type=path, required=True, metavar="[TASK=]RUN", help=text, **SEVERAL)
    add("--method", choices=METHODS, default="vote", help=HELP)
    parser.add_settings(("seed",))
    add_output(parser)


def main(args: argparse.Namespace, parser: Parser) -> int:
    from ensemble.runs import ensemble_runs, members_of
    from reports.run_tables import ensemble_table

    seed = RunConfig(**parser.given(args)).seed
    members = members_of(args.runs)
    default = f"ensemble-{args.method}-{crc32(repr((members, args.seed)).encode()):08x}"
    folder = Path(args.output or Path("runs") / default)
    result = ensemble_runs(members, args.method, seed, folder, args.overwrite)
    print(ensemble_table(result))
    for task, found in result["members"].items():
        if count := found["selected_on_examples"]:
            rest = found["reported_examples"]
            chose = f"{counted(count, 'dev example')} selected members"
            print(f"{task}: {chose}, and the other {rest:,} are scored")
    print(f"\npredictions and metrics.json: {folder}")
    return 0
