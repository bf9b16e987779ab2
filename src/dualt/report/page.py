"""One self-contained page: the finding, the pictures behind it, and a list to review."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from dualt import __version__
from dualt.files import atomic_write
from dualt.report import words
from dualt.report.data import ReportData
from dualt.report.payload import confusions, payload, script_json
from dualt.transition import l1_error

_STYLES = ("base.css", "pictures.css", "review.css", "print.css")
_SCRIPTS = (
    "dom.js",
    "theme.js",
    "heatmap.js",
    "bars.js",
    "csv.js",
    "store.js",
    "scroller.js",
    "sieve.js",
    "card.js",
    "review.js",
    "main.js",
)


def write_report(path: str | Path, data: ReportData) -> None:
    """Write the page to `path`, whole or not at all."""
    page = render_report(data)
    with atomic_write(path) as stream:
        stream.write(page)


def render_report(data: ReportData) -> str:
    """Return the page: one HTML document that needs no network and no other file.

    Its policy allows only the style and the script that are in it, by their hashes, and images that are
    in it: a class name or a text that managed to become markup could still not run or load anything.
    """
    content = payload(data)
    numbers = script_json(content)
    style, script = _joined(_STYLES), _script()
    template = _environment().get_template("page.html")
    page = template.render(
        data=data,
        style=Markup(style),  # noqa: S704
        script=Markup(script),  # noqa: S704
        numbers=Markup(numbers),  # noqa: S704
        policy=_policy(style, script),
        digest=hashlib.sha256(numbers.encode("utf-8", "replace")).hexdigest()[:16],
        verdict=words.verdict(data),
        hardest_hit=words.hardest_hit(data),
        level=f"{100 * data.level:g}%",
        facts=words.facts(data),
        confusions=confusions(data),
        n_shown=len(content["matrix"]["classes"]),
        distances=[l1_error(method.transition, data.transition, normalize=True) for method in data.methods],
        version=__version__,
    )
    # A lone surrogate in a class name has no UTF-8 form.
    return page.encode("utf-8", "replace").decode("utf-8")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("dualt.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(percent=words.percent, count=words.count, class_name=words.class_name)
    environment.globals["percent_range"] = words.percent_range
    return environment


@cache
def _joined(names: tuple[str, ...]) -> str:
    folder = files("dualt.report") / "templates"
    return "\n".join((folder / name).read_text(encoding="utf-8") for name in names)


def _script() -> str:
    return f'(() => {{\n"use strict";\n{_joined(_SCRIPTS)}}})();\n'


def _policy(style: str, script: str) -> str:
    return (
        f"default-src 'none'; script-src {_source(script)}; style-src {_source(style)}; img-src data:;"
        " base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
    )


def _source(content: str) -> str:
    digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode("ascii")
    return f"'sha256-{digest}'"
