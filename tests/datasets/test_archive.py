"""Unpacking: honest archives come out whole, hostile ones not at all outside their folder."""

import io
import stat
import tarfile
import zipfile

import pytest

from dualt.datasets.archive import extract
from dualt.errors import FileError


def tar_of(path, *members):
    """Write a tar of (name, content) pairs, or of ready-made TarInfo objects."""
    with tarfile.open(path, "w:gz") as tar:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                tar.addfile(member)
                continue
            name, content = member
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


def zip_of(path, *members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name, content in members:
            zipped.writestr(name, content)
    return path


def entry(name, kind, target=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


FILES = (("data/a.bin", b"a" * 3_000_000), ("data/deep/b.bin", b""), ("c.txt", b"c"))


@pytest.mark.parametrize(("make", "name"), [(tar_of, "x.tar.gz"), (zip_of, "x.zip")])
def test_an_honest_archive_comes_out_whole(tmp_path, make, name):
    extract(make(tmp_path / name, *FILES), tmp_path / "out")
    found = {str(p.relative_to(tmp_path / "out")): p.read_bytes() for p in (tmp_path / "out").rglob("*") if p.is_file()}
    assert found == dict(FILES)


def test_folders_of_an_archive_are_no_trouble(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as zipped:
        zipped.mkdir("data") if hasattr(zipped, "mkdir") else zipped.writestr("data/", "")
        zipped.writestr("data/a", "a")
    extract(tmp_path / "x.zip", tmp_path / "zip")
    extract(tar_of(tmp_path / "x.tar.gz", entry("data", tarfile.DIRTYPE), ("data/a", b"a")), tmp_path / "tar")
    assert (tmp_path / "zip/data/a").read_text() == (tmp_path / "tar/data/a").read_text() == "a"


@pytest.mark.parametrize("name", ["../evil", "/tmp/dualt-evil", "data/../../evil", "..\\evil"])
@pytest.mark.parametrize(("make", "archive"), [(tar_of, "x.tar.gz"), (zip_of, "x.zip")])
def test_a_path_that_leads_out_is_refused(tmp_path, make, archive, name):
    (tmp_path / "in").mkdir()
    path = make(tmp_path / "in" / archive, (name, b"evil"))
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


def test_a_link_in_a_zip_is_refused(tmp_path):
    info = zipfile.ZipInfo("link")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    with pytest.raises(FileError, match="link or device 'link'"):
        extract(zip_of(tmp_path / "x.zip", (info, "/etc")), tmp_path / "out")


@pytest.mark.parametrize(("make", "name"), [(tar_of, "bomb.tar.gz"), (zip_of, "bomb.zip")])
def test_a_bomb_is_stopped(tmp_path, make, name):
    bomb = make(tmp_path / name, *((f"{i}", bytes(1 << 20)) for i in range(8)))
    assert bomb.stat().st_size < 100_000
    with pytest.raises(FileError, match="at most 3,000,000 bytes of files, got more"):
        extract(bomb, tmp_path / "out", max_bytes=3_000_000)
    assert sum(p.stat().st_size for p in (tmp_path / "out").iterdir()) <= 3_000_000


def test_a_name_twice_is_refused(tmp_path):
    with pytest.raises(FileError, match="exists"):
        extract(tar_of(tmp_path / "x.tar.gz", ("a", b"1"), ("a", b"2")), tmp_path / "out")


@pytest.mark.parametrize(("make", "name"), [(tar_of, "cut.tar.gz"), (zip_of, "cut.zip")])
def test_a_cut_archive_is_refused(tmp_path, make, name):
    path = make(tmp_path / name, *FILES)
    path.write_bytes(path.read_bytes()[:-60])
    with pytest.raises(FileError, match=name):
        extract(path, tmp_path / "out")
