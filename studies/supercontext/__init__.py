"""SuperConText, supervised contrastive pre-training: a comparison with the paper's figures."""
