"""Commands killed at random moments leave nothing half-written, lose nothing and mix no runs; `kills.py` tries more."""

import pytest
from kills import COMMANDS, kill_many

pytest.importorskip("torch")
pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", COMMANDS)
def test_killed_at_random_moments(name):
    found = kill_many(name, 3, seed=0)
    assert found.bad == []
    assert found.kills - found.late == 3
