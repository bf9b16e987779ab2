"""Make the pictures: the terminal output of `dualt estimate`, the picture of the whole, and those of the explanations.

python docs/pictures.py        writes docs/estimate.svg and docs/pictures/
"""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import explained
import growth
import overview
import real_labels
from rich.console import Console
from rich.terminal_theme import MONOKAI
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dualt
from dualt.cli.terminal import show_estimate
from dualt.crossfit import out_of_fold_probabilities
from dualt.files import atomic_write

# Rich's own template without its web font: the picture loads nothing.
_TEMPLATE = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace;
font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>{lines}</defs>
<rect width="{width}" height="{height}" rx="8" fill="#191a1c"/>
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}<g class="{unique_id}-matrix">{matrix}</g></g></svg>
"""


def terminal() -> str:
    """Estimate from digits with a known noise, and return what the terminal shows, as SVG."""
    features, clean = load_digits(return_X_y=True)
    noisy = dualt.noise.corrupt(clean, dualt.noise.pair(10, 0.3), random_state=0)
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.01))
    probs = out_of_fold_probabilities(model, features, noisy)
    console = Console(
        record=True, width=108, force_terminal=True, color_system="truecolor", highlight=False, file=StringIO()
    )
    console.print("[bold]$ dualt estimate probs.npy labels.npy[/]")
    show_estimate(console, dualt.estimate_transition(probs, noisy))
    return console.export_svg(title="", code_format=_TEMPLATE, theme=MONOKAI, unique_id="dualt")


def main() -> None:
    """Write them all."""
    with atomic_write(Path(__file__).parent / "estimate.svg") as stream:
        stream.write(terminal())
    with atomic_write(explained.FOLDER / "overview.svg") as stream:
        stream.write(overview.svg())
    explained.draw_all((*explained.PICTURES, *real_labels.PICTURES, *growth.PICTURES))


if __name__ == "__main__":
    main()
