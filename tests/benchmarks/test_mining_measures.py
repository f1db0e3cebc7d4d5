"""What the benchmark of mining holds against brute force."""

import numpy as np

from benchmarks.mining import missed, sentences_of
from minbert.bi_encoder import BiEncoder
from serving.mining import mine
from tasks import data_folder


def test_a_pair_that_was_left_out_is_missed():
    sentences = sentences_of(data_folder("sample"), 40)
    assert len(set(sentences)) == 40
    embeddings = BiEncoder.from_pretrained("minilm").encode(sentences, normalize=True)
    pairs = mine(embeddings, 20)
    found = [
        [str(c), str(one + 1), str(two + 1)]
        for one, two, c in zip(pairs.first, pairs.second, pairs.cosines, strict=True)
    ]
    assert missed(sentences, found) == 0
    assert missed(sentences, found[5:]) == 10  # each is met from both of its rows
    assert np.all(np.diff(pairs.cosines) <= 0)
