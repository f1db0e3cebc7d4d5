"""The pages of the documentation, and what builds one of them."""
