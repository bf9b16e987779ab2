"""What notebooks and pictures show is escaped, self-contained, and has the numbers."""

import re
import subprocess
import sys

import numpy as np
import pytest

import dualt

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402


def estimate_of(n_classes, names=None):
    clean = np.arange(60 * n_classes) % n_classes
    noise = dualt.noise.pair(n_classes, 0.3)
    given = dualt.noise.corrupt(clean, noise, random_state=0)
    return dualt.estimate_transition(noise[clean], given, class_names=names)


@pytest.mark.parametrize("n_classes", [3, 30])
def test_the_cells_are_those_of_the_noisiest_classes(n_classes):
    names = [f"c{place}" for place in range(n_classes)]
    estimate = estimate_of(n_classes, names)
    text = estimate._repr_html_()
    shown = np.sort(np.argsort(-estimate.noise_rates, kind="stable")[:20])
    for heading in ("row_heading", "col_heading"):
        assert re.findall(rf"{heading}[^>]*>([^<]*)<", text) == [names[place] for place in shown]
    cells = np.array(re.findall(r"<td[^>]*>([\d.]+)</td>", text), float).reshape(len(shown), -1)
    np.testing.assert_allclose(cells, 100 * estimate.transition[np.ix_(shown, shown)], atol=0.05)
    assert estimate.summary in text
    assert ("20 of 30 classes" in text) == (n_classes == 30)


def test_names_are_escaped_and_nothing_is_loaded_or_run():
    text = estimate_of(3, ["<script>alert(1)</script>", 'a" onmouseover="x', "ü&"])._repr_html_()
    assert "&lt;script&gt;" in text
    assert "a&#34; onmouseover=&#34;x" in text
    assert not re.search(r"<script|url\(|http|src=|onmouseover=\"", text)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    pyplot.close("all")


def test_the_heat_map_shows_every_entry_where_it_belongs():
    matrix = np.array([[0.9, 0.1, 0.0], [0.25, 0.7, 0.05], [0.0, 0.0, 1.0]])
    ax = dualt.plot_transition(matrix, ["cat", "dog", "fox"])
    np.testing.assert_array_equal(ax.images[0].get_array(), matrix)
    numbers = {text.get_position(): text.get_text() for text in ax.texts}
    assert numbers[(0, 1)] == "25"  # column 0 (given cat), row 1 (true dog)
    assert len(numbers) == 9
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["cat", "dog", "fox"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("given label", "true class")


@pytest.mark.parametrize("form", [lambda estimate: estimate, lambda estimate: estimate.to_frame()])
def test_the_heat_map_has_the_names_that_the_matrix_carries(form):
    axes = dualt.plot_transition(form(estimate_of(3, ["cat", "dog", "fox"])))
    assert [label.get_text() for label in axes.get_yticklabels()] == ["cat", "dog", "fox"]


def test_many_classes_get_no_numbers_and_no_names():
    ax = dualt.plot_transition(dualt.noise.symmetric(100, 0.2))
    assert not ax.texts
    assert "99" not in [tick.get_text() for tick in ax.get_yticklabels()]


def test_an_estimate_draws_itself_into_axes_of_ones_own():
    estimate = dualt.estimate_transition([[0.9, 0.1], [0.2, 0.8]] * 50, [0, 1] * 50)
    ax = pyplot.figure().subplots()
    assert estimate.plot(ax) is ax
    assert ax.get_title() == estimate.summary
    assert len(pyplot.get_fignums()) == 1


def test_an_absent_extra_is_named():
    code = (
        "import sys; sys.modules['matplotlib'] = None; import dualt\n"
        "estimate = dualt.estimate_transition([[.9, .1], [.2, .8]], [0, 1])\n"
        "try: estimate.plot()\nexcept dualt.errors.MissingExtraError as error: print(error)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.startswith("Drawing a transition matrix needs the extra")
