"""Texts with wrong labels: how many are wrong, which ones, and a classifier that learns well anyway.

python examples/text_classification.py        writes texts-report.html
"""

from __future__ import annotations

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import dualt

TOPICS = {
    "sport": "goal team match player coach season league score win defence referee stadium",
    "politics": "vote minister party law election parliament budget reform campaign treaty senate mayor",
    "science": "cell energy theory experiment particle planet data laboratory species orbit enzyme telescope",
    "cooking": "oven flour recipe butter garlic simmer taste sauce onion pepper bake spoon",
}
COMMON = "the a of to and in new said year people first time day work again week"


def make_texts(n_texts: int, rng: np.random.Generator) -> tuple[list[str], np.ndarray]:
    """Return sentences of a topic's words among common ones, some borrowed from another topic, and their topics."""
    names = list(TOPICS)
    topics = rng.integers(len(names), size=n_texts)
    texts = []
    for topic in topics:
        amounts = ((TOPICS[names[topic]], 4), (TOPICS[rng.choice(names)], 1), (COMMON, 8))
        words = [word for source, amount in amounts for word in rng.choice(source.split(), amount)]
        texts.append(" ".join(rng.permutation(words)))
    return texts, np.array(names)[topics]


def main() -> None:
    """Spoil the labels of made-up texts, then find out what happened to them."""
    rng = np.random.default_rng(0)
    texts, topics = make_texts(2_000, rng)
    test_texts, test_topics = make_texts(1_000, rng)
    # Those who labelled took one in three texts on politics for science, and one in five on cooking for sport.
    names = sorted(TOPICS)
    flips = {"politics": {"science": 0.33}, "cooking": {"sport": 0.2}}
    noise = dualt.noise.asymmetric(flips, class_names=names)
    labels = dualt.noise.corrupt(topics, noise, random_state=1, class_names=names)

    model = make_pipeline(TfidfVectorizer(), LogisticRegression())
    robust = dualt.RobustClassifier(model).fit(texts, labels)
    estimate, issues = robust.transition_estimate_, robust.label_issues_
    print(f"{estimate.noise_rate:.1%} of the labels are wrong; in truth {(labels != topics).mean():.1%}.")
    for row, name in enumerate(names):
        print(f"  {name:9}", " ".join(f"{value:5.0%}" for value in estimate.transition[row]))

    found = (labels != topics)[issues.indices]
    print(f"{len(found)} labels flagged, {found.mean():.0%} of them truly wrong. The most suspect:")
    for row in issues.indices[:3]:
        print(f"  {labels[row]} -> {names[issues.suggested[row]]}: {texts[row]}")

    plain = model.fit(texts, labels).score(test_texts, test_topics)
    print(f"On clean test texts: plain {plain:.1%}, noise-aware {robust.score(test_texts, test_topics):.1%} right.")

    issues.to_report("texts-report.html", texts=texts, title="Texts")
    print("Look at them: texts-report.html")


if __name__ == "__main__":
    main()
