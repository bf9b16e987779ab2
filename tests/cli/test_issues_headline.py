"""What `dualt issues` claims of the share of wrong labels: no more than `dualt estimate` does."""

import numpy as np
from typer.testing import CliRunner

from dualt.cli import app


def run(folder) -> str:
    """Return what is printed of 900 examples, a third of them unsure, with labels that follow the probabilities."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 900)
    probs = np.full((900, 3), 0.01)
    probs[np.arange(900), labels] = 0.98
    probs[::3] = rng.dirichlet(np.ones(3), 300)
    labels[::3] = (probs[::3].cumsum(axis=1) < rng.random((300, 1))).sum(axis=1).clip(0, 2)
    np.save(folder / "probs.npy", probs)
    np.save(folder / "labels.npy", labels)
    result = CliRunner().invoke(app, ["issues", str(folder / "probs.npy"), str(folder / "labels.npy")])
    assert result.exit_code == 0, result.output
    return " ".join(result.stdout.split())


def test_a_share_that_the_data_cannot_support_is_not_headlined(tmp_path):
    printed = run(tmp_path)
    assert "labels show as wrong" in printed
    assert "probabilities cannot tell more" in printed
    assert " of 900 are flagged, most suspect first." in printed
    assert "About" not in printed
