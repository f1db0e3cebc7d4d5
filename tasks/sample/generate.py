"""Write the bundled sample data: small tab-separated files next to this script.

The random seed is fixed, so that every run writes the same bytes. All text is made from the
fragments in `fragments.txt`: two blank lines separate its three parts, one blank line separates
blocks, "|" groups and "/" alternatives.
"""

import csv
import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path

HERE = Path(__file__).parent
TRAIN = {"ids-sst": 240, "quora": 480, "sts": 180}  # as the real files: Quora the largest
HELD_OUT = {"dev": 100, "test-student": 100}
GLUE_SIZES = {"train": 120, "dev": 60}


def parse(text: str) -> list[list[list[str]]]:
    """Blocks of groups of alternatives, with line breaks undone."""
    blocks = [" ".join(block.split()) for block in text.split("\n\n")]
    return [[re.split(" ?/ ?", group.strip()) for group in b.split("|")] for b in blocks]


REVIEW_AND_PAIRS, KINDS, QUESTION_GROUPS = (
    (HERE / "fragments.txt").read_text("utf-8").split("\n\n\n")
)
# Adjectives for sentiment 0..4. Review templates for 0 and 4, for 1 and 3, and for each of 0..4.
# Question / paraphrase / look-alike. Subject / synonym / someone else. Action / paraphrase /
# important difference / same topic. Headline / paraphrase / detail lost / important difference /
# same topic. Values of {c}, {n}, {k} and {d}.
ADJECTIVES, REVIEWS, TRIPLES, SUBJECTS, ACTIONS, HEADLINES, SLOTS = parse(REVIEW_AND_PAIRS)
# Kinds | makers | parts | verb / participle / advert | remarks for sentiment 0..4.
DOMAINS = parse(KINDS)
# Values of {x} | groups of paraphrases.
QUESTIONS = parse(QUESTION_GROUPS)


def tidy(text: str) -> str:
    """Set a/an right and start with a capital."""
    text = re.sub(r"\b([Aa]) (?=[aeiou])(?!universit)", r"\1n ", text)
    return text[0].upper() + text[1:]


def review(rng: random.Random, number: int) -> tuple[str, int]:
    level = number % 5
    kinds, makers, parts, words, *remarks = rng.choice(DOMAINS)
    slots = dict(zip(("do", "done", "ad"), words, strict=True))
    slots["it"], slots["who"] = rng.choice(kinds), rng.choice(makers)
    slots["p"], slots["q"] = rng.sample(parts, 2)
    slots |= {f"f{i}": rng.choice(options) for i, options in enumerate(remarks)}
    slots["f"], slots["of"] = slots[f"f{level}"], slots[f"f{4 - level}"]
    side = level if level != 2 else rng.choice([1, 3])
    slots["x"], slots["x2"] = rng.sample(ADJECTIVES[side], 2)
    slots["o"] = rng.choice(ADJECTIVES[4 - side])
    tone = ("best", "loved", "better") if level > 2 else ("worst", "hated", "worse")
    slots |= zip(("best", "loved", "better"), tone, strict=True)
    shared = [] if level == 2 else REVIEWS[0 if level in (0, 4) else 1]
    return tidy(rng.choice(shared + REVIEWS[2 + level]).format_map(slots) + "."), level


def question_pair(rng: random.Random, number: int) -> tuple[str, str, str]:
    same = number % 5 < 2
    if rng.random() < 0.05:
        first, second, other = rng.choice(TRIPLES)
        pair = [first, second] if same else [rng.choice([first, second]), other]
    else:
        (values, *intents), (values2, *intents2) = rng.sample(QUESTIONS, 2)
        value, value2 = rng.sample(values, 2)
        intent, intent2 = rng.sample(intents, 2)
        pair = [question.replace("{x}", value) for question in rng.sample(intent, 2)]
        if not same:
            unrelated = (rng.choice(rng.choice(intents2)), rng.choice(values2))
            near, swapped = (rng.choice(intent2), value), (rng.choice(intent), value2)
            question, value = rng.choice([near, near, swapped, unrelated])
            pair[1] = question.replace("{x}", value)
    first, second = rng.sample([tidy(question) for question in pair], 2)
    return first, second, "1.0" if same else "0.0"


def scene(rng: random.Random) -> list[str]:
    """Five templates: sentence, paraphrase, detail lost, important difference, same topic."""
    if rng.random() < 0.35:
        return rng.choice(HEADLINES)
    action, paraphrase, near, topic = rng.choice(ACTIONS)
    return [
        f"{{s}} {action} {{d}}.",
        rng.choice([f"{{s1}} {paraphrase} {{d}}.", f"{{d}}, {{s}} {paraphrase}."]),
        rng.choice([f"{{s}} {action}.", f"{{s1}} {action} {{d2}}.", f"{{d2}}, {{s}} {action}."]),
        rng.choice([f"{{s}} {near} {{d}}.", f"{{s2}} {action} {{d}}."]),
        f"{{s}} {topic} {{d}}.",
    ]


def graded_pair(rng: random.Random, number: int) -> tuple[str, str, float]:
    level = number % 6
    group = other = scene(rng)
    while other[4] == group[4]:
        other = scene(rng)
    here, there = (dict(zip(("s", "s1", "s2"), s, strict=True)) for s in rng.sample(SUBJECTS, 2))
    for name, values in zip("cnkd", SLOTS, strict=True):
        here[name], there[name] = rng.sample(values, 2)
    here["d2"], there["d2"] = there["d"], here["d"]
    first, second, slots = [
        (group[0], rng.choice(other), there),
        (group[0], group[4], there),
        rng.choice([(group[0], group[4], here), (group[1], group[3], there)]),
        (rng.choice(group[:2]), group[3], here),
        (rng.choice(group[:2]), group[2], here),
        (group[0], group[1], here),
    ][level]
    texts = [first.format_map(here), second.format_map(slots)]
    texts = [re.sub(r", (An?|Two|Three) ", lambda m: m[0].lower(), text) for text in texts]
    first, second = rng.sample([tidy(text) for text in texts], 2)
    value = (0.1, 1.0, 1.9, 3.0, 4.0, 4.9)[level] + rng.uniform(-0.4, 0.4)
    return first, second, round(min(5.0, max(0.0, value)), 1)


def key_of(texts: Sequence[str]) -> frozenset[str]:
    """Return what identifies a text, or a pair in either order."""
    return frozenset(text.casefold() for text in texts)


def write(stem: str, columns: list[str], make: Callable[..., tuple], rng: random.Random) -> None:
    """Fill the three files of one task; no text or unordered pair comes twice."""
    sizes = {"train": TRAIN[stem], **HELD_OUT}
    found: dict[frozenset[str], tuple] = {}
    while len(found) < sum(sizes.values()):
        row = make(rng, len(found))
        key = key_of(row[:-1])
        if len(key) == len(row) - 1:
            found.setdefault(key, row)
    pool = rng.sample(list(found.values()), len(found))
    for name, size in sizes.items():
        width = len(columns) - (name == "test-student")
        with open(HERE / f"{stem}-{name}.csv", "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, delimiter="\t", lineterminator="\n")
            writer.writerow(["", "id", *columns[:width]])
            for index in range(size):
                writer.writerow([index, f"{rng.getrandbits(100):025x}", *pool.pop()[:width]])


def write_glue(folder: str, header: str, line: Callable[[tuple], str], make: Callable) -> None:
    """The two files of a GLUE-style task; no text or pair that another file has."""
    rng, number = random.Random(folder), 0
    seen = set()
    for file in HERE.glob("*.csv"):
        with open(file, encoding="utf-8", newline="") as rows:
            for row in csv.reader(rows, delimiter="\t"):
                seen |= {key_of(row[2:3]), key_of(row[2:4])}
    place = HERE / "glue" / folder
    place.mkdir(parents=True, exist_ok=True)
    for split, size in GLUE_SIZES.items():
        lines = [header]
        while len(lines) <= size:
            *texts, label = make(rng, number)
            number += 1
            if label != 2 and key_of(texts) not in seen:
                seen.add(key_of(texts))
                lines.append(line((*texts, label)))
        (place / f"{split}.tsv").write_text("\n".join(lines) + "\n", "utf-8", newline="\n")


if __name__ == "__main__":
    seeded = random.Random(0)
    write("ids-sst", ["sentence", "sentiment"], review, seeded)
    write("quora", ["sentence1", "sentence2", "is_duplicate"], question_pair, seeded)
    write("sts", ["sentence1", "sentence2", "similarity"], graded_pair, seeded)
    write_glue(
        "SST-2", "sentence\tlabel", lambda row: f"{row[0].lower()} \t{int(row[1] > 2)}", review
    )
    write_glue(
        "MRPC",
        "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String",
        lambda row: f"{int(float(row[2]))}\t1\t2\t{row[0]}\t{row[1]}",
        question_pair,
    )
