"""Votes of three people of known quality."""

import numpy as np
import pandas as pd


def people(seed, n_items=300):
    """Return a long table of votes; `attrs["truth"]` has the class of each item."""
    rng = np.random.default_rng(seed)
    classes = np.array(["bird", "cat", "dog"])
    truth = rng.choice(classes, n_items)
    frames = []
    for name, right, share in (("careful", 0.92, 0.9), ("hasty", 0.7, 1.0), ("tired", 0.65, 0.8), ("slow", 0.85, 0.7)):
        items = np.flatnonzero(rng.random(n_items) < share)
        wrong = np.where(truth[items] == "cat", "dog", "cat")
        label = np.where(rng.random(len(items)) < right, truth[items], wrong)
        frames.append(pd.DataFrame({"item": items, "annotator": name, "label": label}))
    long = pd.concat(frames, ignore_index=True)
    long.attrs["truth"] = truth.tolist()
    return long
