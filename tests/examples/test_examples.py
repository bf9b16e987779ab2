"""Every example runs from top to bottom, shows that it helps, and leaves something to look at."""

import contextlib
import re
import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent.parent / "examples"
NEEDS = {
    "pytorch_loop": ["torch", "matplotlib"],
    "own_method": ["torch", "matplotlib"],
    "own_estimator": ["matplotlib"],
    "dask_cluster": ["distributed", "pandas", "pyarrow"],
}
LEFT_BEHIND = {
    "text_classification": "texts-report.html",
    "pytorch_loop": "pytorch-loop.png",
    "review_labels": "review.html",
    "own_estimator": "own-estimator.png",
    "own_method": "own-method.png",
    "dask_cluster": None,
}


def run(name, tmp_path, monkeypatch, capsys):
    for module in NEEDS.get(name, []):
        pytest.importorskip(module)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.setattr("sys.argv", [name])
    runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
    with contextlib.suppress(ModuleNotFoundError):
        from matplotlib import pyplot

        pyplot.close("all")
    return capsys.readouterr().out


def test_every_example_is_here():
    assert {path.stem for path in FOLDER.glob("*.py")} == LEFT_BEHIND.keys()


# What the printed numbers must satisfy: (pattern, relation of its numbers).
SHOWN = {
    "text_classification": (r"plain ([\d.]+)%, noise-aware ([\d.]+)%", lambda plain, robust: robust > plain),
    "pytorch_loop": (r"CrossEntropyLoss: ([\d.]+)%.*\n.*ForwardLoss: ([\d.]+)%", lambda ce, forward: forward > ce + 5),
    "review_labels": (r"(\d+) of 1,797 .* after a review of 100 of them (\d+)", lambda wrong, left: left < wrong - 50),
    "own_estimator": (r"margin-count .* off by ([\d.]+) .*\nspade .* off by ([\d.]+)", lambda own, spade: own < spade),
    "own_method": (r"^ce: ([\d.]+)%.*\nown-gce: ([\d.]+)%", lambda ce, gce: gce > ce > 70),
    "dask_cluster": (r"([\d.]+)% of 200,000 .* off by ([\d.]+)", lambda rate, off: 24 < rate < 26 and off < 0.05),
}


@pytest.mark.usefixtures("own_registries")
@pytest.mark.parametrize("name", LEFT_BEHIND)
def test_an_example_runs_and_shows_that_it_helps(name, tmp_path, monkeypatch, capsys):
    printed = run(name, tmp_path, monkeypatch, capsys)
    pattern, holds = SHOWN[name]
    numbers = [float(number) for number in re.search(pattern, printed).groups()]
    assert holds(*numbers), printed
    if LEFT_BEHIND[name]:
        assert LEFT_BEHIND[name] in printed
        assert (tmp_path / LEFT_BEHIND[name]).stat().st_size > 5_000
