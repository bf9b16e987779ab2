"""A training method of your own: a batch in, one loss per network out, and it trains beside the others.

The method is the generalised cross entropy of Zhang and Sabuncu (NeurIPS 2018), which cares less for the labels that it
finds least likely.

python examples/own_method.py        writes own-method.png
"""

from __future__ import annotations

import torch
from matplotlib import pyplot
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import dualt
from dualt.nn.methods import METHODS, Batch, Losses, Method, Networks


class GeneralizedCrossEntropy(Method):
    """(1 − p_y^q) / q: cross entropy as q goes to 0, the mean absolute error at q = 1."""

    def __init__(self, q: float = 0.7) -> None:
        super().__init__()
        self.q = q

    def forward(self, networks: Networks, batch: Batch) -> Losses:
        """Return the mean loss of the batch."""
        log_probs = networks[0](batch.x).log_softmax(dim=1)
        chosen = log_probs.gather(1, batch.labels[:, None])[:, 0]
        return [((1 - torch.exp(self.q * chosen)) / self.q).mean()]


def main() -> None:
    """Register the method, and train it beside cross entropy on digits with wrong labels."""
    METHODS["own-gce"] = GeneralizedCrossEntropy
    images, digits = load_digits(return_X_y=True)
    x, test_x, clean, test_y = train_test_split(images / 16, digits, test_size=0.3, random_state=0)
    noisy = dualt.noise.corrupt(clean, dualt.noise.symmetric(10, 0.4), random_state=0)

    figure, ax = pyplot.subplots(layout="constrained")
    settings = {"transition": dualt.noise.symmetric(10, 0.4), "epochs": 25, "n_jobs": 1}
    for method in ("ce", "own-gce"):
        model = dualt.RobustNetClassifier(method=method, random_state=0, **settings).fit(x, noisy)
        print(f"{method}: {model.score(test_x, test_y):.1%} of the clean test labels right")
        ax.plot(model.history_[method]["validation_accuracy"], label=method)
    ax.set(xlabel="epoch", ylabel="accuracy on noisy validation labels")
    ax.legend()
    figure.savefig("own-method.png", dpi=120)
    print("Look at the curves: own-method.png")


if __name__ == "__main__":
    main()
