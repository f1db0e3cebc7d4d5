"""The pages of the documentation, and the scripts that build some of their pages and pictures."""
