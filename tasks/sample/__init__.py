"""Small sample data for trying the tasks, made by generate.py."""
