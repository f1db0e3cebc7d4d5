"""Compare runs: run.py --mode compare --runs single=RUN single=RUN multi=RUN

Runs that differ only in task and seed form one system; NAME=RUN assigns a run to a system. The
other systems are compared with the first one.

Compare the runs of an affinity study with its advice: run.py --mode compare --advice FILE

Compare two configurations: run.py --mode compare --until-sure --margin 0.3 --budget 6h A B

A and B are trained with seed 1, then with seed 2, and so on, until the difference of their dev
score is settled. Finished runs in --output are not repeated.

Check the result on another machine: run.py --mode compare --verify FILE --data DIR
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from cli.settings_flags import flag, path
from common.argument_types import name_and_path, typed
from common.entry_point import if_interrupted
from common.errors import SettingsError, UserError, one_line
from common.settings import Count, Positive
from multitask.control import parse_every

FILES = ("comparison.md", "comparison.tex", "comparison.html")
KINDS = ("runs", "advice", "until_sure", "verify")  # of comparisons
COMPARISON, UNTIL_SURE = "comparison", "runs/until-sure"  # default folders


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "configurations",
        nargs="*",
        default=[],
        metavar="A B",
        type=path,
        help="with --until-sure: two files of settings, .json or .yaml, or folders of runs; their "
        "seeds are replaced",
    )
    parser.add_argument(
        "--runs",
        nargs="+",
        type=path,
        metavar="[NAME=]RUN",
        help="folders of finished runs; the first one belongs to the baseline, with which the "
        "other systems are compared",
    )
    parser.add_argument(
        "--advice",
        type=path,
        metavar="FILE",
        help="advice.json of mode affinity: compare its finished runs, and what it promised",
    )
    parser.add_argument(
        "--embeddings",
        choices=("pca", "tsne", "none"),
        help="projection of dev sentences on the page, coloured by label (default: pca)",
    )
    parser.add_argument(
        "--output",
        type=path,
        metavar="DIR",
        help="folder; comparison.html, .md, .tex and figures in it are replaced (default: "
        f"comparison); with --until-sure, of the runs and their result (default: {UNTIL_SURE})",
    )
    add_until_sure_flags(parser.add_argument_group("until sure"))


def add_until_sure_flags(group: Any) -> None:
    """Add the flags of comparisons that say when to stop, and of the check of their result."""
    group.add_argument(
        "--until-sure",
        action="store_true",
        help="train seeds of A and B in turn until one is better, the difference is below the "
        "margin, or the budget is spent",
    )
    group.add_argument(
        "--margin",
        type=typed(Positive),
        metavar="POINTS",
        help="largest difference that does not matter, in points (0.01 of a score); required with "
        "--until-sure",
    )
    group.add_argument(
        "--budget",
        type=seconds,
        metavar="TIME",
        help="time of all runs together, such as 90s, 10m or 6h (default: no limit)",
    )
    group.add_argument(
        "--most-seeds",
        type=typed(Count),
        metavar="N",
        help="largest number of seeds of each configuration, 3 or more (default: 20)",
    )
    group.add_argument(
        "--score",
        metavar="TASK",
        help="task whose main dev metric is compared, or overall (default: the only common task, "
        "or overall)",
    )
    group.add_argument(
        "--examples",
        choices=("sampled", "fixed"),
        help="sampled: the verdict is also about new examples; fixed: only about new seeds on "
        "these dev examples (default: sampled)",
    )
    group.add_argument(
        "--data",
        type=path,
        metavar="DIR",
        help="data folder in place of that of A and B; with --verify, the folder to check",
    )
    group.add_argument(
        "--verify",
        type=path,
        metavar="FILE",
        help="check the checksum and the verdict of a result, and with --data its data",
    )


def seconds(text: str) -> float:
    """Parse a time such as 90s, 10m or 6h."""
    try:
        found = parse_every(text).seconds
    except ValueError:
        found = None
    if found is None:
        raise argparse.ArgumentTypeError(f"expected a time such as 90s, 10m or 6h, found {text!r}")
    return found


def main(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    check_flags(args)
    if args.verify:
        return verify(args)
    return compare_until_sure(args) if args.until_sure else compare_runs(args)


def check_flags(args: argparse.Namespace) -> None:
    """Raise SettingsError unless the flags are those of one kind of comparison."""
    chosen = [name for name in KINDS if getattr(args, name)]
    if len(chosen) != 1:
        found = " and ".join(flag(name) for name in chosen) or "none"
        kinds = ", ".join(map(flag, KINDS))
        raise SettingsError(f"{kinds}: expected one of them, found {found}")
    for name in ("margin", "budget", "most_seeds", "score", "examples", "data"):
        given = getattr(args, name) is not None
        if given and not args.until_sure and not (name == "data" and args.verify):
            raise SettingsError(f"{name}: expected --until-sure, found {flag(chosen[0])}")
    if args.embeddings and (args.until_sure or args.verify):
        raise SettingsError(f"embeddings: expected --runs or --advice, found {flag(chosen[0])}")
    if args.output and args.verify:
        raise SettingsError("output: not accepted with --verify, which writes nothing")
    count = len(args.configurations)
    if args.until_sure and count != 2:
        raise SettingsError(f"until_sure: expected two configurations, found {count}")
    if args.until_sure and args.margin is None:
        raise SettingsError("margin: expected a number of points, such as 0.3, found none")
    if count and not args.until_sure:
        raise SettingsError(f"{flag(chosen[0])}: expected no other arguments, found {count}")


def compare_until_sure(args: argparse.Namespace) -> int:
    """Train pairs of runs until the comparison is settled, and print its result."""
    from studies.until_sure import comparison
    from studies.until_sure.stopping import Rule

    first, other = (
        comparison.read_configuration(Path(one), args.data) for one in args.configurations
    )
    folder = Path(args.output or UNTIL_SURE)
    with if_interrupted("the same command goes on"):
        found = comparison.compare_until_sure(
            first,
            other,
            folder,
            args.margin,
            examples=args.examples or Rule.examples,
            budget=args.budget,
            most_seeds=args.most_seeds or Rule.most_seeds,
            score=args.score,
        )
    for name, one in zip("AB", args.configurations, strict=True):
        print(f"{name}: {one}")
    print(f"\n{comparison.summary(found)}\n\n{comparison.FILE} and the runs: {folder}")
    return 0


def verify(args: argparse.Namespace) -> int:
    """Print one line for each check of a result; return 1 if one of them fails."""
    from studies.until_sure.sealed_comparison import verify

    checks = list(verify(Path(args.verify), args.data))
    for name, wrong in checks:
        print(f"{name}: ok" if wrong is None else one_line(f"{name}: WRONG: {wrong}"))
    return 1 if any(wrong for _, wrong in checks) else 0


def compare_runs(args: argparse.Namespace) -> int:
    """Write the report on finished runs."""
    from common.atomic_files import atomic_write_text
    from multitask.storage.stored_runs import read_run
    from reports.advice import promise_section, read_advice
    from reports.comparison import compare
    from reports.comparison_figures import all_figures
    from reports.comparison_page import comparison_page
    from reports.comparison_tables import as_latex, as_markdown, as_text
    from reports.embedding_maps import embedding_maps
    from reports.figures import FIGURES, save_drawings
    from reports.scored_systems import score_systems
    from reports.systems import group_runs

    promises = None
    if args.advice:
        runs, promises = read_advice(Path(args.advice))
        named: list[tuple[str | None, Path]] = [*runs]
    else:
        named = [name_and_path(text) for text in args.runs]
    systems = group_runs([(name, read_run(folder)) for name, folder in named])
    folder = Path(args.output or COMPARISON)
    make_folder(folder)
    comparison = compare(score_systems(systems))
    if promises is not None:
        comparison = replace(comparison, further=(promise_section(comparison, promises),))
    print(as_text(comparison), flush=True)
    drawings = dict(all_figures(comparison))
    method = args.embeddings or "pca"
    if method != "none" and (maps := embedding_maps(comparison.systems, method)):
        drawings["Sentences of dev by label"] = maps
    page = comparison_page(comparison, drawings)
    texts = as_markdown(comparison), as_latex(comparison), page
    for name, text in zip(FILES, texts, strict=True):
        atomic_write_text(folder / name, text)
    save_drawings(drawings, folder)
    print(f"\n{', '.join(FILES)}, {FIGURES}: {folder}")
    return 0


def make_folder(folder: Path) -> None:
    """Create the folder before any computation; raise UserError if files cannot be written."""
    from multitask.storage.run_folder import RunFolder
    from reports.figures import FIGURES

    if RunFolder(folder).config_file.exists():
        line = "expected a folder for a report, found one with a config.json"
        raise UserError(f"{folder}: {line}; choose another --output")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        line = f"{folder}: expected a folder that can be written ({error.strerror})"
        raise UserError(f"{line}; choose another --output") from error
    for name in FILES:
        if (folder / name).is_dir():
            raise UserError(f"{folder / name}: expected a file or nothing, found a folder")
    there = [name for name in FILES if (folder / name).exists()]
    if there and len(there) < len(FILES):
        expected = "expected no such file, or all files of a report, which is replaced"
        raise UserError(f"{folder / there[0]}: {expected}; choose another --output")
    if (folder / FIGURES).exists() and not (folder / FIGURES).is_dir():
        raise UserError(f"{folder / FIGURES}: expected a folder or nothing, found a file")
