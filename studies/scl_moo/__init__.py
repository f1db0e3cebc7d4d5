"""SCL-MOO, contrastive learning as multi-objective optimisation: a comparison with the paper."""
