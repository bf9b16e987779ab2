"""What the journeys share: commands, and decisions in a real browser."""

import pytest

from tests.cli import commands


@pytest.fixture(autouse=True)
def _apart(tmp_path, monkeypatch):
    """Work in an empty folder."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run():
    """Return what types a command, which must succeed."""
    return commands.run


@pytest.fixture
def decide(browser, tmp_path):
    """Return what opens a page, chooses the true class of the listed examples, and downloads the review."""

    def decided(name, truth_of_row):
        context = browser.new_context(accept_downloads=True, viewport={"width": 1280, "height": 900})
        page = context.new_page()
        page.goto((tmp_path / name).as_uri())
        for _ in range(int(page.locator(".actions progress").get_attribute("max"))):
            row = int(page.locator("#suspects .card .head span").first.inner_text().removeprefix("Example "))
            names = page.locator("#suspects .card [aria-label='Choose a class'] button bdi")
            names.nth(names.all_inner_texts().index(truth_of_row(row))).click()
        with page.expect_download() as waiting:
            page.get_by_role("button", name="Download corrected labels").click()
        path = tmp_path / waiting.value.suggested_filename
        waiting.value.save_as(path)
        context.close()
        return path.name

    return decided
