"""The folder of a run: what is finished stays until something newer is there."""

from __future__ import annotations

import json

import pytest

from dualt.errors import FileError, InputError
from dualt.nn.training.folder import held_folder

ASKED = {"method": "gce", "augment": None}


@pytest.fixture
def finished(tmp_path):
    """A folder as a finished run leaves it."""
    with held_folder(tmp_path, ASKED, resume=False, overwrite=False):
        (tmp_path / "checkpoints" / "gce.safetensors").write_text("old")
        for name in ("model.json", "weights.safetensors", "report.html"):
            (tmp_path / name).write_text("old")
        (tmp_path / "run.json").write_text('{"asked_method": "gce", "network": "mlp"}')
    return tmp_path


def files(folder):
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_a_run_that_fails_before_its_first_checkpoint_leaves_the_old_one_whole(finished):
    before = files(finished)
    with pytest.raises(ZeroDivisionError), held_folder(finished, {"method": "ce"}, resume=False, overwrite=True):
        raise ZeroDivisionError
    assert files(finished) == before


def test_results_stay_until_they_are_written_over(finished):
    with held_folder(finished, {"method": "ce"}, resume=False, overwrite=True):
        (finished / "checkpoints" / "ce.safetensors").write_text("new")
    found = files(finished)
    assert found["model.json"] == found["weights.safetensors"] == "old"
    assert sorted(name for name in found if "/" in name) == ["checkpoints/asked.json", "checkpoints/ce.safetensors"]


@pytest.mark.parametrize("n_new", [0, 1])
def test_what_a_killed_process_leaves_is_put_right(finished, n_new):
    """Killed, it runs no `finally`: the old checkpoints are still aside."""
    before = files(finished)
    (finished / "checkpoints").rename(finished / ".checkpoints-replaced")
    (finished / "checkpoints").mkdir()
    if n_new:
        (finished / "checkpoints" / "ce.safetensors").write_text("new")
    with pytest.raises(InputError, match="There is a run"), held_folder(finished, ASKED, resume=False, overwrite=False):
        pass
    found = files(finished)
    assert found["model.json"] == "old"
    if n_new:
        assert [name for name in found if "/" in name] == ["checkpoints/ce.safetensors"]
    else:
        assert found == before


def test_a_folder_in_which_nothing_was_trained_is_free(tmp_path):
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), held_folder(tmp_path, ASKED, resume=False, overwrite=False):
            raise ZeroDivisionError


def test_a_run_is_resumed_as_it_was_asked_for(finished):
    with held_folder(finished, ASKED, resume=True, overwrite=False):
        pass
    other = {"method": "gce", "augment": "shift"}
    refused = held_folder(finished, other, resume=True, overwrite=False)
    with pytest.raises(InputError, match="was started with augment None, not 'shift'"), refused:
        pass
    assert json.loads((finished / "checkpoints" / "asked.json").read_text()) == ASKED
    (finished / "checkpoints" / "asked.json").unlink()  # as of an earlier version
    refused = held_folder(finished, {"method": "ce"}, resume=True, overwrite=False)
    with pytest.raises(InputError, match="was started with method 'gce', not 'ce'"), refused:
        pass


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "data.csv").touch()
    held = held_folder(tmp_path / "data.csv", ASKED, resume=False, overwrite=False)
    with pytest.raises(FileError, match="Expected the name of a folder, got the file"), held:
        pass
