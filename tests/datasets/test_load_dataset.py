"""Names, paths, roots and options."""

from pathlib import Path

import pytest

from dualt.datasets import REGISTRY, data_root, load_dataset
from dualt.errors import FileError, InputError, UnknownNameError


def test_an_unknown_name_gets_the_nearest_and_all():
    with pytest.raises(UnknownNameError, match=r"'mnits'\. Did you mean 'mnist'\? Known: synthetic, digits, mnist"):
        load_dataset("mnits")


def test_a_folder_with_the_name_of_a_data_set_is_not_read_unsaid(tmp_path, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "digits").mkdir()
    assert load_dataset("digits").n_classes == 10
    assert caplog.messages == ["'digits' is the data set of that name. For the folder, pass './digits'."]


def test_a_file_of_another_kind_is_refused(tmp_path):
    (tmp_path / "data.xlsx").write_bytes(b"")
    with pytest.raises(FileError, match=r"\.npz, \.csv, .*got .*data\.xlsx"):
        load_dataset(tmp_path / "data.xlsx")


def test_an_option_that_is_not_taken_is_refused():
    with pytest.raises(InputError, match=r"'label' for 'synthetic'.*n_samples, n_test"):
        load_dataset("synthetic", label="x")
    with pytest.raises(InputError, match="'size' for 'digits': it takes none"):
        load_dataset("digits", size=3)


def test_the_root_is_the_variable_then_the_cache(monkeypatch):
    monkeypatch.setenv("DUALT_DATA", "/from/variable")
    assert data_root() == Path("/from/variable")
    monkeypatch.delenv("DUALT_DATA")
    monkeypatch.setenv("HOME", "/home/me")
    assert data_root() == Path("/home/me/.cache/dualt")


def test_presence_is_that_of_the_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("DUALT_DATA", str(tmp_path))
    assert REGISTRY["digits"].is_present()
    assert not REGISTRY["cifar10"].is_present()
    (tmp_path / "cifar-10-batches-bin").mkdir()
    assert REGISTRY["cifar10"].is_present()
