"""Benchmarks of this toolkit against other libraries, as ratios of one run."""
