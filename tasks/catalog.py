"""Tables of the built-in tasks: GLUE, CLUE, reviews and topics, in their published file formats.

To add a task, add a line here. GLUE's files are tab-separated without quotes; files whose name ends
in `.csv` have commas and quotes. CLUE and FewCLUE have one JSON object per line and need an encoder
for Chinese, such as a local folder of bert-base-chinese. Reviews are the data sets of SuperConText
(Table 1) and DBpedia, in CSV. MSAC and ASAC have no standard CSV; they need the columns `text` and
`label`. Files are in `--data DIR`; those of GLUE and CLUE may also be in its folder `glue`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Declared:
    """Files and columns of a task; `header` names the columns of files without a header line.

    `names` are readable names of the classes, for labels that are not readable.
    """

    folder: str
    texts: tuple[str, ...]
    label: str
    labels: tuple[str, ...]
    train: str = "train.tsv"
    dev: str = "dev.tsv"
    header: tuple[str, ...] | None = None
    names: tuple[str, ...] = ()


GLUE = {
    "sst2": Declared("SST-2", ("sentence",), "label", ("0", "1"), names=("negative", "positive")),
    "cola": Declared(
        "CoLA",
        ("sentence",),
        "label",
        ("0", "1"),
        header=("source", "label", "mark", "sentence"),
        names=("unacceptable", "acceptable"),
    ),
    "mrpc": Declared(
        "MRPC",
        ("#1 String", "#2 String"),
        "Quality",
        ("0", "1"),
        names=("different", "equivalent"),
    ),
    "rte": Declared("RTE", ("sentence1", "sentence2"), "label", ("entailment", "not_entailment")),
    "qnli": Declared("QNLI", ("question", "sentence"), "label", ("entailment", "not_entailment")),
    "mnli": Declared(
        "MNLI",
        ("sentence1", "sentence2"),
        "gold_label",
        ("entailment", "neutral", "contradiction"),
        dev="dev_matched.tsv",
    ),
    "trec": Declared(
        "TREC",
        ("sentence",),
        "label",
        ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM"),
        names=("abbreviation", "description", "entity", "human", "location", "number"),
    ),
}

TEXT, PAIR = ("sentence",), ("sentence1", "sentence2")
TNEWS = {
    "100": "民生故事", "101": "文化", "102": "娱乐", "103": "体育", "104": "财经",
    "106": "房产", "107": "汽车", "108": "教育", "109": "科技", "110": "军事",
    "112": "旅游", "113": "国际", "114": "证券股票", "115": "农业", "116": "电竞游戏",
}  # fmt: skip
NLI = ("entailment", "neutral", "contradiction")


def of_clue(
    folder: str,
    texts: tuple[str, ...],
    labels: tuple[str, ...],
    names: tuple[str, ...] = (),
    train: str = "train.json",
    dev: str = "dev.json",
) -> Declared:
    return Declared(folder, texts, "label", labels, train, dev, names=names)


FEW = {"train": "train_few_all.json", "dev": "test_public.json"}  # files of FewCLUE
CLUE = {
    "tnews": of_clue("tnews_public", TEXT, tuple(TNEWS), tuple(TNEWS.values())),
    "iflytek": of_clue("iflytek_public", TEXT, tuple(str(label) for label in range(119))),
    "afqmc": of_clue("afqmc_public", PAIR, ("0", "1"), ("不同", "相同")),
    "ocnli": of_clue("ocnli_public", PAIR, NLI, ("蕴含", "中立", "矛盾"), "train.50k.json"),
    "eprstmt": of_clue("eprstmt", TEXT, ("Negative", "Positive"), ("差评", "好评"), **FEW),
    "bustm": of_clue("bustm", PAIR, ("0", "1"), ("不同", "相同"), **FEW),
}

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
    """Files and columns of a data set; `header` names the columns of files without a header line.

    `labels` maps the labels in a file to classes. `test` is a file, or the share of the file
    `train` that is held out for test.
    """

    train: str
    test: str | float
    texts: tuple[str, ...]
    label: str
    labels: dict[str, int]
    header: tuple[str, ...] | None = None
    names: tuple[str, ...] = MOODS


def stars(count: int) -> dict[str, int]:
    """Map the labels from 1 to `count` to classes from 0."""
    return {str(label + 1): label for label in range(count)}


def with_test(folder: str, columns: tuple[str, ...], names: tuple[str, ...] = MOODS) -> Published:
    """Return a data set of Zhang et al. (2015): `train.csv` and `test.csv` without header lines."""
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

DECLARED = GLUE | CLUE
