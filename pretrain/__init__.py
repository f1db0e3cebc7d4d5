"""Further pre-training of the encoder on sentences, pairs or classes of texts, before any task."""
