"""Put what a run printed into docs/reliability.md: `python tests/fill_page.py kills OUTPUT`."""

from __future__ import annotations

import sys
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "reliability.md"


def fill(text: str, name: str, outputs: list[str]) -> str:
    """Return a page with these outputs between the marks of that name."""
    start, end = (f"<!-- {name}: {place} -->" for place in ("begin", "end"))
    before, _, rest = text.partition(start)
    _, found, after = rest.partition(end)
    if not found:
        raise ValueError(f"Expected the marks {start} and {end} in the page, got none.")
    content = "\n\n".join(output.strip() for output in outputs)
    return f"{before}{start}\n{content}\n{end}{after}"


if __name__ == "__main__":
    name, *files = sys.argv[1:]
    PAGE.write_text(fill(PAGE.read_text(encoding="utf-8"), name, [Path(file).read_text() for file in files]))
