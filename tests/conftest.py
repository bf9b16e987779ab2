"""Settings of Hypothesis, the order of the tests, and fixtures that several tests share."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path
from unittest import mock

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import hypothesis
import pytest

# Few examples on a developer's machine, more with HYPOTHESIS_PROFILE=ci, as `make test-all` and .ci/run have it.
hypothesis.settings.register_profile("default", deadline=None, max_examples=20, print_blob=True)
hypothesis.settings.register_profile("ci", deadline=None, max_examples=60, print_blob=True)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

BROWSER_FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
# Every test in these folders starts processes or environments of its own.
SLOW_FOLDERS = ("examples", "faults", "release")
# These take longest and come first, so that none of them is left alone when the processes have done all others.
LONGEST = (
    "runs_the_tutorial", "everything_from_nothing", "what_it_shows[README", "what_it_shows[docs/reproduction",
    "what_it_shows[docs/howto/pytorch", "what_it_shows[docs/howto/no-prob", "what_it_shows[docs/cluster",
    "what_it_shows[docs/howto/crowd", "few_positives", "killed_at_random_moments", "sanitizer",
)  # fmt: skip


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark the tests of slow folders, before `-m "not slow"` chooses, and put the longest first."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and item.path.relative_to(here).parts[0] in SLOW_FOLDERS:
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: not any(name in item.nodeid for name in LONGEST))


@pytest.fixture
def own_registries():
    """Forget the estimators and methods that the test registers."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.dict("dualt.estimators.ESTIMATORS"))
        with contextlib.suppress(ModuleNotFoundError):
            stack.enter_context(mock.patch.dict("dualt.nn.methods.METHODS"))
        yield


@pytest.fixture(scope="session")
def browser():
    """A real Chromium for the page, or a skip that says why there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("no Chromium on this machine")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=program, args=BROWSER_FLAGS)
        yield chromium
        chromium.close()
