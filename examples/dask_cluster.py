"""A Dask cluster: probabilities and labels stay with the workers, and only counts travel.

python examples/dask_cluster.py        starts two workers here; pass tcp://host:8786 to use a cluster you have
"""

from __future__ import annotations

import sys

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

import dualt

N_SAMPLES, N_CLASSES, CHUNK = 200_000, 6, 50_000


def probabilities(true: np.ndarray) -> np.ndarray:
    """Return the probabilities of a decent classifier for examples of these classes."""
    unsure = np.random.default_rng(int(true[:100].sum())).dirichlet(np.ones(N_CLASSES), len(true))
    return (0.2 * unsure + 0.8 * np.eye(N_CLASSES)[true]).astype(np.float32)


def main(address: str | None = None) -> None:
    """Estimate from chunked arrays, and list the most suspect labels."""
    cluster = address or LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None)
    with Client(cluster):
        true = np.random.default_rng(0).integers(N_CLASSES, size=N_SAMPLES)
        transition = dualt.noise.pair(N_CLASSES, 0.25)
        labels = da.from_array(dualt.noise.corrupt(true, transition, random_state=1), chunks=CHUNK)
        probs = da.from_array(true, chunks=CHUNK).map_blocks(
            probabilities, new_axis=1, chunks=((CHUNK,) * (N_SAMPLES // CHUNK), (N_CLASSES,)), dtype=np.float32
        )
        estimate = dualt.estimate_transition(probs, labels)
        error = dualt.l1_error(estimate.transition, transition, normalize=True)
        print(f"{estimate.noise_rate:.1%} of {estimate.n_samples:,} labels are wrong; off by {error:.3f} per row")
        print(estimate.to_frame().round(2))

        issues = dualt.find_label_issues(probs, labels, estimate)
        worst = issues[issues.is_issue].nsmallest(3, "probability_right").compute()
        print("The most suspect labels:")
        print(worst.round(4))


if __name__ == "__main__":
    main(*sys.argv[1:2])
