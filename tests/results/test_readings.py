"""How a noise rate is told: as one, as a range, or not at all."""

import numpy as np
import pytest

import dualt
from dualt.report import render_report
from dualt.results.readings import basis, finding


def hard_and_easy(noise_of_sure: float, seed: int = 0) -> dualt.TransitionEstimate:
    """Estimate from calibrated probabilities, half of them sure and half not, where a share of the sure is wrong."""
    rng = np.random.default_rng(seed)
    n_rows = 6000
    clean = rng.integers(0, 3, n_rows)
    posterior = np.full((n_rows, 3), 0.01)
    posterior[np.arange(n_rows), clean] = 0.98
    posterior[::2] = rng.dirichlet(np.ones(3), n_rows // 2)
    clean = (posterior.cumsum(axis=1) < rng.random((n_rows, 1))).sum(axis=1).clip(0, 2)
    given = np.where(rng.random(n_rows) < noise_of_sure, (clean + rng.integers(1, 3, n_rows)) % 3, clean)
    mixing = np.full((3, 3), noise_of_sure / 2) + (1 - 1.5 * noise_of_sure) * np.eye(3)
    return dualt.estimate_transition(posterior @ mixing, given)


def test_where_the_sure_show_no_errors_probabilities_cannot_tell_and_an_audit_is_asked_for():
    """As with labels that a rule gave: the classifier repeats its errors, and is sure of them."""
    estimate = hard_and_easy(0.0)
    assert estimate.noise_rate_range[0] == 0
    assert finding(estimate).startswith("At most ")
    assert finding(estimate).endswith(" labels show as wrong")
    page = " ".join(render_report(estimate).split())
    for told in (basis(estimate), page):
        assert "probabilities cannot tell more" in told
        assert "errors that the classifier repeats do not show" in told
        assert "dualt audit" in told


def test_where_the_sure_show_errors_the_range_is_claimed():
    estimate = hard_and_easy(0.3)
    assert estimate.noise_rate_range[0] > 0.1
    assert "cannot tell" not in basis(estimate) + render_report(estimate)
    assert "show as wrong" not in finding(estimate)


@pytest.mark.parametrize("seed", range(3))
def test_the_range_holds_the_rate_of_both(seed):
    for rate in (0.0, 0.3):
        low, high = hard_and_easy(rate, seed).noise_rate_range
        assert low <= rate <= high
