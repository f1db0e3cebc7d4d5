"""SCL-MOO: supervised contrastive learning as multi-objective optimisation, beside ours."""
