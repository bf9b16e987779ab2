"""The picture of the whole: from data to corrected data, or to a classifier. Plain SVG, which loads nothing."""

from __future__ import annotations

from html import escape
from typing import NamedTuple

_WIDTH, _HEIGHT = 780, 318
_BOX, _TALL = 168, 84
_LEFT = (8, 206, 404, 602)
_FILLS = {"in": "#e8f0fe", "work": "#fdf0e3", "you": "#e4f5ec"}
_STYLE = """text{font-family:system-ui,"Segoe UI",Helvetica,Arial,sans-serif;fill:#1b2430}
.name{font-size:13.5px;font-weight:600}.what{font-size:11px}
.where{font-size:11px;font-family:ui-monospace,Menlo,Consolas,monospace;fill:#4a5560}
rect{stroke:#7d838c}path{stroke:#7d838c;stroke-width:2;fill:none;marker-end:url(#head)}"""

_HEAD = (
    '<marker id="head" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="6" markerHeight="6" orient="auto">'
    '<path d="M0 0L8 4L0 8Z" style="fill:#7d838c;stroke:none"/></marker>'
)


class Box(NamedTuple):
    """A box: where it stands, its kind, its name, what happens there in two lines, and where in the code."""

    column: int
    top: int
    kind: str
    name: str
    what: tuple[str, ...]
    where: str = ""


BOXES = (
    Box(0, 92, "in", "Data and labels", ("texts, a table, images;", "some labels are wrong"), "io/"),
    Box(1, 92, "work", "Probabilities", ("several models that err", "differently, out of fold"), "crossfit/"),
    Box(2, 92, "work", "Matrix T", ("how labels were changed,", "what may be claimed"), "estimators/ results/"),
    Box(3, 92, "work", "Wrong labels", ("probably wrong, doubtful;", "with a suggestion"), "issues/"),
    Box(3, 222, "you", "Review", ("a page in the browser:", "you decide"), "report/"),
    Box(2, 222, "in", "Corrected data", ("the same table,", "those labels changed"), "dualt apply-review"),
    Box(1, 222, "work", "Training", ("on corrected labels, or", "on noisy ones through T"), "classifier.py nn/"),
    Box(0, 222, "in", "A classifier", ("that does well in spite", "of the noise"), "dualt predict"),
    Box(1, 8, "in", "Your own models", ("any probabilities",)),
    Box(2, 8, "you", "An audit", ("a few labels, checked",), "audit/"),
    Box(3, 8, "in", "Several annotators", ("people, rules, models",), "votes/"),
)
# Right to the next column, down, left, and from the matrix down to training.
ARROWS = (
    "M176 134H202", "M374 134H400", "M572 134H598", "M686 176V218", "M602 264H576", "M404 264H378", "M206 264H180",
    "M430 176L366 219", "M290 64V88", "M488 64V88", "M630 64L560 89",
)  # fmt: skip


def svg() -> str:
    """Return the picture."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">',
        "<title>From data and labels to corrected data, or to a classifier</title>",
        f"<style>{_STYLE}</style>",
        f"<defs>{_HEAD}</defs>",
        *(f'<path d="{arrow}"/>' for arrow in ARROWS),
        *(_drawn(box) for box in BOXES),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _drawn(box: Box) -> str:
    left, small = _LEFT[box.column], box.top < 20
    lines = [("name", box.name), *(("what", line) for line in box.what)]
    lines += [("where", box.where)] if box.where and not small else []
    height = 56 if small else _TALL
    texts = [
        f'<text class="{kind}" x="{left + 12}" y="{box.top + (22 if small else 20) + 18 * place}">{escape(line)}</text>'
        for place, (kind, line) in enumerate(lines)
    ]
    fill = _FILLS[box.kind]
    return "".join([f'<rect x="{left}" y="{box.top}" width="{_BOX}" height="{height}" rx="8" fill="{fill}"/>', *texts])
