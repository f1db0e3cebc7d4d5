"""Further training of the encoder on text without labels, or on pairs, before any task."""
