"""Reports opened in a real Chromium."""

import pytest

from dualt.report import write_report


@pytest.fixture
def open_report(browser, tmp_path):
    """Open a report in a fresh profile; whatever the test does, nothing may fail or leave the page."""
    complaints, requests, contexts = [], [], []

    def open_page(arguments, **settings):
        path = tmp_path / "report.html"
        write_report(path, **arguments)
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **settings})
        contexts.append(context)
        context.set_default_timeout(10_000)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(f"dialog {dialog.message}"))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(path.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []
    assert [url[:80] for url in requests if not url.startswith(("file:", "data:", "blob:"))] == []
