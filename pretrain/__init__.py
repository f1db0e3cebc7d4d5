"""Further training of the encoder before any task: on sentences, pairs, or classes of texts."""
