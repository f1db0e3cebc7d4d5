"""Tables and sentences about which tasks help each other, and their page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path

from common.atomic_files import atomic_write_text
from common.errors import UserError
from multitask.affinity.estimators import ESTIMATORS
from multitask.affinity.groups import Group, Grouping
from multitask.affinity.result import Affinity, sign_of
from reports.affinity_figures import affinity_figures
from reports.comparison_page import rendered
from reports.figures import Drawing, save_drawings, seeds_text, signed
from reports.tables import Section, Table

PAGE = "affinity.html"
UNCLEAR = "show neither agreement nor conflict"
NOTE = (
    "An asterisk: the 95 % interval, from bootstrapping the measured steps{seeds}, excludes 0. In "
    "a larger group, {rule}. These are estimates from a short joint run, not scores of trained "
    "models; docs/affinity.md describes what they cannot see."
)


def shown_gain(value: float, estimator: str) -> str:
    """Format a gain: a cosine, or per cent."""
    kind = ESTIMATORS[estimator]
    return signed(kind.factor * value, kind.digits)


def gain_title(estimator: str) -> str:
    """Return the title of a table of gains of pairs, with their unit."""
    return f"gains by {with_unit(estimator)}"


def with_unit(estimator: str) -> str:
    """Return the name of an estimator and the unit of its gains."""
    return f"{estimator} ({ESTIMATORS[estimator].unit})"


def verb(low: float, high: float) -> str:
    """Describe the effect of one task on another by the interval of its gain."""
    return {1: "helps", -1: "hurts", 0: "has no clear effect on"}[sign_of(low, high)]


def sentence(found: Affinity, i: int, j: int) -> str:
    """Return one sentence about a pair of tasks."""
    one, name = found.chosen, found.estimator
    first, second = found.tasks[i], found.tasks[j]

    percent = ESTIMATORS[name].percent

    def values(other: int, task: int) -> str:
        unit = " %" if percent else ""
        shown = (one.pairs, *one.ends)
        gain, low, high = (shown_gain(matrix[other, task], name) for matrix in shown)
        return f"{gain}{unit}, {low} to {high}"

    forward, back = (verb(*one.ends[:, a, b]) for a, b in ((i, j), (j, i)))
    if not percent:
        agree = {"helps": "agree", "hurts": "are in conflict"}.get(forward, UNCLEAR)
        return f"The gradients of {first} and {second} {agree} (cosine {values(i, j)})."
    joint = "and" if forward == back else "but"
    return (
        f"{first} {forward} {second} ({values(i, j)}), {joint} "
        f"{second} {back} {first} ({values(j, i)})."
    )


def sentences(found: Affinity) -> list[str]:
    """Return one sentence per pair of tasks."""
    return [sentence(found, i, j) for i, j in combinations(range(len(found.tasks)), 2)]


def gain_table(found: Affinity, estimator: str | None = None) -> Table:
    """Return the table of all gains; a row is the other task, a column the task that gains."""
    name = estimator or found.estimator
    one, rows = found.estimates[name], []
    for i, other in enumerate(found.tasks):
        row = [f"with {other}"]
        for j in range(len(found.tasks)):
            low, high = one.ends[:, i, j]
            mark = "*" if sign_of(low, high) else ""
            row.append("" if i == j else shown_gain(one.pairs[i, j], name) + mark)
        rows.append(row)
    return ["gain of", *found.tasks], rows


def group_text(found: Affinity, group: Group) -> str:
    """Return `sst + qqp`, or `sst + qqp for sst` if the group serves only some of its tasks."""
    names = [" + ".join(found.tasks[t] for t in several) for several in (group.tasks, group.serves)]
    return names[0] if group.tasks == group.serves else " for ".join(names)


def grouping_text(found: Affinity, grouping: Grouping) -> str:
    """Return the groups of a grouping in one line."""
    return "; ".join(group_text(found, one) for one in grouping.groups)


def group_table(found: Affinity) -> Table:
    """Return the table of the groupings of at most 1, 2, ... groups."""
    rows = [
        [str(count), grouping_text(found, one), shown_gain(one.total, found.estimator)]
        for count, one in enumerate(found.chosen.groupings, 1)
    ]
    return ["groups at most", "trained together", "sum of gains"], rows


def verdict(found: Affinity) -> str:
    """Return the groups with the largest estimated gain, in one sentence."""
    best = found.chosen.best
    total = shown_gain(best.total, found.estimator)
    return (
        f"With at most {len(found.chosen.groupings)} groups, the sum of gains is largest "
        f"({total}, by {found.estimator}) for: {grouping_text(found, best)}."
    )


def cost_text(found: Affinity) -> str:
    """Return the time of the joint runs and of the measurement."""
    return (
        f"{seeds_text(found.seeds)}; {found.rounds} batches of each task measured; training "
        f"{found.training_seconds:.0f} s, measurement {found.measuring_seconds:.0f} s."
    )


def notes(found: Affinity) -> str:
    """Return what a gain means, and the limits of the estimates."""
    seeds = " and seeds" if len(found.seeds) > 1 else ""
    kind = ESTIMATORS[found.estimator]
    return f"{kind.meaning} {NOTE.format(seeds=seeds, rule=kind.group_rule)}"


def affinity_page(found: Affinity, drawings: Mapping[str, Sequence[Drawing]]) -> str:
    """Return the HTML text of the page with these drawings by title of their section."""
    pairs = [f"{a} and {b}" for a, b in combinations(found.tasks, 2)]
    others = [name for name in ESTIMATORS if name != found.estimator]
    title = gain_title(found.estimator).capitalize()
    tables = [
        Section(f"{title}, of the task in the column", gain_table(found)),
        Section(
            "Pairs",
            (["pair", "estimate"], [[a, b] for a, b in zip(pairs, sentences(found), strict=True)]),
            numbers=False,
        ),
        Section("Groups", group_table(found), numbers=False),
        *(Section(f"Beside it: {gain_title(name)}", gain_table(found, name)) for name in others),
    ]
    return rendered(
        "Affinity",
        names=list(found.tasks),
        summary=cost_text(found),
        verdicts=[verdict(found)],
        tables=tables,
        notes=" ".join([notes(found), *(f"{name}: {ESTIMATORS[name].meaning}" for name in others)]),
        drawings=drawings,
    )


def write_report(found: Affinity, folder: Path) -> None:
    """Write `affinity.html` and the figures beside it; raise UserError if that is impossible."""
    drawings = affinity_figures(found)
    try:
        save_drawings(drawings, folder)
        atomic_write_text(folder / PAGE, affinity_page(found, drawings))
    except OSError as error:
        raise UserError(f"{folder}: cannot be written: {error.strerror}") from error
