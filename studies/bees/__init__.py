"""BEES, bi-encoder ensembles with SimCSE and SMART: a comparison with the paper's figures."""
