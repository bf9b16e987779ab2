"""T♠ alone: count the given labels among the examples of each predicted class (Eq. 4)."""

from dataclasses import replace

from dualt.estimators._counts import count_fit
from dualt.results.fit import Fit
from dualt.rows.posterior import NoisyPosterior


def spade(posterior: NoisyPosterior) -> Fit:
    """T̂[l, j] = share of given label j among the examples whose largest probability is class l (Eq. 4).

    Right where the prediction is the clean class; T♠ is then the whole transition.
    """
    counts = posterior.summary.counts
    return replace(count_fit(counts), spade_counts=counts)
