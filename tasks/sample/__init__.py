"""Small sample data for trying the tasks out, made by generate.py."""
