"""LaCon: label-anchored contrastive learning and its rivals, beside ours."""
