"""SuperConText: supervised contrastive pre-training and its rivals, beside ours."""
