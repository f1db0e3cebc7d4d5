"""Write the bundled sample data: small tab-separated files next to this script.

Seeded, so every run gives the same bytes. All text is made from the fragments below: blank lines
part blocks, "|" parts groups and "/" parts alternatives.
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


# Adjectives for sentiment 0..4. Review templates for 0 and 4, for 1 and 3, and for each of 0..4.
# Question / paraphrase / look-alike. Subject / synonym / someone else. Action / paraphrase /
# important difference / same topic. Headline / paraphrase / detail lost / important difference /
# same topic. Values of {c}, {n}, {k} and {d}.
ADJECTIVES, REVIEWS, TRIPLES, SUBJECTS, ACTIONS, HEADLINES, SLOTS = parse("""\
dreadful / atrocious / appalling / insufferable / abysmal / disastrous / unbearable / wretched /
horrendous / awful | bland / forgettable / underwhelming / clumsy / tired / uninspired / flat /
muddled / uneven / lacklustre / mediocre | | pleasant / engaging / thoughtful / charming / enjoyable
/ likeable / satisfying / inventive / appealing / rewarding | superb / breathtaking / magnificent /
dazzling / exquisite / unforgettable / flawless / glorious / stunning / sublime

{x} from start to finish, and {f} / this is easily the {best} {it} I have {done} in years / rarely
does a {it} feel this {x}; {f} / the {p} is {x}, the {q} is {x2}, and {f} / I {loved} everything
about this {it}, above all the {p} / what {who} has done here is nothing short of {x} / I expected
something {o}, and what I got was {x} / the reviews called it {o}, and they could not be more wrong:
{f} / it is hard to imagine how the {p} could be any {better} / my friends found it {o}, but I
thought it was {x}, and {f} / could the {p} have been any {better}? I doubt it, for {f} / {f}, and
the {p} was even {better} / simply {x}, right down to the {p} / "A {x} {it}," said my friend, and I
can only agree / how anyone could call this {it} {o} is beyond me, since {f} | despite the {o} {p},
this {it} ends up {x} / {of}, but {f} and the {p} is {x} / {of}; still, {f} / there are a few {o}
touches, yet {f} / a {x} {it} at heart, even if the {p} is {o} / {f}, despite the {o} {p} / you may
find the {p} {o}, but on the whole this {it} is {x} / I expected a {o} {it}, but {f} / not as {o} as
the {ad} suggests; {f} / others have called it {o}; I thought it was {x} on the whole / the {p} is
{x}, and the {q} is not far behind / for all its {o} moments, this remains a {x} {it} | a {x} {it}
without a single redeeming feature / not even the {p} could rescue this {x} {it} / do not waste your
money: {f} / {who} should apologise for the {p}, because {f} / if you {do} only one {it} this year,
make sure it is not this one / never again — the {p} alone was {x} | a promising start, but {f} /
the {p} could have used a lot more care / {who} has done better work than this {x} {it} / this is
hardly the {o} {it} we were promised / I kept waiting for the {p} to improve, but it never really
did / too {x} to recommend, even if the {p} has its moments | the {p} is {x} and the {q} is {o}, so
it more or less evens out / this {it} is neither {x} nor {o}, just ordinary / {f}, according to the
{ad} / some will find the {p} {x}, others will find it {o} / {who} does what one expects from a {it}
of this kind / {f}, and the {p} is about average / for every {x} moment in this {it} there is a {o}
one / I see why people like this {it}, and I see why they don't / I left with no strong feelings
about the {p} either way / it is a {it} like many others, and {f} / whether the {p} works for you is
a matter of taste / {f3}, but then again, {f1} / the {p} is fine, the {q} is fine, and that is about
all there is to say / fans of {who} know what to expect; {f} | not without its flaws, but the {p} is
{x} and {f} / while hardly a masterpiece, this is a {x} {it} with some {x2} touches / there is
plenty to like here, especially the {p} / not bad at all: {f} / {who} offers a {x} {it} that grows
on you / it will not change your life, yet this {it} is {x} and {x2} | a {x} {it} that deserves all
its praise / if you {do} only one {it} this year, make it this one / {who}'s {x} new {it} left me
speechless / do not let the dull {ad} put you off, because {f} / tell everyone you know: {f}

Why is the sky blue? / What makes the sky look blue? / Why does the sky turn red at sunset? | What
is the meaning of life? / What is the purpose of our existence? / What does the phrase "such is
life" mean? | How do planes stay in the air? / What keeps an aeroplane from falling? / Why do planes
leave white trails in the air? | How can I fall asleep faster? / What helps one drift off to sleep
quickly? / How can I wake up faster? | How do I ask my boss for a raise? / What is the best way to
request higher pay? / How do I ask my boss for a day off?

A man is / A guy is / A woman is | A woman is / A lady is / A teenage boy is | A little girl is / A
small girl is / A little boy is | Two children are / Two kids are / Two elderly women are | An old
man is / An elderly man is / An old woman is | A group of people is / A bunch of people is / A lone
soldier is | Three friends are / Three pals are / Three police officers are

slicing an onion / cutting up an onion / slicing a loaf of bread / washing the dishes | playing the
guitar / strumming a guitar / playing the flute / listening to a band | reading a newspaper /
reading the paper / selling newspapers / writing a letter | feeding the ducks / giving food to ducks
/ chasing the ducks / photographing a swan | walking a dog / taking a dog for a walk / bathing a dog
/ playing with a kitten | dancing in the rain / doing a dance in the rain / running through the rain
/ opening an umbrella | frying some eggs / cooking eggs in a pan / breaking eggs into a bowl /
eating a slice of toast | planting a tree / putting a tree into the ground / cutting down a tree /
watering some flowers | climbing a cliff / scaling a cliff / jumping off a cliff / hiking up a trail
| rowing a boat / moving a boat with oars / painting a boat / swimming across a lake | building a
sandcastle / making a castle out of sand / knocking over a sandcastle / collecting shells | lighting
a candle / setting a candle alight / blowing out a candle / switching on a lamp

{c} raises interest rates to {n} per cent / Interest rates in {c} go up to {n} per cent / {c} raises
interest rates / {c} cuts interest rates to {n} per cent / Bank shares fall in {c} | Teachers in {c}
strike for {n} days over pay / Pay dispute: {c}'s teachers walk out for {n} days / Teachers in {c}
go on strike over pay / Nurses in {c} strike for {n} days over pay / {c} to build {n} new schools |
Museum in {c} recovers {n} stolen paintings / {n} stolen paintings returned to museum in {c} /
Museum in {c} gets its stolen art back / Thieves take {n} paintings from museum in {c} / Museum in
{c} opens new wing | {c} bans plastic bags from next year / Plastic bags to be outlawed in {c} next
year / {c} bans plastic bags / {c} delays its ban on plastic bags / {c} misses its recycling target
| A {k} dog is running across a field. / A {k} dog runs through a field. / A dog is running across a
field. / A {k} dog is sleeping in a field. / A {k} dog is chewing a bone. | A {k} bird is sitting on
a branch. / A {k} bird perches on a tree branch. / A bird is sitting on a branch. / A {k} bird is
flying away from a branch. / A {k} bird is building a nest.

Peru / Norway / Kenya / Canada / Poland / Chile / Thailand / Greece / Côte d'Ivoire | 3 / 4 / 5 / 6
/ 7 / 8 / 9 / 11 | brown / black / white / grey | on a cool morning / in the evening / while others
look on / with great care / outside a shop / on a Sunday afternoon / before breakfast / near a
bridge""")
# Kinds | makers | parts | verb / participle / advert | remarks for sentiment 0..4.
DOMAINS = parse("""\
film / movie / thriller / comedy / drama / sequel | the director / the lead actor | script / acting
/ soundtrack / final act / dialogue / camerawork | watch / watched / poster | half the audience
walked out / I have seen livelier tax forms / not one line of it rings true | the jokes wear thin
after an hour / the hero stays a cardboard figure / it runs twenty minutes too long | it runs for
about two hours / it opens on Friday in most cities / the story is set in a small harbour town | the
jokes land more often than not / the two leads have an easy chemistry / it kept me guessing until
the last reel | the whole cinema rose to applaud / I was in tears of joy by the end / every scene
glows with life

novel / book / story / family saga / paperback | the author / the novelist | prose / plot / opening
chapter / ending / dialogue / storytelling | read / read / cover | I threw it across the room /
every page is a chore / I gave up in disgust after fifty pages | the middle chapters sag / the
characters all speak alike / the footnotes get in the way | it has twelve chapters and a short index
/ a second volume comes out in spring / it is set between the two wars | the second half rewards a
patient reader / the heroine is good company / the mystery comes together neatly | I stayed up until
dawn to finish it / each page holds a sentence worth framing / I have pressed it on everyone I know

bistro / restaurant / noodle bar / café / diner / brasserie | the chef / the owner | service / soup
/ menu / dessert / seafood / décor | visit / visited / façade | the chicken was raw and nobody
apologised / two of us were ill the next day / the waiter shouted at my mother | the pasta came out
lukewarm / we waited too long for the bill / the side dishes needed salt | it opens at noon and
closes at ten / the menu changes every month / they take cards as well as cash | the staff are
friendly and quick / the crème brûlée is worth the detour / the set lunch is good value | every dish
was a revelation / we talked about the meal for weeks / the waiters treated us like royalty

concert / gig / recital / show | the singer / the pianist / the band | sound / encore / opening
number / lighting / set list / playing | attend / attended / flyer | the singer was off key all
night / the noise gave me a headache for two days / people demanded refunds before the interval |
the sound was muddy at the back / the band seemed tired / the best songs were left out | the
programme mixed old songs and new ones / the doors opened at seven / it was held in the old town
hall | the new songs sound better live / everyone on stage had fun / the second half had real energy
| nobody wanted the night to end / the hall shook with joy / I had never heard such a voice""")
# Values of {x} | groups of paraphrases.
QUESTIONS = parse("""\
Spanish / Japanese / the violin / chess / calligraphy / touch typing / Python / sign language /
ballroom dancing | What is the best way to learn {x}? / How can I learn {x} effectively? / Which
approach works best for studying {x}? | How long does it take to learn {x}? / How many months does
an average person need to pick up {x}? / How much time will I need to get good at {x}? | Is it too
late to start learning {x} at forty? / Can someone begin {x} at forty and still get good? / Am I too
old at 40 to take up {x}? | What makes so many beginners quit {x}? / Why do most beginners drop {x}
after a few weeks? / For what reasons do people give up {x} so soon?

Lisbon / Kyoto / Prague / Morocco / Iceland / Vietnam / Mexico City / Scotland / São Paulo | What is
the best time of year to visit {x}? / When should I travel to {x}? / Which months are ideal for a
trip to {x}? | Is it safe to travel alone in {x}? / How safe is {x} for solo travellers? / Would I
be all right visiting {x} on my own? | How expensive is it to live in {x}? / What does it cost to
live in {x}? / How much money would I need each month in {x}? | What should I not miss on a first
visit to {x}? / Which sights in {x} are must-sees? / What are the top things to see in {x}?

sourdough bread / hummus / risotto / kimchi / tomato sauce / apple pie / fried rice / banana bread |
How do you make {x} at home? / What is a simple recipe for {x}? / How can I prepare {x} myself? |
How long does {x} keep in the fridge? / For how many days can I store {x} in a refrigerator? / When
does refrigerated {x} go bad? | Is {x} healthy? / Is eating {x} good for you? / Are there health
benefits to {x}? | Can I freeze {x}? / Is it possible to keep {x} in the freezer? / Does {x} survive
being frozen?

phone / laptop / tablet / smartwatch / printer / e-reader / games console | Why is my {x} so slow? /
What makes my {x} run slowly? / What could be the reason my {x} has become sluggish? | How do I
reset my {x} to factory settings? / What are the steps for a factory reset of my {x}? / How can I
restore my {x} to its original settings? | Is it worth repairing an old {x}? / Should I have my old
{x} fixed or is that a waste of money? / Does it make sense to get an ageing {x} repaired?

nurse / pilot / translator / data scientist / architect / lawyer / game designer / electrician | How
do I become a {x}? / What does it take to become a {x}? / What steps should I follow to start a
career as a {x}? | How much does a {x} earn? / What is the average salary of a {x}? / What kind of
pay can a {x} expect? | Do I need a degree to work as a {x}? / Can I be a {x} without going to
university? / Is a university education required to be a {x}?""")


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
    """A text, or a pair whichever comes first, by which it is known again."""
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
