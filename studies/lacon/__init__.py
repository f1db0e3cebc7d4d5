"""LaCon, label-anchored contrastive learning: a comparison with the paper's figures."""
