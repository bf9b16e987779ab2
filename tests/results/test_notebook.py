"""What a notebook shows is escaped, self-contained, and has the numbers."""

import re
from html.parser import HTMLParser

import numpy as np

import dualt
from dualt.results.notebook import coverage


class Table(HTMLParser):
    """Collects tags, attributes and the text of cells."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.cells, self.open = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]
        self.open.append(tag)
        if tag == "td":
            self.cells.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "td":
            self.cells[-1] += data


def estimate_of(n_classes, names=None):
    clean = np.arange(60 * n_classes) % n_classes
    noise = dualt.noise.pair(n_classes, 0.3)
    given = dualt.noise.corrupt(clean, noise, random_state=0)
    return dualt.estimate_transition(noise[clean], given, class_names=names)


def test_the_cells_are_the_matrix_and_the_noise_rates():
    estimate = estimate_of(3)
    page = Table(estimate._repr_html_())
    assert not page.open
    rows = np.array(page.cells).reshape(3, 4)
    for place, row in enumerate(rows):
        assert list(row[:3]) == [f"{100 * value:.1f}" for value in estimate.transition[place]]
        assert row[3] == f"{estimate.noise_rates[place]:.1%}"
    assert f"{estimate.noise_rate:.1%} of the labels are wrong" in estimate._repr_html_()


def test_names_are_escaped_and_nothing_is_loaded_or_run():
    text = estimate_of(3, ["<script>alert(1)</script>", 'a" onmouseover="x', "ü&"])._repr_html_()
    page = Table(text)
    assert set(page.tags) <= {"div", "p", "b", "table", "caption", "tr", "th", "td", "ul", "li"}
    assert set(page.attributes) <= {"style", "scope"}
    assert not re.search(r"url\(|http|src=", text)


def test_colours_are_tints_so_that_dark_pages_stay_readable():
    text = estimate_of(3)._repr_html_()
    assert set(re.findall(r"color: ([^;\"]+)", text)) == {"inherit"}
    assert max(float(alpha) for alpha in re.findall(r"rgba\(59, 130, 246, ([\d.]+)\)", text)) <= 0.6


def test_of_many_classes_the_noisiest_are_shown():
    estimate = estimate_of(30)
    page = Table(estimate._repr_html_())
    rows = np.array(page.cells).reshape(20, 21)
    shown = sorted(rows[:, -1], key=lambda rate: float(rate[:-1]))
    noisiest = np.sort(estimate.noise_rates)[-20:]
    assert shown == [f"{rate:.1%}" for rate in noisiest]
    assert "20 of 30 classes" in estimate._repr_html_()


def test_what_the_ranges_cover_depends_on_what_they_come_from():
    rng = np.random.default_rng(0)
    clean = np.arange(300) % 3
    given = dualt.noise.corrupt(clean, dualt.noise.pair(3, 0.3), random_state=0)
    probs = np.eye(3)[clean] * 0.8 + rng.dirichlet(np.ones(3), 300) * 0.2
    rows = rng.choice(300, 100, replace=False)
    verified = dualt.estimate_transition(probs, given, verified=(rows, clean[rows]))
    said = [coverage(dualt.estimate_transition(probs, given, name)) for name in ("clean-count", "spade")]
    assert all("show only in checked labels: dualt audit" in words for words in said)
    assert "cover chance and what else these data can mean; they do not cover poor" in said[0]
    assert "cover chance; they do not cover noise that depends on the example or poor" in said[1]
    assert "hold whatever the classifier gets wrong" in coverage(verified)
