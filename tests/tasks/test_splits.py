"""A split counts its texts that were cut."""

import numpy as np

from minbert.batching import TokenLists
from tasks.data import Split
from tasks.readers import Examples


def tokens(*cut):
    n = len(cut)
    return TokenLists(np.zeros(n, np.int32), np.arange(n + 1), np.array(cut, np.bool_))


def test_cut_texts_of_pairs_are_counted_and_those_of_views_once():
    examples = Examples(ids=["a", "b", "c"], texts=(), targets=None)
    one, other = tokens(True, False, True), tokens(False, False, True)
    assert Split(examples, (one,)).cut == (2, 3)
    assert Split(examples, (one, other)).cut == (3, 6)
    assert Split(examples, (one, one)).cut == (2, 3)
