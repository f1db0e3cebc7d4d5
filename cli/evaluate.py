"""Check and score leaderboard files: run.py --mode evaluate --predictions DIR --data DIR

The header, ids and values of every prediction file are checked. Files are scored if their split has
labels. The exit status is 1 if a file has an error.
"""

import argparse
import sys
from pathlib import Path

from cli.flags import SEVERAL, Parser, check_output_file, path
from common.errors import counted, one_line
from multitask.runs import Run
from reports.submissions import check_folder, pack, score_table
from tasks import CS224N, SAMPLE, data_folder


def add_flags(parser: Parser) -> None:
    add = parser.add_argument
    text = "folder of a run, or with files such as sst-dev-output.csv (required)"
    add("--predictions", type=path, required=True, metavar="DIR", help=text)
    text = "folder with the CS224N files (default: the run's, else the bundled sample)"
    add("--data", type=path, metavar="DIR", help=text)
    text = f"tasks whose files are required: {', '.join(CS224N)} (default: all that have files)"
    add("--tasks", choices=CS224N, metavar="TASK", help=text, **SEVERAL)
    text = "pack the files for submission if they are valid; needs dev and test of all tasks"
    add("--zip", type=path, metavar="FILE.zip", help=text)
    add("--overwrite", action="store_true", help="replace an existing zip")


def main(args: argparse.Namespace, parser: Parser) -> int:
    if args.zip:
        check_output_file("zip", args, parser, ".zip")
    folder = Path(args.predictions)
    if (folder / "predictions").is_dir():
        folder = folder / "predictions"
    whole = folder.resolve()
    run = Run(whole.parent if whole.name == "predictions" else whole)
    config = run.read("config.json")
    data = args.data or str(config.get("data", SAMPLE))
    wanted = CS224N if args.zip else args.tasks or ()
    own = [n for n, keys in (run.tasks if config.get("tasks") else {}).items() if "train" in keys]
    checked = check_folder(folder, data_folder(data), wanted, bool(args.zip), own)
    if not checked:
        parser.error(f"--predictions: no files such as sst-dev-output.csv in {folder}")
    where = "the bundled sample" if data == SAMPLE else data
    print(one_line(f"data: {where}; --data DIR reads other files"))
    print(f"\n{score_table(checked)}")
    for one in checked:
        if one.selected:
            line = f"{counted(one.selected, 'example')} selected the members of an ensemble"
            print(one_line(f"{one.file}: {line}; metrics.json has the scores of the others"))
    problems = [problem for one in checked for problem in one.problems]
    for problem in problems:
        print(one_line(problem), file=sys.stderr)
    if args.zip and not problems:
        pack([one.file for one in checked], Path(args.zip))
        print(f"\n{counted(len(checked), 'file')}: {args.zip}")
        if data == SAMPLE:
            print("these predictions are for the bundled sample, not for the course's files")
    elif args.zip:
        print(f"{args.zip} was not written", file=sys.stderr)
    return 1 if problems else 0
