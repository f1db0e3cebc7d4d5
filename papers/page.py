"""The page of a paper, `results/NAME.md`, from its TOML file and its stored figures alone.

Numbers in sentences are computed: `{M4 sst}` is the mean of a row on a task, and `{ID}`,
`{ID interval}` and `{ID verdict}` are those of a claim. A sentence whose number has no runs yet is
left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from common.files import atomic_write_text
from papers.content import Content, Table, content_of
from papers.evidence import TOGETHER, Difference, Evidence, Scores, stars
from papers.paper import AT, OWN
from papers.store import OVERALL, Store

ABOUT_CLAIMS = (
    "Differences are points between runs with the same seeds, means over what a claim names. "
    "Intervals are Student's t over seeds, not adjusted for several claims. A claim *holds* if its "
    "interval is above 0, and *does not hold* if it is below 0, unless dev and test disagree on "
    "the sign."
)
NUMBER = re.compile(r"\{([^{}]+)\}")


def write_page(name: str, results: Path) -> Path:
    """Write the page of a paper beside its figures, and return its file."""
    file = results / f"{name}.md"
    results.mkdir(parents=True, exist_ok=True)
    atomic_write_text(file, page(name, results))
    return file


def page(name: str, results: Path) -> str:
    """Return the page of a paper."""
    content, store = content_of(name), Store(results, name)
    evidence = evidence_of(content, store)
    known = differences_of(content, evidence)
    parts = [f"# {content.title}", sentences(content.summary, known, evidence)]
    for table in content.tables:
        own = evidence.on(table.split)
        notes = sentences(table.notes, known, own)
        parts += [f"## {table.title}", table_of(table, own), notes]
    if (results / f"{name}.png").exists():
        parts.append(f"![Figures]({name}.png)\n\n{content.figure}")
    if content.claims:
        texts = {one.id: one.text for one in content.claims}
        parts += ["## Claims", claims_table(texts, known), ABOUT_CLAIMS]
    differs = [sentence(text, known, evidence) for text in content.differs]
    parts += ["## What differs", listed(differs), measured(store)]
    command = store.command or content.command or command_of(name, {"data": "DIR"})
    parts += ["## Command", f"```bash\n{command}\n```"]
    return "\n\n".join(filter(None, parts)) + "\n"


def evidence_of(content: Content, store: Store) -> Evidence:
    """Return the figures of a paper as its TOML file and its store have them."""
    compared = [(one, row) for one in content.tables if one.reference for row in one.rows]
    ranked = [table.source(row, OVERALL[0])[0] for table, row in compared] + own_rows(store)
    ranked = [row for row in ranked if TOGETHER not in row]
    return Evidence(store, content.split, content.metrics, content.singles, ranked)


def differences_of(content: Content, evidence: Evidence) -> dict[str, Difference]:
    """Return the difference that each claim is about, by the claim's id."""
    return {
        one.id: Difference(one.plus, one.minus, evidence.on(one.split), one.scale)
        for one in content.claims
    }


def own_rows(store: Store) -> list[str]:
    """Return the stored rows of users' methods."""
    return [name for name in store.settings if name.startswith(OWN) and AT not in name]


def listed(sentences: Iterable[str]) -> str:
    """Return the sentences that are not empty as a list."""
    return "\n".join(f"- {one}" for one in sentences if one)


def command_of(name: str, flags: Mapping[str, Any]) -> str:
    """Return the command that runs a paper with these flags."""
    given = "".join(f" --{flag} {value}" for flag, value in flags.items())
    return f"python run.py --mode reproduce --table {name}{given}"


def sentences(texts: Iterable[str], known: Mapping[str, Difference], evidence: Evidence) -> str:
    """Return the sentences whose numbers are there, as one paragraph."""
    return " ".join(filter(None, (sentence(text, known, evidence) for text in texts)))


def sentence(text: str, known: Mapping[str, Difference], evidence: Evidence) -> str:
    """Return a sentence with its numbers; empty if one of them has no runs yet."""
    found = {key: number(key, known, evidence) for key in NUMBER.findall(text)}
    return "" if None in found.values() else NUMBER.sub(lambda match: str(found[match[1]]), text)


def number(key: str, known: Mapping[str, Difference], evidence: Evidence) -> str | None:
    """Return a number of a sentence; None without runs."""
    first, _, rest = key.partition(" ")
    if first in known:
        return known[first].shown(rest or "mean")
    scores = evidence.term(key)
    return f"{100 * fmean(scores.values()):.1f}" if scores else None


def table_of(table: Table, evidence: Evidence) -> str:
    """Return a table whose cells are the printed figure / ours, with its reading below.

    With a reference, the last column has the differences from this row, and the table has the rows
    of users' methods.
    """
    columns, several, last = table.columns, dict(table.rows), dict[str, str]()
    form = {column: table.forms.get(column, (table.scale, table.digits)) for column in columns}
    if table.reference:
        several |= {row: {"text": row.removeprefix(OWN)} for row in own_rows(evidence.store)}
        last = differences(table, several, evidence)
    found: dict[tuple[str, str], Scores] = {}
    for row, column in product(several, columns):
        found[row, column] = evidence.scores(*table.source(row, column))
    counts = Counter(len(one) for one in found.values() if one)
    usual = counts.most_common(1)[0][0] if counts else 0
    prints = any(column in one for one in several.values() for column in columns)
    rows = []
    for row, about in several.items():
        cells = [about.get("text", row)]
        for column in columns:
            ours = ours_of(found[row, column], usual, *form[column])
            theirs = printed_of(about.get(column), form[column][1])
            cells.append(f"{theirs} / {ours}".strip() if theirs or (ours and prints) else ours)
        rows.append([*cells, last[row]] if last else cells)
    reading = f"Printed / ours ({usual} seeds), mean" if prints else f"{usual} seeds, mean"
    note = f"{reading}±standard deviation." if usual > 1 else ""
    note += " Other numbers of seeds are in brackets." if note and len(counts) > 1 else ""
    header = ["", *columns.values(), *([f"overall - {table.reference}"] if last else [])]
    return "\n\n".join(filter(None, [text_of(header, rows), note]))


def differences(table: Table, rows: Iterable[str], evidence: Evidence) -> dict[str, str]:
    """Return each row's overall score less that of the reference, with the 95 % interval.

    A star marks those that differ from 0 by `stars`.
    """
    terms = {row: [" ".join(table.source(row, OVERALL[0]))] for row in rows}
    minus = terms.pop(table.reference)
    several = [Difference(plus, minus, evidence) for plus in terms.values()]
    found = {table.reference: ""}
    for row, one, star in zip(terms, several, stars(several), strict=True):
        interval = one.shown("interval")
        found[row] = f"{one.shown()} ({interval})" + "*" * star if interval else ""
    return found


def ours_of(scores: Scores, usual: int, scale: float, digits: int) -> str:
    """Return our mean and standard deviation, with the number of seeds if it is not the usual."""
    if not scores:
        return ""
    values = [scale * one for one in scores.values()]
    spread = f"±{stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{fmean(values):.{digits}f}{spread}" + f" ({len(values)})" * (len(values) != usual)


def printed_of(value: Any, digits: int) -> str:
    """Return a printed figure, or a printed mean and deviation; empty without one."""
    if value is None:
        return ""
    return "±".join(f"{one:.{digits}f}" for one in (value if isinstance(value, list) else [value]))


def claims_table(texts: Mapping[str, str], known: Mapping[str, Difference]) -> str:
    """Return the table of claims, texts by id, with their verdicts."""
    rows = [
        [
            text,
            known[claim].shown() or "",
            known[claim].shown("interval") or "",
            str(len(known[claim].values) or ""),
            f"*{known[claim].verdict}*" if known[claim].verdict else "",
        ]
        for claim, text in texts.items()
    ]
    return text_of(["claim", "difference", "95 % interval", "seeds", "verdict"], rows)


def text_of(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table as Markdown, without spaces beside its bars."""
    return "\n".join(f"|{'|'.join(cells)}|" for cells in (header, ["---"] * len(header), *rows))


def measured(store: Store) -> str:
    """Return the machines and dates of the stored runs; empty without runs."""
    machines = sorted({one.machine for one in store.figures})
    dates = sorted({one.date for one in store.figures})
    if not dates:
        return ""
    when = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
    each = f"The machine and commit of each figure are in {store.csv.name}."
    return f"Measured on {', '.join(machines)}; {when}. {each}"
