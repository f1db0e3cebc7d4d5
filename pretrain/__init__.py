"""Further pre-training of the encoder on sentences, pairs or classes of texts, before any task."""

from minbert_multitask import check_packages

check_packages(__name__)
