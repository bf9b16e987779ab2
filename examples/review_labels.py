"""Review labels: find the suspect ones, look at them in a page, put the decisions back into the label file.

python examples/review_labels.py        writes review.html, labels.npy, review.csv and corrected.npy
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_predict

import dualt
from dualt.issues import apply_review, read_review


def decide(path: Path, issues: dualt.LabelIssues, clean: np.ndarray, n_rows: int) -> None:
    """Write what a person would download from the page: the most suspect labels, corrected or kept.

    Here the truth plays the person.
    """
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["index", "old", "new"])
        writer.writerows([row, issues.given[row], clean[row]] for row in issues.indices[:n_rows])


def main() -> None:
    """Spoil a tenth of the digits' labels, and review the 100 most suspect."""
    features, clean = load_digits(return_X_y=True)
    labels = dualt.noise.corrupt(clean, dualt.noise.symmetric(10, 0.1), random_state=0)
    np.save("labels.npy", labels)
    model = RandomForestClassifier(60, min_samples_leaf=2, random_state=0)
    probs = cross_val_predict(model, features, labels, cv=3, method="predict_proba")

    issues = dualt.find_label_issues(probs, labels)
    images = (255 - features * 255 / 16).astype(np.uint8).reshape(-1, 8, 8)
    issues.to_report("review.html", images=images, title="Digits")

    decide(Path("review.csv"), issues, clean, 100)
    corrected = apply_review(labels, read_review("review.csv"))
    np.save("corrected.npy", corrected)
    before, after = (labels != clean).sum(), (corrected != clean).sum()
    print(f"{before} of {len(labels):,} labels were wrong; after a review of 100 of them {after} are.")
    print("Look at them: review.html")


if __name__ == "__main__":
    main()
