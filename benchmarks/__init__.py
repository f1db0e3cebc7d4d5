"""This toolkit beside named peers, in one run, as ratios."""
