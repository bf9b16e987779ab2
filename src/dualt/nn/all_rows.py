"""What a run says of every row of the data, under the user's own row numbers: trained on, held out, or left over."""

from __future__ import annotations

import numpy as np

from dualt.datasets.dataset import Dataset
from dualt.datasets.split import Split
from dualt.labels import LabelCoder
from dualt.nn.pipeline import RobustRun
from dualt.nn.training import as_inputs, predict_probs
from dualt.rows import NoisyPosterior, as_posterior


def posterior_of_all_rows(run: RobustRun, dataset: Dataset, split: Split) -> NoisyPosterior:
    """Return probabilities and given labels of every row of the data, in its order, whatever part it was in."""
    labels = dataset.train_y.copy()
    probs = np.empty((len(labels), dataset.n_classes), np.float32)
    parts = [
        (split.train_index, run.pred_probs, split.train_noisy),
        (split.val_index, run.held_out_probs, split.val_noisy),
    ]
    for rows, known, given in parts:
        probs[rows], labels[rows] = known, given
    unused = np.setdiff1d(np.arange(len(labels)), np.concatenate([split.train_index, split.val_index]))
    if len(unused):
        networks = [net for name, stage in run.stages.items() if name.startswith("ce") for net in stage.networks]
        device = run.config.machine.torch_device
        probs[unused] = predict_probs(networks, as_inputs(dataset.train_x[unused], dataset.mean, dataset.std, device))
    coder = LabelCoder(tuple(dataset.class_names), by_name=False)
    return as_posterior(probs, labels, coder=coder, out_of_fold=run.out_of_fold)
