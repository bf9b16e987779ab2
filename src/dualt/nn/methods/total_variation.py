"""Total variation: network and matrix learned together, the clean posteriors pushed apart."""

import torch
from torch import Tensor

from dualt.nn.methods.base import LearningMethod


class TotalVariation(LearningMethod):
    """−log (softmax(f(x)) @ transition)[label] − variation_weight · mean ½|p − p'|₁ over pairs of the batch.

    Noise brings posteriors closer together, so that among all pairs of network and matrix that explain the labels the
    one with the most distinct clean posteriors is chosen. The matrix is a parameter learned by gradient, the first of
    the paper's two variants; the other draws it from a Dirichlet distribution updated with counts of every batch.

    Zhang, Niu and Sugiyama, Learning noise transition matrix from only noisy labels via total variation
    regularization, ICML 2021.
    """

    def __init__(self, n_classes: int, *, variation_weight: float = 0.1) -> None:
        super().__init__(n_classes, variation_weight)

    def penalty(self, logits: Tensor, log_transition: Tensor) -> Tensor:
        return -mean_total_variation(logits.softmax(1))


def mean_total_variation(probs: Tensor) -> Tensor:
    """Return the mean of ½|p − p'|₁ over all pairs of rows, 0 for a single row."""
    n_rows = len(probs)
    return torch.cdist(probs, probs, p=1).sum() / (2 * max(n_rows * (n_rows - 1), 1))
