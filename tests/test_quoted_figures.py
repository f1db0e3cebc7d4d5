"""Figures that the README and the pages of docs quote are those of the stored cells."""

import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest

from reports.cells import read_cell
from reports.significance import holm, paired_p
from studies.sharing_cells import SEEDS
from tasks.metrics import LEADERBOARD, overall_score

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
RIVALS = ("npair", "class-triplet", "supcon", "ce-balanced")  # of SuperLoss


def runs_of(file: str) -> list[dict[str, Any]]:
    """Return the runs of a cell, those of other seeds after 11711 in their order."""
    cell = read_cell(RESULTS / file)
    if "seeds" not in cell:
        return [cell]
    return [cell["seeds"][s] for s in sorted(cell["seeds"], key=lambda s: (s != "11711", int(s)))]


def dev(file: str, task: str, metric: str) -> list[float]:
    """Return a dev figure of each seed of a cell, in per cent."""
    return [100 * run["dev"][task][metric] for run in runs_of(file)]


def overalls(file: str) -> list[float]:
    """Return the overall dev score of each seed of a cell, in per cent."""
    return [100 * run["dev"]["overall"] for run in runs_of(file)]


def three_encoders(folder: str, ending: str = "") -> dict[str, dict[str, float]]:
    """Return the dev metric of each task, of three single-task cells, by the seeds of all three."""
    cells = {t: read_cell(RESULTS / f"{folder}/{t}{ending}.json")["seeds"] for t in LEADERBOARD}
    return {
        seed: {t: 100 * cells[t][seed]["dev"][t][metric] for t, metric in LEADERBOARD.items()}
        for seed in cells["qqp"]
    }


def overall_of(scores: dict[str, float]) -> float:
    """Return the overall score of metrics in per cent."""
    return 100 * overall_score(*(scores[task] / 100 for task in LEADERBOARD))


def linear_accuracy(loss: str) -> dict[str, float]:
    """Return TREC's accuracy after pre-training with a loss, in per cent, by seed."""
    runs = read_cell(RESULTS / f"supercontext/given-trec-{loss}.json")["seeds"]
    return {s: 100 * run["linear"]["test"]["trec"]["accuracy"] for s, run in runs.items()}


def lacon_gain(cell: str) -> float:
    """Return the points of accuracy that LaCon gains over cross-entropy in a cell's task."""
    runs = [
        read_cell(RESULTS / f"lacon/{cell}-{method}.json")["seeds"].values()
        for method in ("lacon", "ce")
    ]
    task = cell.split("-")[-2]
    ours, theirs = (fmean(run["test"][task]["accuracy"] for run in one) for one in runs)
    return 100 * (ours - theirs)


def mean(values: list[float], digits: int = 1) -> str:
    return f"{fmean(values):.{digits}f}"


def spread(values: list[float], digits: int = 1) -> str:
    ends = f" ± {stdev(values):.{digits}f}" if len(values) > 1 else ""
    return mean(values, digits) + ends


def quoted() -> Iterator[tuple[str, str]]:
    """Yield pages and the lines with figures that must be in them."""
    singles = [
        dev(f"bees/{name}.json", *of)
        for name, of in zip(("M4", "M5", "M6"), LEADERBOARD.items(), strict=True)
    ]
    accuracies, (pearson,) = [fmean(one) for one in singles[:2]], [fmean(singles[2])]
    overall = f"{100 * overall_score(*(one / 100 for one in (*accuracies, pearson))):.1f}"
    figures = " | ".join(map(spread, singles))
    counts = [len(one) for one in singles]
    seeds = f"{counts[0]} (QQP: {counts[1]})" if counts[0] != counts[1] else f"{counts[0]}"
    yield "README.md", f"| one model per task, three epochs | {seeds} | {figures} | {overall} |"
    multi = "sharing/main-command.json"
    cell = read_cell(RESULTS / multi)
    every = overalls(multi)
    figures = " | ".join([*(spread(dev(multi, *of)) for of in LEADERBOARD.items()), spread(every)])
    yield from quoted_of_lacon()
    yield "README.md", f"450 steps per epoch | {len(every)} | {figures} |"
    minutes = sorted(run["training_seconds"] / 60 for run in cell["seeds"].values())
    yield "README.md", f"{minutes[0]:.0f} to {minutes[-1]:.0f} for the model of the main command"
    surgery, plain = (mean(overalls(file)) for file in ("bees/M7-surgery.json", "bees/M7.json"))
    yield "docs/choosing.md", f"it is {surgery} and {plain} ("
    longer = [overalls(f"bees-long/{name}.json") for name in ("M7-surgery", "M7")]
    after_six = "after six epochs {} overall with it and {} without".format(*map(mean, longer))
    yield "docs/choosing.md", after_six
    gains = [after - before for after, before in zip(*longer, strict=True)]
    change, p = fmean(gains), paired_p(gains)
    yield "docs/choosing.md", f"a difference of {change:.2f} with p {p:.2f}"
    fair = re.findall(
        r": (\S+ - \S+), \w+ \([^)]+\) \| ([a-z ]+) \| (\S+) .*\| 3 \|",
        (RESULTS / "bees-long.md").read_text("utf-8"),
    )
    found = {pair: value for pair, verdict, value in fair if verdict == "not shown"}
    assert list(found) == ["M11-mean - M4", "M7-surgery - M7"]
    simcse, surgery = found.values()
    verdict, single = next(rest for pair, *rest in fair if pair == "M4-equal - M7")
    less = f"{-float(single):.2f} points below"
    yield "README.md", f"with six epochs, it is {less} (*{verdict}*)"
    both = (dev(f"bees-long/{name}.json", "sst", "accuracy") for name in ("M4-equal", "M7"))
    p_single = paired_p([a - b for a, b in zip(*both, strict=True)])
    assert surgery == f"{change:+.2f}"
    line = f"SimCSE changes the score of SST by {simcse}, gradient surgery the overall score by"
    yield "README.md", f"{line} {surgery} ([three seeds](results/bees-long.md), both *not shown*)"
    yield "docs/bees.md", f"SimCSE changes SST by {simcse} points"
    yield "docs/bees.md", f"(M4-equal) is {less} the multi-task model"
    yield "docs/bees.md", f"the paper's claim *{verdict}* (p {p_single:.3f}, three seeds"
    yield "results/bees-long/notes.md", f"and not claim by claim, its p is {3 * p_single:.3f}."
    yield from quoted_of_supercontext()
    relu, sigmoid = (dev(f"bees/{name}.json", "sts", "pearson") for name in ("M13", "T4-simcse"))
    yield "docs/bees.md", f"after SimCSE, {fmean(relu) - fmean(sigmoid):.1f} points. The sigmoid"
    relu, sigmoid = (dev(f"bees/{name}.json", "sts", "pearson") for name in ("M6", "M6-sigmoid"))
    yield "docs/bees.md", f"examples, it is {fmean(relu) - fmean(sigmoid):.1f} points lower"
    (run,) = runs_of("sharing/one-task-per-step.json")
    yield (
        "README.md",
        f"- **{run['training_seconds'] / 60:.0f} minutes** of training for such a model",
    )
    yield "docs/sharing.md", f"it took {run['training_seconds'] / 60:.0f} minutes"
    yield from quoted_of_fair_tests_of_bees()
    yield from quoted_of_scl_moo()
    yield from quoted_of_sharing()


def quoted_of_fair_tests_of_bees() -> Iterator[tuple[str, str]]:
    """Yield what SimCSE and SMART change, with the verdicts of the page."""
    text = (RESULTS / "bees.md").read_text("utf-8")

    def found(pair: str, task: str = "sts") -> tuple[str, str]:
        one = re.search(rf": {pair}, {task} \(\w+ .\) \| (.+?) \| (\S+) ", text)
        assert one is not None
        return one[1], one[2]

    simcse, of_qqp = found("M13-mean - M6"), found("M12-mean - M5", "qqp")
    one, three = (found(f"{row}-projected - M13-mean") for row in ("M16", "M17"))
    apart = found("M17-projected - M16-projected")
    weights = (dev(f"bees/{name}-projected.json", "sts", "pearson") for name in ("M17", "M16"))
    p_apart = paired_p([a - b for a, b in zip(*weights, strict=True)])
    assert {verdict for verdict, _ in (simcse, of_qqp, one, three)} == {"not shown"}
    assert apart[0] == "not tested fairly"
    yield "docs/bees.md", f"and changes QQP by {of_qqp[1]} points (*not shown*; three seeds"
    line = (
        f"the score of QQP by {of_qqp[1]} and that of STS by {simcse[1]}, and adding SMART to the"
    )
    line += f" latter by {one[1]} with weight 1"
    yield "README.md", f"{line} and {three[1]} with weight 3 (all *not shown*)"
    single, relu = found("M6-equal - M7"), found("M6 - M6-sigmoid")
    assert single[0] == relu[0] == "holds"
    line = f"{float(single[1])} points above the multi-task model, whose rate was chosen on the"
    line += " overall score, with as many examples"
    yield "README.md", f"{line} and steps (*holds*). On SST, with six epochs, it is"
    yield "README.md", f"head is {float(relu[1])} points above a sigmoid (*holds*)"
    ours, theirs = (dev(f"bees/{name}.json", "sts", "pearson") for name in ("M6-equal", "M7"))
    p = 5 * paired_p([a - b for a, b in zip(ours, theirs, strict=True)])  # Holm, third of 7 tests
    yield "results/bees/notes.md", f"*M6-equal - M7* has p {p:.3f}"
    less = f"Weight 3 is {-float(apart[1]):.2f} points below weight 1"
    yield "docs/bees.md", f"{less} (p {p_apart:.3f})"
    line = f"changes the score by {simcse[1]} points, SMART of weight 1 by {one[1]}, of weight 3 by"
    yield "docs/bees.md", f"{line} {three[1]} ([*not shown*](../results/bees.md))"


def quoted_of_lacon() -> Iterator[tuple[str, str]]:
    """Yield what LaCon gains with few examples and with imbalance."""
    few = [lacon_gain(f"few-shot-sst2-{count}") for count in (10, 20, 50, 100)]
    yield "README.md", f"by {min(few):+.1f} to {max(few):+.1f} points with 10 to 100 training"
    means, qqp = [], lacon_gain("few-shot-qqp-20")
    for task, ratios in (("sst2", (1, 3, 5, 10, 20)), ("trec", (1, 3, 5, 10))):
        gains = [lacon_gain(f"imbalanced-{task}-{ratio}") for ratio in ratios]
        several = f"{', '.join(map('{:.1f}'.format, gains[:-1]))} and {gains[-1]:.1f} points"
        yield "results/lacon/notes.md", f"by {several} from 1 : 1 to 1 : {ratios[-1]}"
        means.append(fmean(gains[1:]))  # without 1 : 1
    yield "README.md", f"points with 10 to 100 training examples per class of SST-2, by {qqp:+.1f}"
    yield "README.md", "by {:+.1f} on SST-2 and {:+.1f} on TREC (means over".format(*means)


def above_losses() -> dict[str, list[float]]:
    """Return by how many points SuperLoss is above each other loss on TREC, by seed."""
    accuracies = {loss: linear_accuracy(loss) for loss in ("superloss", *RIVALS)}
    return {
        loss: [accuracies["superloss"][seed] - one for seed, one in accuracies[loss].items()]
        for loss in RIVALS
    }


def quoted_of_supercontext() -> Iterator[tuple[str, str]]:
    """Yield how far SuperLoss is from the other losses."""
    gains = above_losses()
    npair = f"{fmean(gains['npair']):.2f} points above"
    number = {4: "four", 5: "five", 6: "six"}[len(gains["npair"])]
    triplet, supcon, ce = (f"{fmean(gains[loss]):+.2f}" for loss in RIVALS[1:])
    rest = f"cross-entropy with the same batches by {triplet}, {supcon} and {ce}"
    yield "README.md", f"SuperLoss is {npair} N-pair (*holds*)"
    yield "README.md", f"differs from triplets, SupCon and {rest} (*not shown*; {number} seeds)"
    page = "docs/supercontext.md"
    yield page, f"is {npair} that of N-pair (*holds*, p {4 * paired_p(gains['npair']):.3f})"  # Holm
    yield page, f"{rest} points (*not shown*; [claims](../results/supercontext.md), {number} seeds"


def test_fair_tests_of_superloss_are_as_the_documents_say():
    rows = (RESULTS / "supercontext.md").read_text("utf-8").splitlines()
    fair = [row.split(" | ")[:2] for row in rows if row.endswith("| fair |")]
    found = {row.split(" - ")[1].split(" on ")[0]: verdict for row, verdict in fair}
    assert found.pop("N-pair") == "holds"
    assert found == dict.fromkeys(("Triplet", "SupCon", "Cross-entropy, balanced"), "not shown")


def quoted_of_scl_moo() -> Iterator[tuple[str, str]]:
    """Yield what LS and EPO gain over CE and CE + SCL with the same batches."""

    def accuracy(task: str, shots: int, method: str) -> float:
        runs = read_cell(RESULTS / f"scl_moo/few-shot-{task}-{shots}-{method}.json")["seeds"]
        return fmean(100 * one["test"][task]["accuracy"] for one in runs.values())

    def gains(task: str, *several: int, other: str = "ce-balanced", sign: str = "-") -> str:
        means = (
            fmean(accuracy(task, shots, one) - accuracy(task, shots, other) for shots in several)
            for one in ("ls", "epo")
        )
        return " and ".join(f"{gain:{sign}.1f}" for gain in means)

    every = 20, 50, 100
    for name, task, shots in (
        *((f"SST-2, {count}", "sst2", (count,)) for count in every),
        ("SST-2, mean", "sst2", every),
        ("MRPC, 50", "mrpc", (50,)),
    ):
        above = gains(task, *shots, sign="+"), gains(task, *shots, other="scl-balanced", sign="+")
        line = f"| {name} | {' | '.join(one.replace(' and ', ', ') for one in above)} |"
        yield "results/scl_moo/notes.md", line
    ce, scl = gains("sst2", *every), gains("sst2", *every, other="scl-balanced")
    line = f"{ce} points above CE, and {scl} points above CE with a plain contrastive loss"
    yield "README.md", f"{line} (*not shown*"
    p_of = verdicts_of_scl_moo()
    of_ce, of_scl = (
        [f"CE + {one} - CE{other}, balanced on sst2" for one in ("LS", "EPO")]
        for other in ("", " + SCL")
    )
    assert {verdict for verdict, _ in p_of.values()} == {"not shown"}
    both = [p_of[line][1] for line in of_ce]
    yield "docs/scl-moo.md", f"CE + LS and CE + EPO are on test {ce} points above cross-entropy"
    yield "docs/scl-moo.md", f"batches (*not shown*, p {both[0]:.3f} and {both[1]:.3f})"
    yield "README.md", f"(*not shown*, p {min(both):.3f} or more; ten seeds)."
    alone = holm([paired_p(seed_gains(*one)) for one in product(("ls", "epo"), ("ce", "scl"))])
    found = f"{alone[0]:.3f} and {alone[2]:.3f}"
    yield "README.md", f"Without the tests on MRPC, p for the gains over CE would be {found}."
    yield "docs/scl-moo.md", f"Without the tests on MRPC, p would be {found} over cross-entropy"
    yield "results/scl_moo/notes.md", f"over those of SST-2 alone, p would be {found}"
    first, second = (f"{p_of[line][1]:.2f}" for line in of_scl)
    yield "docs/scl-moo.md", f"no gain is shown ({scl} points, p {first} and {second})"


def seed_gains(method: str, control: str) -> list[float]:
    """Return gains over a control on SST-2, seed by seed: means over numbers of examples."""
    several = [
        [
            {
                seed: run["test"]["sst2"]["accuracy"]
                for seed, run in read_cell(file)["seeds"].items()
            }
            for file in (RESULTS / f"scl_moo/few-shot-sst2-{n}-{one}.json" for n in (20, 50, 100))
        ]
        for one in (method, f"{control}-balanced")
    ]
    ours, theirs = several
    return [
        fmean(mine[seed] - other[seed] for mine, other in zip(ours, theirs, strict=True))
        for seed in ours[0]
    ]


def verdicts_of_scl_moo() -> dict[str, tuple[str, float]]:
    """Return verdict and p of every fair few-shot test, by its line."""
    text = (RESULTS / "scl_moo.md").read_text("utf-8")
    rows = re.findall(r"few-shot: (.+?)(?: \(.*)? \(Table 2\) \| (.+?) \| \S+ \(p (\S+)\)", text)
    return {line: (verdict, float(p)) for line, verdict, p in rows}


def quoted_of_sharing() -> Iterator[tuple[str, str]]:
    """Yield the lines of docs/sharing.md about auxiliary tasks and shared models."""
    page = "docs/sharing.md"
    alone = [
        mean(dev(f"sharing/{name}sst.json", "sst", "accuracy")[:1]) for name in ("", "auxiliary-")
    ]
    line = f"dev accuracy is {alone[1]} with 24,000 examples of SST-2 and {alone[0]} without"
    yield page, f"{line} them (one seed)"
    yield from quoted_of_branches()


def quoted_of_branches() -> Iterator[tuple[str, str]]:
    """Yield the lines of docs/sharing.md about shared models without teachers."""
    page = "docs/sharing.md"

    def whole(name: str) -> list[float]:
        return overalls(f"sharing/{name}.json")

    for name, words in (
        ("one-task-per-step", "one task per step"),
        ("auxiliary", "[SST-2 as an auxiliary task](#auxiliary-tasks)"),
        ("branches", "[copies of the upper layers](#branches) for sentiment and for similarity"),
        ("layer-decay", "lower layers](#learning-rates-by-layer)"),
        ("label-smoothing", "[label smoothing](#more-from-the-labels)"),
        ("joint-pcgrad", "each step has a batch of every task, with PCGrad"),
        ("joint-famo", "the same with FAMO"),
    ):
        found = [spread(dev(f"sharing/{name}.json", *of)) for of in LEADERBOARD.items()]
        yield page, f"{words} | {' | '.join([*found, spread(whole(name))])} |"
    yield from quoted_of_sharing_on_a_gpu()


def quoted_of_sharing_on_a_gpu() -> Iterator[tuple[str, str]]:
    """Yield the lines about one encoder beside three with the same seeds."""
    page, file = "docs/sharing.md", "sharing-gpu/one-task-per-step.json"
    found = three_encoders("sharing-gpu")
    singles, plain = [overall_of(found[str(seed)]) for seed in SEEDS], overalls(file)
    yield page, f"| three encoders | 68.4 M | {spread(singles)} |"
    yield page, f"| one shared encoder, one task per step | 23.3 M | {spread(plain)} |"
    by_seed = read_cell(RESULTS / file)["seeds"]
    apart = [
        100 * by_seed[str(seed)]["dev"]["overall"] - other
        for seed, other in zip(SEEDS, singles, strict=True)
    ]
    p = f"(p {paired_p(apart):.2f})"
    yield page, f"by {fmean(apart):+.2f} {p}"
    yield (
        "README.md",
        f"- **{spread(plain)}** overall on dev (three seeds) from one model of 23.3 M",
    )
    same = f"have {spread(singles)} with the same seeds: [no difference is shown](docs/sharing.md)"
    yield "README.md", f"{same} {p}"
    figures = [spread(dev(file, *of)) for of in LEADERBOARD.items()]
    yield "README.md", f"(H100) | 3 | {' | '.join(figures)} | {spread(plain)} |"
    lost = [
        100 * by_seed[str(seed)]["dev"]["sts"]["pearson"] - found[str(seed)]["sts"]
        for seed in SEEDS
    ]
    yield page, f"On similarity it differs by {fmean(lost):.1f} points (p {paired_p(lost):.2f})."
    joint = [spread(overalls(f"sharing-gpu/{name}.json")) for name in ("joint-sum", "joint-pcgrad")]
    same = " and with ".join(dict.fromkeys(joint))
    yield page, f"Joint steps on all tasks have {same}, with PCGrad and with a sum"
    plainly = f"per step has {spread(plain)} overall, joint steps with a sum {joint[0]}, and with"
    yield "docs/choosing.md", f"{plainly} PCGrad {joint[1]} ("


@pytest.mark.parametrize(("page", "line"), list(quoted()))
def test_a_quoted_figure_is_that_of_its_cells(page, line):
    assert line in (ROOT / page).read_text("utf-8").replace("\n", " ")


def test_no_fair_test_of_lacon_shows_a_gain_as_the_document_says():
    said = "None of them shows a gain over cross-entropy"
    assert said in (ROOT / "docs/lacon.md").read_text("utf-8").replace("\n", " ")
    rows = (RESULTS / "lacon.md").read_text("utf-8").splitlines()
    assert {row.split(" | ")[1] for row in rows if row.endswith("| fair |")} == {"not shown"}


def test_the_recipe_of_the_shared_model_is_that_of_its_cell():
    page = (ROOT / "docs/sharing.md").read_text("utf-8")
    (line,) = re.findall(r"^python run.py .* --output runs/one-task-per-step$", page, re.MULTILINE)
    words = line.split()
    config = read_cell(RESULTS / "sharing/one-task-per-step.json")["config"]
    for key in ("sampling", "schedule"):
        assert words[words.index(f"--{key}") + 1] == config[key]["name"]
    for key in ("lr", "head_lr"):
        value = words[words.index(f"--{key.replace('_', '-')}") + 1]
        assert float(value) == config["optimizer"][key]
