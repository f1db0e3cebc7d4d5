"""What a run writes to disk and reads again: its folder, its configuration and its checkpoints."""
