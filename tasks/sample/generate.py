"""Write the sample of the three tasks next to this script: `python tasks/sample/generate.py`.

All text is made from the fragments in `fragments.txt`: two blank lines separate its parts, one
blank line separates blocks, "|" groups and "/" alternatives. The three tasks share verdicts on
films, books, meals and concerts. The training pairs of QQP and STS have only two adjectives and
one remark of each level; reviews, and all other files, have all of them. So the words that the
pairs lack can be learnt from the reviews.
"""

import csv
import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path

HERE = Path(__file__).parent
TRAIN = {"ids-sst": 960, "quora": 1080, "sts": 480}
HELD_OUT = {"dev": 300, "test-student": 300}
VERDICTS = {"quora": 0.75, "sts": 0.8}  # the share of pairs that are about verdicts
SEEN_ADJECTIVES, SEEN_REMARKS = 2, 1  # of each level, in the training pairs


def parse(text: str) -> list[list[list[str]]]:
    """Return blocks of groups of alternatives, with line breaks undone."""
    blocks = [" ".join(block.split()) for block in text.split("\n\n")]
    return [[re.split(" ?/ ?", group.strip()) for group in b.split("|")] for b in blocks]


PAIRS, KINDS, QUESTION_GROUPS = (HERE / "fragments.txt").read_text("utf-8").split("\n\n\n")
# Adjectives for sentiment 0..4. Review templates for 0 and 4, for 1 and 3, and for each of 0..4.
# Question / paraphrase / look-alike. Subject / synonym / someone else. Action / paraphrase /
# important difference / same topic. Headline / paraphrase / detail lost / important difference /
# same topic. Values of {c}, {n}, {k} and {d}.
ADJECTIVES, REVIEWS, TRIPLES, SUBJECTS, ACTIONS, HEADLINES, SLOTS = parse(PAIRS)
DOMAINS = parse(KINDS)  # kinds | makers | parts | verb / participle / advert | remarks for 0..4
QUESTIONS = parse(QUESTION_GROUPS)  # values of {x} | groups of paraphrases
REMARKS = [
    "{f}",
    "{f}, and the {p} is {x}",
    "the {p} is {x}, and {f}",
    "{x} {it}: {f}",
    "what a {x} {it}",
    "the {p} of this {it} is {x}",
    "we found the {p} {x}",
]
VERDICT_QUESTIONS = [
    "Why do people call the {p} of this {it} {x}?",
    "What makes the {p} of this {it} so {x}?",
    "How can the {p} of a {it} be so {x}?",
    "Why did so many find the {p} of this {it} {x}?",
    "Is it true that the {p} of this {it} is {x}?",
]


def tidy(text: str) -> str:
    """Set a/an right and start with a capital."""
    text = re.sub(r"\b([Aa]) (?=[aeiou])(?!universit)", r"\1n ", text)
    return text[0].upper() + text[1:]


def slots_of(rng: random.Random, level: int, domain: list[list[str]], few: bool) -> dict[str, str]:
    """Fill the slots of a template for a level of sentiment; `few`: only the seen words."""
    kinds, makers, parts, words, *remarks = domain
    adjectives = [some[:SEEN_ADJECTIVES] if few else some for some in ADJECTIVES]
    if few:
        remarks = [some[:SEEN_REMARKS] for some in remarks]
    slots = dict(zip(("do", "done", "ad"), words, strict=True))
    slots["it"], slots["who"] = rng.choice(kinds), rng.choice(makers)
    slots["p"], slots["q"] = rng.sample(parts, 2)
    slots |= {f"f{i}": rng.choice(options) for i, options in enumerate(remarks)}
    slots["f"], slots["of"] = slots[f"f{level}"], slots[f"f{4 - level}"]
    side = level if level != 2 else rng.choice([1, 3])
    slots["x"], slots["x2"] = rng.sample(adjectives[side], 2)
    slots["o"] = rng.choice(adjectives[4 - side])
    tone = ("best", "loved", "better") if level > 2 else ("worst", "hated", "worse")
    return slots | dict(zip(("best", "loved", "better"), tone, strict=True))


def review(rng: random.Random, number: int, few: bool) -> tuple[str, int]:
    level = number % 5
    slots = slots_of(rng, level, rng.choice(DOMAINS), False)
    shared = [] if level == 2 else REVIEWS[0 if level in (0, 4) else 1]
    return tidy(rng.choice(shared + REVIEWS[2 + level]).format_map(slots) + "."), level


def verdict_question(rng: random.Random, few: bool) -> tuple[str, str, str]:
    """Two questions about a part of the same thing; the same question if the verdicts agree."""
    same = rng.random() < 0.45
    domain, level = rng.choice(DOMAINS), rng.choice([0, 1, 3, 4])
    slots = slots_of(rng, level, domain, few)
    one, two = rng.sample(VERDICT_QUESTIONS, 2)
    agree, differ = ([0, 1], [3, 4]) if level < 2 else ([3, 4], [0, 1])
    others = slots_of(rng, rng.choice(agree if same else differ), domain, few)
    others["it"], others["p"] = slots["it"], slots["p"]
    if others["x"] == slots["x"]:
        others["x"] = others["x2"]
    if not same and rng.random() < 0.2:  # the same verdict about another part
        others = slots_of(rng, level, domain, few)
        others["it"] = slots["it"]
        others["p"] = rng.choice([part for part in domain[2] if part != slots["p"]])
    pair = [tidy(one.format_map(slots)), tidy(two.format_map(others))]
    first, second = rng.sample(pair, 2)
    return first, second, "1.0" if same else "0.0"


def other_question(rng: random.Random, number: int) -> tuple[str, str, str]:
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


def question_pair(rng: random.Random, number: int, few: bool) -> tuple[str, str, str]:
    if rng.random() < VERDICTS["quora"]:
        return verdict_question(rng, few)
    return other_question(rng, number)


def verdict_pair(rng: random.Random, few: bool) -> tuple[str, str, float]:
    """Two remarks, more similar the nearer their verdicts; about different things, 0 to 1."""
    level = rng.randrange(5)
    domain, elsewhere = rng.sample(DOMAINS, 2)
    kind = rng.randrange(6)
    one, two = rng.sample(REMARKS, 2)
    level2 = rng.choice([at for at in range(5) if at != level]) if kind < 4 else level
    distance = abs(level - level2)
    domain2 = elsewhere if kind == 0 else domain
    value = 0.6 - 0.15 * distance if kind == 0 else 4.6 - 0.95 * distance
    texts = [
        one.format_map(slots_of(rng, level, domain, few)) + ".",
        two.format_map(slots_of(rng, level2, domain2, few)) + ".",
    ]
    first, second = rng.sample([tidy(text) for text in texts], 2)
    return first, second, round(min(5, max(0, value + rng.uniform(-0.3, 0.3))), 1)


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


def scene_pair(rng: random.Random, number: int) -> tuple[str, str, float]:
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


def graded_pair(rng: random.Random, number: int, few: bool) -> tuple[str, str, float]:
    if rng.random() < VERDICTS["sts"]:
        return verdict_pair(rng, few)
    return scene_pair(rng, number)


def key_of(texts: Sequence[str]) -> frozenset[str]:
    """Return what identifies a text, or a pair in either order."""
    return frozenset(text.casefold() for text in texts)


def write(stem: str, columns: list[str], make: Callable[..., tuple], rng: random.Random) -> None:
    """Write the three files of a task; no text or unordered pair comes twice."""
    seen = set()
    for name, size in ({"train": TRAIN[stem]} | HELD_OUT).items():
        rows, number = [], 0
        while len(rows) < size:
            number += 1
            row = make(rng, number, name == "train")
            key = key_of(row[:-1])
            if len(key) == len(row) - 1 and key not in seen:
                seen.add(key)
                rows.append(row)
        rng.shuffle(rows)
        width = len(columns) - (name == "test-student")
        with open(HERE / f"{stem}-{name}.csv", "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, delimiter="\t", lineterminator="\n")
            writer.writerow(["", "id", *columns[:width]])
            for index, row in enumerate(rows):
                writer.writerow([index, f"{rng.getrandbits(100):025x}", *row[:width]])


if __name__ == "__main__":
    seeded = random.Random(0)
    write("ids-sst", ["sentence", "sentiment"], review, seeded)
    write("quora", ["sentence1", "sentence2", "is_duplicate"], question_pair, seeded)
    write("sts", ["sentence1", "sentence2", "similarity"], graded_pair, seeded)
