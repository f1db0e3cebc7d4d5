"""The papers: the rows of their tables as configurations, what they print, and our figures.

A paper is a file of rows (`bees.py`), and one of printed figures, claims and sentences
(`bees.toml`, see `content.py`), and a name in `PAPERS`. `runs.py` trains what is missing and stores
it in `results/bees.csv`. From that and the sentences, `page.py` writes the page `results/bees.md`,
and `figures.py` draws.
"""

# Those with rows that can be run; the figures of speed are of `python -m benchmarks`.
PAPERS = ("bees", "scl_moo", "supercontext", "lacon", "sharing", "combiners")
PAGES = (*PAPERS, "speed")
