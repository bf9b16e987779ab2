"""What the README shows, with the base dependencies alone, as `.ci/wheel` runs it; leaves two files behind."""

import sys

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dualt


def check_extra_is_named(use):
    try:
        use()
    except dualt.errors.MissingExtraError:
        return
    raise AssertionError("an extra is installed: this is not the base")


features, clean = load_digits(return_X_y=True)
labels = dualt.noise.corrupt(clean, dualt.noise.pair(10, 0.3), random_state=0)
model = make_pipeline(StandardScaler(), LogisticRegression(C=0.01))
probs = cross_val_predict(model, features, labels, cv=5, method="predict_proba")
estimate = dualt.estimate_transition(probs, labels)
assert abs(estimate.noise_rate - (labels != clean).mean()) < 0.1
assert "of the labels look wrong" in estimate._repr_html_()
assert (labels != clean)[dualt.find_label_issues(probs, labels).indices].mean() > 0.6
assert dualt.RobustClassifier(model).fit(features, labels).score(features, clean) > 0.8
check_extra_is_named(lambda: dualt.losses)
check_extra_is_named(estimate.plot)
assert not {"torch", "matplotlib"} & sys.modules.keys()
assert estimate.to_frame().shape == (10, 10)
np.save("probs.npy", probs)
np.save("labels.npy", labels)
