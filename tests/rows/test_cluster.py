"""Processes of a cluster that is started here, and Ctrl-C."""

import os
import signal
import subprocess
import sys
import time

import pytest

from dualt.rows.cluster import _interrupts_held

pytest.importorskip("distributed")
psutil = pytest.importorskip("psutil")
pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals to a group of processes")


PROGRAM = """
import signal, time
from dualt.rows.cluster import connected
if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with connected("local"):
            time.sleep(60)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


def wait_for_workers(pid):
    """Return once the two processes have begun to start, which takes them a second or two."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        children = psutil.Process(pid).children()
        if sum("spawn_main" in " ".join(child.cmdline()) for child in children) >= 2:
            return
        time.sleep(0.02)
    pytest.fail("no workers were started")


def test_processes_that_are_started_here_do_not_get_an_interrupt(tmp_path):
    """A terminal sends Ctrl-C to the whole group; only the process that started the others says so, in its own way."""
    (tmp_path / "program.py").write_text(PROGRAM)
    process = subprocess.Popen(
        [sys.executable, tmp_path / "program.py"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    wait_for_workers(process.pid)
    time.sleep(0.3)
    os.killpg(process.pid, signal.SIGINT)
    said, complaints = process.communicate(timeout=60)
    assert (said, complaints, process.returncode) == ("interrupted\n", "", 0)


def test_an_interrupt_while_processes_start_comes_when_they_have():
    reached = []

    def start():
        with _interrupts_held():
            signal.raise_signal(signal.SIGINT)
            reached.append("the end")

    with pytest.raises(KeyboardInterrupt):
        start()
    assert reached == ["the end"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
