"""Tables, figures and stored results of runs."""
