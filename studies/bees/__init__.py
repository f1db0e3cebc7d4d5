"""BEES: bi-encoder ensembles with SimCSE and SMART; its tables and figures beside ours."""
