"""Splits of courses are recognised by a sketch of their ids."""

from reports.submissions.known_splits import SIZE, KnownSplit, recognise, sketch


def test_a_sketch_recognises_a_split_and_the_covered_share(monkeypatch):
    ids = [f"id{n}" for n in range(5000)]
    known = KnownSplit("a course", "qqp", "dev", len(ids), sketch(ids))
    monkeypatch.setattr("reports.submissions.known_splits.known_splits", lambda: (known,))
    (whole,) = recognise([f"{n} {one}" for n, one in enumerate(reversed(ids))])
    assert (len(known.sketch), whole.share) == (SIZE, 1)
    (half,) = recognise(ids[::2])
    assert 0.2 < half.share < 0.8
    assert recognise([f"other{n}" for n in range(5000)]) == []
