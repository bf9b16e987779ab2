"""Pictures show the numbers they are made of."""

import subprocess
import sys

import numpy as np
import pytest

import dualt
from dualt.results.readings import finding

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402


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


def test_many_classes_get_no_numbers_and_no_names():
    ax = dualt.plot_transition(dualt.noise.symmetric(100, 0.2))
    assert not ax.texts
    assert "99" not in [tick.get_text() for tick in ax.get_yticklabels()]


def test_an_estimate_draws_itself_into_axes_of_ones_own():
    estimate = dualt.estimate_transition([[0.9, 0.1], [0.2, 0.8]] * 50, [0, 1] * 50)
    ax = pyplot.figure().subplots()
    assert estimate.plot(ax) is ax
    assert ax.get_title() == finding(estimate)
    assert len(pyplot.get_fignums()) == 1


@pytest.mark.parametrize(
    ("module", "use", "message"),
    [
        ("matplotlib", "estimate.plot()", "Drawing a transition matrix needs the extra [plot]"),
        ("pandas", "estimate.to_frame()", "A data frame needs the extra [tables]"),
    ],
)
def test_an_absent_extra_is_named(module, use, message):
    code = (
        f"import sys; sys.modules['{module}'] = None; import dualt\n"
        "estimate = dualt.estimate_transition([[.9, .1], [.2, .8]], [0, 1])\n"
        f"try: {use}\nexcept dualt.errors.MissingExtraError as error: print(error)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.startswith(message)
