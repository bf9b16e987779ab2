"""Whether a classifier has learned enough for its matrix to be used and its noise rate to be told."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.results import TransitionEstimate

# Standard errors that agreement must differ by.
_SURE = 3.0
# Agreement beyond that of the most frequent label that only few examples leave in doubt.
_MUCH = 0.2


def distrust(estimate: TransitionEstimate, probs: NDArray[Any], labels: NDArray[Any]) -> str | None:
    """Return why neither the matrix nor a rate should be used; `None` if nothing speaks against them.

    Parameters
    ----------
    estimate
    probs : (n, n_classes)
        Of samples that the classifiers were not trained on.
    labels : (n,)
        Their given labels, as class numbers.
    """
    agreement = float((probs.argmax(axis=1) == labels).mean())
    most_frequent = float(np.bincount(labels).max() / len(labels))
    if agreement <= most_frequent + _SURE * np.sqrt(most_frequent * (1 - most_frequent) / len(labels)):
        by_chance = (
            f"of {len(labels)} that may be chance" if agreement > most_frequent + _MUCH else "it has learned too little"
        )
        return (
            f"the classifier is right about {agreement:.0%} of the labels that it had not seen, and the most frequent"
            f" label alone would be about {most_frequent:.0%}: {by_chance}"
        )
    if estimate.undecided is not None:
        return estimate.undecided
    error = _SURE * np.sqrt(agreement * (1 - agreement) / len(labels))
    if estimate.noise_rate > 1 - agreement + error:
        return (
            f"{estimate.estimator} takes {estimate.noise_rate:.0%} of the labels to be wrong, but the classifier"
            f" contradicts only {1 - agreement:.0%} of those that it had not seen"
        )
    return None
