"""Make the picture of the review page: the digits of `dualt demo`, a few labels decided, in a headless Chromium.

python docs/review_page.py     writes docs/review-page.png
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright
from typer.testing import CliRunner

from dualt.cli import app
from dualt.files import atomic_write

_FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]


def screenshot(page: Page) -> bytes:
    """Return the list to review after four decisions, as PNG."""
    for key in "aaxa":
        page.keyboard.press(key)
    page.evaluate("document.activeElement.blur()")
    title, desk = page.locator("#suspects-title").bounding_box(), page.locator("#suspects .desk").bounding_box()
    if title is None or desk is None:
        raise RuntimeError("The page has no list to review.")
    top, bottom = title["y"] - 16, desk["y"] + desk["height"] + 16
    return page.screenshot(clip={"x": 20, "y": top, "width": 1060, "height": bottom - top})


def main() -> None:
    """Write the demo's page, open it and take the picture."""
    target = Path(__file__).resolve().parent / "review-page.png"
    program = shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        os.chdir(folder)
        ran = CliRunner().invoke(app, ["demo"])
        if ran.exit_code:
            raise RuntimeError(ran.output)
        browser = driver.chromium.launch(executable_path=program, args=_FLAGS)
        page = browser.new_page(viewport={"width": 1100, "height": 5000}, color_scheme="light")
        page.goto((Path(folder) / "demo-report.html").as_uri())
        picture = screenshot(page)
        browser.close()
    with atomic_write(target, "wb") as stream:
        stream.write(picture)


if __name__ == "__main__":
    main()
