"""Tables, figures and stored results of runs."""

from minbert_multitask import check_packages

check_packages(__name__)
