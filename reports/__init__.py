"""Tables and, later, statistics and figures of runs."""
