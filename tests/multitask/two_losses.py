"""A task with two losses, as users may define one."""

from dataclasses import replace

import torch.nn.functional as F

from tasks.built_in import QQP


class TwoLosses(QQP, name="two"):
    """The pairs of Quora, with a loss of their embeddings as a separate objective."""

    def build(self):
        losses = {
            "cross_entropy": lambda outputs, texts, same: F.cross_entropy(outputs, same),
            "contrastive": lambda outputs, texts, same: F.cosine_embedding_loss(
                *texts, 2 * same - 1, margin=0.5
            ),
        }
        return replace(super().build(), name=self.name, losses=losses)
