"""Tables and figures of runs, and what is kept of them."""
