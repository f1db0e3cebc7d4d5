"""The bundled sample: clean, of the stated size and without a leak."""

from collections import Counter

import pytest

from tasks import CS224N, build_task, data_folder
from tasks.splits import keys

SAMPLE = data_folder("sample")
SPLITS = ("train", "dev", "test")
TRAIN = {"sst": 960, "qqp": 1080, "sts": 480}  # Quora the largest, as in the real data


@pytest.mark.parametrize("name", CS224N)
def test_every_split_reads_cleanly(name):
    task = build_task(name)
    for split, size in {"train": TRAIN[name], "dev": 300, "test": 300}.items():
        found = task.read(SAMPLE, split)
        assert len(found) == size
        assert found.blank_rows == 0
        assert all(text for column in found.texts for text in column)
        assert (found.targets is None) == (split == "test")
        if split != "test" and name != "sts":
            assert set(found.targets) == set(range(task.kind.classes))
        elif split == "train":
            assert 0 <= found.targets.min() < 1 < 4 < found.targets.max() <= 5


@pytest.mark.parametrize("name", CS224N)
def test_no_text_comes_twice_within_a_split_or_across(name):
    task = build_task(name)
    found = {split: task.read(SAMPLE, split) for split in SPLITS}
    examples = Counter(
        frozenset(texts) for part in found.values() for texts in zip(*part.texts, strict=True)
    )
    assert examples.most_common(1)[0][1] == 1
    ids = Counter(i for part in found.values() for i in part.ids)
    assert ids.most_common(1)[0][1] == 1


@pytest.mark.parametrize("name", ["sst2", "mrpc"])
def test_glue_tasks_read_cleanly_and_share_no_example(name):
    task = build_task(name)
    train, dev = (task.read(SAMPLE, split) for split in ("train", "dev"))
    assert (len(train), len(dev)) == (120, 60)
    for found in (train, dev):
        assert set(found.targets.tolist()) == {0, 1}
    others = [build_task(one).read(SAMPLE, split) for one in CS224N for split in SPLITS]
    known = {key for found in others for key in keys(found)}
    assert not set(keys(train)) & set(keys(dev))
    assert not (set(keys(train)) | set(keys(dev))) & known
