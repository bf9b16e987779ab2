"""Reports made by hand, for tests that need no estimator."""

import numpy as np

from dualt.report import Method, Previews, Remark, ReportData, ReviewList

CLASSES = tuple("0123456789")


def pair_noise(n_classes, rate=0.2):
    matrix = np.eye(n_classes) * (1 - rate)
    matrix[np.arange(n_classes), (np.arange(n_classes) + 1) % n_classes] += 0.75 * rate
    matrix[np.arange(n_classes), (np.arange(n_classes) + 2) % n_classes] += 0.25 * rate
    return matrix


def review_list(n_rows=40, n_classes=10, previews=None, step=3):
    rng = np.random.default_rng(0)
    given = rng.integers(0, n_classes, n_rows)
    right = np.sort(rng.uniform(0, 0.5, n_rows))
    return ReviewList(
        key="suspects",
        title="Suspect labels",
        purpose="Most suspect first.",
        index=np.arange(n_rows) * step,
        given=given,
        suggested=(given - 1) % n_classes,
        probability_right=right,
        suggested_probability=1 - right,
        previews=previews,
    )


def report(n_rows=40, names=CLASSES, previews=None, **changes):
    n_classes = len(names)
    transition = pair_noise(n_classes)
    rates = 1 - np.diagonal(transition)
    counts = 1000 * transition.T
    fields = {
        "title": "Label report",
        "method": "dual-t",
        "n_samples": 1000 * n_classes,
        "class_names": tuple(names),
        "transition": transition,
        "transition_interval": (np.maximum(0, transition - 0.01), np.minimum(1, transition + 0.0125)),
        "noise_rate": 0.2,
        "noise_rate_interval": (0.19, 0.2125),
        "noise_rates": rates,
        "noise_rates_interval": (rates - 0.01, rates + 0.0125),
        "expected_wrong": 200.0 * n_classes,
        "pair_counts": counts,
        "label_counts": np.full(n_classes, 1000),
        "agreement": 0.81,
        "condition_number": 1.7,
        "lists": (review_list(n_rows, n_classes, previews),),
    }
    return ReportData(**{**fields, **changes})


def texts(n_rows, step=3):
    return Previews("text", {i * step: f"the text of example {i * step}" for i in range(n_rows)})


def methods(n_classes):
    rates = (0.2, 0.26)
    return tuple(
        Method(name, pair_noise(n_classes, rate), rate, np.full(n_classes, rate))
        for name, rate in zip(("dual-t", "confident-joint"), rates, strict=True)
    )


def remarks():
    return (Remark("The classifier agrees with 99% of the labels.", "Use out-of-fold probabilities."),)
