"""Put what the benchmarks printed into the pages, so that nobody types a figure.

    python bench/page.py estimate issues      run these benchmarks, keep what they print, and fill the pages
    python bench/page.py                      fill the pages with what is kept

What NAME printed is in bench/results/NAME.md. In a page it stands between `<!-- results: NAME -->` and `<!-- end -->`;
`<!-- results: NAME, 5 columns -->` takes the first columns of its first table.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import measure  # noqa: F401  - one thread, which the benchmarks inherit

from dualt.estimators import comparable

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
PAGES = [ROOT / "README.md", ROOT / "docs" / "benchmarks.md", ROOT / "docs" / "training.md"]
ESTIMATORS = comparable(n_classes=10)
COMMANDS = {
    "estimate": "bench/estimate.py",
    "threads": "bench/estimate.py --threads",
    "issues": "bench/issues.py",
    "coverage": "bench/coverage.py",
    "classifier": "bench/classifier.py",
    "training": "bench/training.py",
    "methods": "bench/methods.py",
    "floor": "bench/floor.py --seeds 104 105",
    "families": "bench/families.py",
    "several_models": "bench/several_models.py",
    "several_models_chosen": "bench/several_models.py --choose",
    "audit": "bench/audit.py",
    "votes": "bench/votes.py",
    "votes_choice": "bench/votes.py --choice",
    "audit_coverage": "bench/audit_coverage.py",
    "scale": "bench/scale.py",
    "files": "bench/scale.py --issues",
}
_PLACE = re.compile(r"(<!-- results: (\w+)(?:, (\d+) columns)? -->\n).*?(<!-- end -->)", re.DOTALL)
# A row of the README's table of estimators, which ends in one error per world.
_ESTIMATOR = re.compile(r"^(\| `([\w-]+)`.*?\|)(?: [\d.*–]+ \|){3}$", re.MULTILINE)


def run(name: str) -> None:
    """Run one benchmark, and keep what it prints under the command that was typed."""
    command = COMMANDS[name]
    printed: list[str] = []
    with subprocess.Popen([sys.executable, *command.split()], stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            printed.append(line.rstrip())
    if process.returncode:
        sys.exit(f"{command} failed: {RESULTS / name}.md stays as it was")
    text = f"`python {command}`: " + re.sub(r"\n{3,}", "\n\n", "\n".join(printed).strip())
    (RESULTS / f"{name}.md").write_text(f"{text}\n", encoding="utf-8")


def kept(name: str) -> str:
    """Return what is kept of a benchmark."""
    return (RESULTS / f"{name}.md").read_text(encoding="utf-8")


def table(name: str) -> list[list[str]]:
    """Return the cells of the first table of a benchmark."""
    lines = re.search(r"(?:^\|.*\n)+", kept(name), re.MULTILINE)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in (lines[0] if lines else "").splitlines()]


def errors_of(name: str, column: str) -> dict[str, str]:
    """Return a column of a benchmark by estimator, the best of those that know no clean label in bold."""
    head, _, *rows = table(name)
    if column not in head:
        return {}
    cells = {row[0].split()[0]: row[head.index(column)].split()[0] for row in rows}
    found = {estimator: cell.removeprefix("0") for estimator, cell in cells.items() if cell != "–"}
    best = min((estimator for estimator in found if estimator in ESTIMATORS), key=lambda own: float(found[own]))
    return {**found, best: f"**{found[best]}**"}


def worlds() -> list[dict[str, str]]:
    """Return the mean errors of every estimator where noise depends on the class, on the example, and on people."""
    return [errors_of("families", family) for family in ("ccn", "idn", "people")]


def filled(text: str) -> str:
    """Return the page with the results that are kept."""

    def results(place: re.Match[str]) -> str:
        opening, name, columns, closing = place.groups()
        if columns is None:
            return f"{opening}\n{kept(name)}\n{closing}"
        rows = [f"| {' | '.join(row[: int(columns)])} |\n" for row in table(name)]
        return f"{opening}\n{''.join(rows)}\n{closing}"

    errors = worlds()

    def means(row: re.Match[str]) -> str:
        return row[1] + "".join(f" {found.get(row[2], '–')} |" for found in errors)

    return _ESTIMATOR.sub(means, _PLACE.sub(results, text))


def main() -> None:
    for name in sys.argv[1:]:
        run(name)
    for page in PAGES:
        page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
