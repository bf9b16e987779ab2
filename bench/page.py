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

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
PAGES = [ROOT / "README.md", ROOT / "docs" / "benchmarks.md", ROOT / "docs" / "training.md"]
COMMANDS = {
    "estimate": "bench/estimate.py",
    "issues": "bench/issues.py",
    "coverage": "bench/coverage.py",
    "classifier": "bench/classifier.py",
    "training": "bench/training.py",
    "floor": "bench/floor.py --seeds 104 105",
    "scale": "bench/scale.py",
}
_PLACE = re.compile(r"(<!-- results: (\w+)(?:, (\d+) columns)? -->\n).*?(<!-- end -->)", re.DOTALL)
_ESTIMATOR = re.compile(r"^(\| `([\w-]+)`.*\| )[\d.*]+ \|$", re.MULTILINE)


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


def mean_errors() -> dict[str, str]:
    """Return the mean error of every estimator over all data, the best of those that know no clean label in bold."""
    head, _, *rows = table("floor")
    found = {row[0].split()[0]: row[head.index("all")].split()[0].lstrip("0") for row in rows}
    best = min((name for name in found if name != "oracle"), key=lambda name: float(found[name]))
    return {**found, best: f"**{found[best]}**"}


def filled(text: str) -> str:
    """Return the page with the results that are kept."""

    def results(place: re.Match[str]) -> str:
        opening, name, columns, closing = place.groups()
        if columns is None:
            return f"{opening}\n{kept(name)}\n{closing}"
        rows = [f"| {' | '.join(row[: int(columns)])} |\n" for row in table(name)]
        return f"{opening}\n{''.join(rows)}\n{closing}"

    errors = mean_errors()
    text = _PLACE.sub(results, text)
    return _ESTIMATOR.sub(lambda row: f"{row[1]}{errors[row[2]]} |" if row[2] in errors else row[0], text)


def main() -> None:
    for name in sys.argv[1:]:
        run(name)
    for page in PAGES:
        page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
