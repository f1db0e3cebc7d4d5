"""Write `own/tickets.csv`: 400 support tickets with four kinds of labels and their customers.

The random seed is fixed, so that every run writes the same bytes. Each sentence of a text tells one
label. One label in twenty is changed, and 15 % of each column are blank.
"""

import csv
import random
from pathlib import Path

FILE = Path(__file__).parent / "own" / "tickets.csv"
ROWS, CUSTOMERS = 400, 80
NOISE, BLANK = 0.05, 0.15
COLUMNS = ("text", "topic", "urgency", "tags", "satisfaction", "customer")

TOPICS = {
    "delivery": (
        "The parcel with the {item} has not arrived.",
        "The courier left our {item} at the wrong address.",
        "Tracking for the {item} has not changed since {day}.",
        "We expected the {item} on {day} and nobody came.",
    ),
    "billing": (
        "The {item} was charged twice on my card.",
        "Your bill from {day} lists a {item} that we never ordered.",
        "The price of the {item} on the bill is higher than in the shop.",
        "My payment for the {item} on {day} was declined.",
    ),
    "product": (
        "The {item} stopped working on {day}.",
        "The {item} makes a strange noise.",
        "How do I connect the {item} to a second screen?",
        "The manual of the {item} does not explain the blue light.",
    ),
    "account": (
        "I cannot log in since {day}.",
        "The link to reset my password has expired.",
        "Please change the e-mail address that I used for the {item}.",
        "My profile still shows the address we left on {day}.",
    ),
    "returns": (
        "I would like to send the {item} back.",
        "Where do I print the label to return the {item}?",
        "The {item} that I returned on {day} is still listed as mine.",
    ),
}
SIZES = {"delivery": 120, "billing": 100, "product": 80, "account": 60, "returns": 40}
URGENCY = {
    "low": ("There is no hurry.", "Answer whenever you have time.", "This can wait until {day}."),
    "normal": ("Please answer this week.", "I hope to hear from you by {day}.", "Please check."),
    "high": (
        "This is urgent, our shop is at a standstill.",
        "I need an answer today.",
        "Call me back at once, we lose money every hour.",
    ),
}
TAGS = {
    "app": ("I use the app on my phone.", "The app shows only a white page."),
    "damaged": ("The box was crushed.", "One corner is broken."),
    "gift": ("It was meant as a birthday present.", "It is a gift for my sister."),
    "late": ("It is more than a week late.", "The promised date has passed."),
    "refund": ("I want my money back.", "Please refund the full amount."),
    "repeat": ("This is my third message about it.", "The same happened last month."),
}
ACCOUNT_TAGS = ("app", "refund", "repeat")  # nothing was sent
MOODS = (  # satisfaction from 1 to 5
    ("I am very disappointed.", "This is the worst service I know."),
    ("I am not happy with this.", "That was annoying."),
    ("So far it is all right.", "I have no strong opinion about your service."),
    ("Otherwise I like your shop.", "Your team was friendly on the phone."),
    ("Thank you, your service is excellent!", "I recommend you to all my friends."),
)
ITEMS = ("desk lamp", "keyboard", "printer", "monitor", "coffee machine", "headset", "router")
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")


def ticket(rng: random.Random, topic: str, tags: list[str]) -> list[str]:
    """Return the text of a ticket and its true labels."""
    urgency = rng.choices(list(URGENCY), (3, 5, 2))[0]
    mood = rng.choices(range(5), (3, 4, 3, 3, 2))[0]
    sentences = [rng.choice(TAGS[tag]) for tag in tags]
    sentences += [rng.choice(URGENCY[urgency]), rng.choice(MOODS[mood])]
    rng.shuffle(sentences)
    slots = {"item": rng.choice(ITEMS), "day": rng.choice(DAYS)}
    text = " ".join([rng.choice(TOPICS[topic]), *sentences]).format_map(slots)
    satisfaction = min(5.0, max(1.0, mood + 1 + rng.uniform(-0.4, 0.4)))
    return [text, topic, urgency, "|".join(sorted(tags)), f"{satisfaction:.1f}"]


def disturb(rng: random.Random, row: list[str]) -> None:
    """Change some labels of a ticket at random; the number of tags stays above 0."""
    if rng.random() < NOISE:
        row[1] = rng.choice(list(TOPICS))
    if rng.random() < NOISE:
        row[2] = rng.choice(list(URGENCY))
    if row[3] and rng.random() < NOISE:
        row[3] = rng.choice(list(TAGS))
    if rng.random() < NOISE:
        row[4] = f"{rng.uniform(1, 5):.1f}"


def tickets() -> list[list[str]]:
    """Return the rows; blank tags are those of tickets without a tag."""
    rng = random.Random(0)
    topics = [name for name, count in SIZES.items() for _ in range(count)]
    blanks = round(BLANK * ROWS)
    tagged = [0] * blanks + rng.choices((1, 2, 3), (4, 3, 1), k=ROWS - blanks)
    rng.shuffle(topics)
    rng.shuffle(tagged)
    rows: dict[str, list[str]] = {}
    while len(rows) < ROWS:
        number = len(rows)
        fitting = ACCOUNT_TAGS if topics[number] == "account" else list(TAGS)
        row = ticket(rng, topics[number], rng.sample(fitting, tagged[number]))
        if row[0] not in rows:
            disturb(rng, row)
            # Some customers write often.
            row.append(f"C{min(rng.randrange(CUSTOMERS), rng.randrange(CUSTOMERS)) + 1:03d}")
            rows[row[0]] = row
    found = list(rows.values())
    for column in (1, 2, 4):
        for row in rng.sample(found, blanks):
            row[column] = ""
    return found


if __name__ == "__main__":
    with open(FILE, "w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([COLUMNS, *tickets()])
