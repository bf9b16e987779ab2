"""Unpacking: honest archives come out whole, hostile ones not at all outside their folder."""

import io
import tarfile

import pytest

from dualt.datasets.archive import extract
from dualt.errors import FileError


def tar_of(path, *members):
    """Write a tar of (name, content) pairs, or of ready-made TarInfo objects."""
    with tarfile.open(path, "w" if path.suffix == ".tar" else "w:gz") as tar:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                tar.addfile(member)
                continue
            name, content = member
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


def entry(name, kind, target=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


FILES = (("data/a.bin", b"a" * 3_000_000), ("data/deep/b.bin", b""), ("c.txt", b"c"))


@pytest.mark.parametrize("name", ["x.tar.gz", "x.tgz", "x.tar"])
def test_an_honest_archive_comes_out_whole(tmp_path, name):
    extract(tar_of(tmp_path / name, *FILES), tmp_path / "out")
    found = {str(p.relative_to(tmp_path / "out")): p.read_bytes() for p in (tmp_path / "out").rglob("*") if p.is_file()}
    assert found == dict(FILES)


def test_folders_of_an_archive_are_no_trouble(tmp_path):
    extract(tar_of(tmp_path / "x.tar.gz", entry("data", tarfile.DIRTYPE), ("data/a", b"a")), tmp_path / "out")
    assert (tmp_path / "out/data/a").read_text() == "a"


@pytest.mark.parametrize("name", ["../evil", "/tmp/dualt-evil", "data/../../evil", "..\\evil"])
def test_a_path_that_leads_out_is_refused(tmp_path, name):
    (tmp_path / "in").mkdir()
    path = tar_of(tmp_path / "in" / "x.tar.gz", (name, b"evil"))
    with pytest.raises(FileError, match=r"Refused .*expected paths inside"):
        extract(path, tmp_path / "in" / "out")
    assert not list(tmp_path.rglob("*evil*"))


@pytest.mark.parametrize(
    "member",
    [
        entry("data/link", tarfile.SYMTYPE, "../../outside"),
        entry("data/link", tarfile.SYMTYPE, "a.bin"),
        entry("data/link", tarfile.LNKTYPE, "/etc/passwd"),
        entry("data/pipe", tarfile.FIFOTYPE),
        entry("data/device", tarfile.CHRTYPE),
        entry("data/disk", tarfile.BLKTYPE),
    ],
    ids=lambda member: f"{member.name}-{member.linkname}",
)
def test_links_and_devices_in_a_tar_are_refused(tmp_path, member):
    path = tar_of(tmp_path / "x.tar", member, ("data/link/through", b"evil"))
    with pytest.raises(FileError, match=r"Refused .*link or device 'data/"):
        extract(path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_bomb_is_stopped(tmp_path):
    bomb = tar_of(tmp_path / "bomb.tar.gz", *((f"{i}", bytes(1 << 20)) for i in range(8)))
    assert bomb.stat().st_size < 100_000
    with pytest.raises(FileError, match="at most 3,000,000 bytes of files, got more"):
        extract(bomb, tmp_path / "out", max_bytes=3_000_000)
    assert sum(p.stat().st_size for p in (tmp_path / "out").iterdir()) <= 3_000_000


def test_a_name_twice_is_refused(tmp_path):
    with pytest.raises(FileError, match="exists"):
        extract(tar_of(tmp_path / "x.tar.gz", ("a", b"1"), ("a", b"2")), tmp_path / "out")


def test_a_cut_archive_is_refused(tmp_path):
    path = tar_of(tmp_path / "cut.tar.gz", *FILES)
    path.write_bytes(path.read_bytes()[:-60])
    with pytest.raises(FileError, match=r"cut\.tar\.gz"):
        extract(path, tmp_path / "out")
