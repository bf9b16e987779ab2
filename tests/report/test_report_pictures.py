"""Photographs as cameras make them, and kinds of images that browsers do not show, are made smaller for the page."""

import base64
import io

import numpy as np
import pytest
from PIL import Image

from dualt.errors import FileError
from dualt.report import image_previews

RNG = np.random.default_rng(0)


def shown(folder, file="0.png"):
    """Return the kind and the picture that a page shows of the only file of a folder."""
    previews = image_previews(folder, [0], n_samples=1, ids=[file])
    head, _, body = previews.content[0].partition(",")
    return head.removeprefix("data:image/").removesuffix(";base64"), Image.open(io.BytesIO(base64.b64decode(body)))


def noise(height, width, channels=3):
    return Image.fromarray(RNG.integers(0, 256, (height, width, channels), dtype=np.uint8))


def test_a_photograph_above_two_megabytes_is_made_smaller(tmp_path):
    noise(900, 1200).save(tmp_path / "0.png")
    assert (tmp_path / "0.png").stat().st_size > 2 * 2**20
    kind, picture = shown(tmp_path)
    assert (kind, picture.size, picture.mode) == ("jpeg", (800, 600), "RGB")


@pytest.mark.parametrize("ending", ["bmp", "tiff", "ppm", "pgm", "tif"])
@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_other_kinds_of_images_are_shown_pixel_by_pixel(tmp_path, ending, mode):
    image = noise(9, 7).convert(mode)
    image.save(tmp_path / f"0.{ending}")
    kind, picture = shown(tmp_path, f"0.{ending}")
    assert kind == "png"
    np.testing.assert_array_equal(np.asarray(picture), np.asarray(image.convert("RGB")))


def test_a_picture_is_turned_as_its_camera_was_held(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6  # a quarter turn
    noise(900, 1200).save(tmp_path / "0.png", exif=exif)
    assert shown(tmp_path)[1].size == (600, 800)


def test_a_page_of_many_pictures_has_smaller_ones(tmp_path, monkeypatch):
    monkeypatch.setattr("dualt.report.previews.TOTAL_LIMIT", 200_000)
    for number in range(10):
        noise(150, 150).save(tmp_path / f"{number}.png")
    previews = image_previews(tmp_path, range(10), n_samples=10)
    assert {uri[:15] for uri in previews.content.values()} == {"data:image/jpeg"}
    assert sum(map(len, previews.content.values())) <= 200_000
    few = image_previews(tmp_path, range(2), n_samples=10)
    assert {uri[:14] for uri in few.content.values()} == {"data:image/png"}


def test_a_file_that_is_cut_off_or_a_bomb_is_one_clear_error(tmp_path, monkeypatch):
    noise(1000, 1000).save(tmp_path / "0.bmp")
    whole = (tmp_path / "0.bmp").read_bytes()
    (tmp_path / "0.bmp").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FileError, match=r"Cannot read the image .*0\.bmp: .*truncated.*Replace or remove it"):
        shown(tmp_path, "0.bmp")
    (tmp_path / "0.bmp").write_bytes(whole)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)
    with pytest.raises(FileError, match=r"0\.bmp: .*decompression bomb"):
        shown(tmp_path, "0.bmp")
