"""Chinese tasks of CLUE and FewCLUE, read from their own files: a JSON object a line.

They want an encoder that reads Chinese, such as a local folder of bert-base-chinese.
"""

from __future__ import annotations

from tasks.declared import Declared

TEXT, PAIR = ("sentence",), ("sentence1", "sentence2")
TNEWS = {
    "100": "民生故事", "101": "文化", "102": "娱乐", "103": "体育", "104": "财经",
    "106": "房产", "107": "汽车", "108": "教育", "109": "科技", "110": "军事",
    "112": "旅游", "113": "国际", "114": "证券股票", "115": "农业", "116": "电竞游戏",
}  # fmt: skip
NLI = ("entailment", "neutral", "contradiction")


def declared(
    folder: str,
    texts: tuple[str, ...],
    labels: tuple[str, ...],
    names: tuple[str, ...] = (),
    train: str = "train.json",
    dev: str = "dev.json",
) -> Declared:
    return Declared(folder, texts, "label", labels, train, dev, names=names)


FEW = {"train": "train_few_all.json", "dev": "test_public.json"}  # of FewCLUE
CLUE = {
    "tnews": declared("tnews_public", TEXT, tuple(TNEWS), tuple(TNEWS.values())),
    "iflytek": declared("iflytek_public", TEXT, tuple(str(label) for label in range(119))),
    "afqmc": declared("afqmc_public", PAIR, ("0", "1"), ("不同", "相同")),
    "ocnli": declared("ocnli_public", PAIR, NLI, ("蕴含", "中立", "矛盾"), "train.50k.json"),
    "eprstmt": declared("eprstmt", TEXT, ("Negative", "Positive"), ("差评", "好评"), **FEW),
    "bustm": declared("bustm", PAIR, ("0", "1"), ("不同", "相同"), **FEW),
}
