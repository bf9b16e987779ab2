"""What a run says of the rows of the data, under the user's own row numbers: trained on, held out, or left over."""

from __future__ import annotations

import numpy as np

from dualt.datasets.dataset import Dataset
from dualt.datasets.split import Split
from dualt.issues import LabelIssues, find_posterior_issues
from dualt.nn.pipeline import RobustRun
from dualt.nn.stages import posterior_of
from dualt.nn.training import as_inputs, predict_probs


def issues_of_all_rows(run: RobustRun, dataset: Dataset, split: Split) -> LabelIssues:
    """Return what the run's estimate says of the labels of the data, in its order, whatever part a row was in.

    If the labels were corrupted here, of the rows in use alone: those left over were not, and the matrix is not theirs.
    """
    labels = dataset.train_y.copy()
    probs = np.empty((len(labels), dataset.n_classes), np.float32)
    parts = [
        (split.train_index, run.pred_probs, split.train_noisy),
        (split.val_index, run.held_out_probs, split.val_noisy),
    ]
    for rows, known, given in parts:
        probs[rows], labels[rows] = known, given
    used = np.union1d(split.train_index, split.val_index)
    unused = np.setdiff1d(np.arange(len(labels)), used)
    if len(unused) and split.transition is None:
        networks = [net for name, stage in run.stages.items() if name.startswith("ce") for net in stage.networks]
        device = run.config.machine.torch_device
        probs[unused] = predict_probs(networks, as_inputs(dataset.train_x[unused], dataset.mean, dataset.std, device))
        used = np.arange(len(labels))
    posterior = posterior_of(probs[used], labels[used], dataset.class_names, out_of_fold=run.out_of_fold)
    found = find_posterior_issues(posterior, run.estimate)
    return found if len(used) == len(labels) else found.spread(used, len(labels))
