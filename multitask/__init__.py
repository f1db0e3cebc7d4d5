"""The one training loop, for one task or several, and its parts."""
