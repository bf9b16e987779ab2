"""Photographs as cameras make them, and kinds of images that browsers do not show, are made into small pictures."""

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


def test_a_photograph_is_made_smaller(tmp_path):
    noise(900, 1200).save(tmp_path / "0.png")
    kind, picture = shown(tmp_path)
    assert (kind, picture.size, picture.mode) == ("jpeg", (800, 600), "RGB")


@pytest.mark.parametrize("ending", ["bmp", "tiff", "ppm", "pgm", "tif", "png"])
@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_small_images_are_shown_pixel_by_pixel(tmp_path, ending, mode):
    image = noise(9, 7).convert(mode)
    image.save(tmp_path / f"0.{ending}")
    kind, picture = shown(tmp_path, f"0.{ending}")
    assert kind == "png"
    np.testing.assert_array_equal(np.asarray(picture.convert("RGB")), np.asarray(image.convert("RGB")))


def test_a_picture_is_turned_as_its_camera_was_held(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6  # a quarter turn
    noise(900, 1200).save(tmp_path / "0.png", exif=exif)
    assert shown(tmp_path)[1].size == (600, 800)


def test_a_page_of_many_pictures_has_smaller_ones(tmp_path, monkeypatch):
    monkeypatch.setattr("dualt.report.previews.TOTAL_LIMIT", 100_000)
    for number in range(10):
        noise(150, 150).save(tmp_path / f"{number}.png")
    many, few = (image_previews(tmp_path, range(number), n_samples=10).content for number in (10, 2))
    assert sum(map(len, many.values())) <= 100_000 * 4 / 3 + 1000  # in base64
    assert len(few[0]) > 1.5 * len(many[0])


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
