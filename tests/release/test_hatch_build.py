"""The library is compiled if it can be, and a wheel without it is as good."""

import importlib.util
import shutil
from pathlib import Path

import pytest

pytest.importorskip("hatchling")
ROOT = Path(__file__).parents[2]
SOURCES = [path for ending in ("*.c", "*.h") for path in (ROOT / "src" / "dualt" / "kernels").glob(ending)]


@pytest.fixture
def hook():
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def folder(tmp_path):
    kernels = tmp_path / "src" / "dualt" / "kernels"
    kernels.mkdir(parents=True)
    for path in SOURCES:
        shutil.copy(path, kernels)
    return kernels


@pytest.fixture
def one_file(folder):
    """The same folder with the smallest of the sources, which is soon compiled."""
    for path in folder.glob("*.c"):
        if path.name != "version.c":
            path.unlink()
    return folder


def build(hook, root, target="wheel"):
    """Return what the hook tells the builder."""
    data = {"artifacts": [], "pure_python": True}
    hook.CompileKernels(str(root), {}, None, None, "", target).initialize("standard", data)
    return data


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_with_a_compiler_the_wheel_has_the_library(hook, folder):
    data = build(hook, folder.parents[2])
    assert (folder / "compiled.so").stat().st_size > 0
    assert sorted(path.name for path in folder.iterdir()) == sorted([*(path.name for path in SOURCES), "compiled.so"])
    assert data["artifacts"] == ["src/dualt/kernels/compiled.so"]
    assert not data["pure_python"]
    assert data["tag"].startswith("py3-none-")


@pytest.mark.parametrize(
    ("compiler", "told"),
    [("no-such-compiler", "no-such-compiler: No such file"), ("false", "false failed with 1: it said nothing")],
)
def test_without_a_compiler_the_wheel_is_pure_and_that_is_told_in_a_line(
    hook, folder, monkeypatch, capfd, compiler, told
):
    monkeypatch.setenv("CC", compiler)
    monkeypatch.delenv("DUALT_KERNELS", raising=False)
    (folder / "compiled.so").write_text("an old one")
    assert build(hook, folder.parents[2]) == {"artifacts": [], "pure_python": True}
    assert not (folder / "compiled.so").exists()
    (line,) = capfd.readouterr().err.splitlines()
    assert told in line
    assert line.endswith("NumPy does their work, more slowly.")
    monkeypatch.setenv("DUALT_KERNELS", "require")
    with pytest.raises(RuntimeError, match="DUALT_KERNELS=require"):
        build(hook, folder.parents[2])


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_an_error_in_the_source_is_told_with_its_place(hook, one_file, capfd, monkeypatch):
    monkeypatch.delenv("DUALT_KERNELS", raising=False)
    (one_file / "version.c").write_text("int f(void) { return missing; }\n")
    assert not hook.compiled(one_file)
    (line,) = capfd.readouterr().err.splitlines()
    assert "version.c:1:" in line


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_a_compiler_may_come_with_arguments(hook, one_file, monkeypatch):
    """As in CC="ccache gcc"."""
    monkeypatch.setenv("CC", "env cc -g0")
    assert hook.compiled(one_file)


def test_a_source_archive_has_no_library(hook, folder):
    assert build(hook, folder.parents[2], "sdist") == {"artifacts": [], "pure_python": True}
    assert not (folder / "compiled.so").exists()
