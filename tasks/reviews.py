"""Reviews by sentiment and articles by topic, in their usual files: CSV, a label a row.

The sets of SuperConText (Table 1), CFIMDB and DBpedia. A further one is a line of `REVIEWS`, its
name in `tasks/__init__.py` included. MSAC and ASAC have no usual CSV; expected are columns `text`
and `label`. They lie in `--data DIR`. Large ones are read row by row: only the rows that are used
are held.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from tasks.base import Task
from tasks.filtered import FirstClasses, Joined
from tasks.heads import SoftmaxClassifier
from tasks.kinds import classification
from tasks.labelled_files import LabelledFiles, Source
from tasks.parting import Parted
from tasks.predictions import class_file
from tasks.readers import class_label, clean_sentence, spelled_label

DROPOUT = 0.1
MOODS = ("negative", "positive")
STARS = ("very negative", "negative", "neutral", "positive", "very positive")
TOPICS = (
    *("company", "educational institution", "artist", "athlete", "office holder"),
    *("mean of transportation", "building", "natural place", "village", "animal", "plant"),
    *("album", "film", "written work"),
)
POLARITY = {"0": 0, "negative": 0, "neg": 0, "1": 1, "positive": 1, "pos": 1}


@dataclass(frozen=True)
class Published:
    """Where texts and labels are; `header` names the columns of files that do not.

    `labels` are what may stand in a file, and the class it means. `test` is a file of its own, or
    the share of the file `train` that is held out for it.
    """

    train: str
    test: str | float
    texts: tuple[str, ...]
    label: str
    labels: dict[str, int]
    header: tuple[str, ...] | None = None
    names: tuple[str, ...] = MOODS


def stars(count: int) -> dict[str, int]:
    """Labels from 1."""
    return {str(label + 1): label for label in range(count)}


def with_test(folder: str, columns: tuple[str, ...], names: tuple[str, ...] = MOODS) -> Published:
    """`train.csv` and `test.csv` without header lines, as Zhang et al. (2015) published them."""
    files = f"{folder}/train.csv", f"{folder}/test.csv"
    return Published(*files, columns[1:], columns[0], stars(len(names)), columns, names)


YELP, AMAZON = ("label", "text"), ("label", "title", "text")
REVIEWS = {
    "imdb": Published("IMDB/IMDB Dataset.csv", 0.5, ("review",), "sentiment", POLARITY),
    "yelp2": with_test("yelp_review_polarity_csv", YELP),
    "yelp5": with_test("yelp_review_full_csv", YELP, STARS),
    "amazon2": with_test("amazon_review_polarity_csv", AMAZON),
    "amazon5": with_test("amazon_review_full_csv", AMAZON, STARS),
    "dbpedia": with_test("dbpedia_csv", AMAZON, TOPICS),
    "msac": Published("MSAC/MSAC.csv", 0.1, ("text",), "label", POLARITY),
    "asac": Published("ASAC/ASAC.csv", 0.1, ("text",), "label", POLARITY),
}


def clean_review(text: str) -> str:
    """Line breaks, which are written out as two characters or as HTML, and spaces become one."""
    return " ".join(text.replace("\\n", " ").replace("<br />", " ").split())


def reviews(name: str, classes: str | None = None) -> Task:
    """A task of this name, with a softmax layer on the embedding of a text.

    With `classes` the first ones alone.
    """
    declared = REVIEWS[name]
    own_test = isinstance(declared.test, str)
    files = LabelledFiles(
        files={"train": declared.train} | ({"test": str(declared.test)} if own_test else {}),
        text_columns=declared.texts,
        label_column=declared.label,
        parse_label=spelled_label(declared.labels),
        clean_text=clean_review,
        target_type=np.int64,
        id_column=None,
        header=declared.header,
        comma=True,
        labelled_test=True,
    )
    source: Source = Parted(files, None if own_test else float(declared.test))
    if len(declared.texts) > 1:
        source = Joined(source)
    count = int(classes or len(declared.names))
    if count < len(declared.names):
        source = FirstClasses(source, count)
    return classified(name, count, source, declared.names)


def cfimdb() -> Task:
    """Long movie reviews, two classes, in the files of CS224N."""
    return classified(
        "cfimdb",
        2,
        LabelledFiles(
            files={
                "train": "ids-cfimdb-train.csv",
                "dev": "ids-cfimdb-dev.csv",
                "test": "ids-cfimdb-test-student.csv",
            },
            text_columns=("sentence",),
            label_column="sentiment",
            parse_label=class_label(2),
            clean_text=clean_sentence,
            target_type=np.int64,
        ),
        MOODS,
    )


def classified(name: str, classes: int, source: Source, names: tuple[str, ...]) -> Task:
    """Cross-entropy on a softmax layer."""
    return Task(
        name=name,
        kind=classification(classes, names=names[:classes]),
        source=source,
        build_head=partial(SoftmaxClassifier, classes=classes, dropout=DROPOUT),
        output=class_file(
            name, "Predicted_Label" if names == TOPICS else "Predicted_Sentiment", classes
        ),
    )


MAKERS: dict[str, Callable[..., Task]] = {"cfimdb": cfimdb} | {
    name: partial(reviews, name) for name in REVIEWS
}
