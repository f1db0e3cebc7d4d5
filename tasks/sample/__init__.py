"""Small synthetic data for trying the tasks."""
