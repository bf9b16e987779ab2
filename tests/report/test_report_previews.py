"""What a row looks like on the page: texts, arrays, files of any kind as small pictures that browsers show."""

import base64
import io

import numpy as np
import pytest
from PIL import Image
from report_samples import report, texts

from dualt.errors import FileError, InputError
from dualt.report import image_previews, render_report

RNG = np.random.default_rng(0)


def decoded(uri):
    head, _, body = uri.partition(",")
    return head, base64.b64decode(body)


def picture(kind, shape=(5, 4), colour=(10, 20, 30)):
    buffer = io.BytesIO()
    Image.new("RGB", shape, colour).save(buffer, kind)
    return buffer.getvalue()


def test_texts_of_all_rows_are_shown_for_those_listed():
    arguments = report(4)
    given = texts(4)
    expected = render_report(**arguments | {"texts": given})
    for each in (tuple(given), np.array(given)):
        assert render_report(**arguments | {"texts": each}) == expected
    with pytest.raises(InputError, match=r"12 texts.*got 11"):
        render_report(**arguments | {"texts": given[1:]})
    with pytest.raises(InputError, match="got both"):
        render_report(**arguments | {"texts": given, "images": np.zeros((12, 4, 4), np.uint8)})


@pytest.mark.parametrize("shape", [(6, 5, 4), (6, 5, 4, 1), (6, 5, 4, 3)])
def test_arrays_become_thumbnails_of_the_listed_rows(tmp_path, shape):
    pixels = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    np.save(tmp_path / "images.npy", pixels)
    for source in (pixels, tmp_path / "images.npy", str(tmp_path / "images.npy")):
        previews = image_previews(source, [4, 1], n_samples=6)
        assert len(previews["previews"]) == 2
        head, body = decoded(previews["previews"][0])
        assert head == "data:image/png;base64"
        with Image.open(io.BytesIO(body)) as image:
            np.testing.assert_array_equal(np.asarray(image), pixels[4].squeeze())


@pytest.mark.parametrize(
    ("pixels", "message"),
    [
        (np.zeros((5, 4, 4), np.uint8), "6 images, one per label, got 5"),
        (np.zeros((6, 4, 4)), "uint8 .* got float64"),
        (np.zeros((6, 3, 4, 4), np.uint8), "channels last"),
        (np.zeros((6, 16), np.uint8), "shape"),
        (np.zeros((6, 0, 4), np.uint8), "shape"),
    ],
)
def test_other_arrays_are_refused(pixels, message):
    with pytest.raises(InputError, match=message):
        image_previews(pixels, [0], n_samples=6)


def test_files_of_a_folder_are_shown_by_their_names(tmp_path):
    for name, kind in [("b", "JPEG"), ("a", "PNG"), ("d", "WEBP"), ("c", "GIF")]:
        (tmp_path / name).write_bytes(picture(kind))
    (tmp_path / ".hidden").write_text("not an image")
    previews = image_previews(tmp_path, range(4), n_samples=4, ids=["d", "a", "c", "b"])
    assert {uri[:15] for uri in previews["previews"]} == {"data:image/png;"}
    assert previews["files"] == ["d", "a", "c", "b"]
    assert previews["pixelated"]
    (tmp_path / "e").write_bytes(picture("PNG", shape=(5, 80)))
    assert not image_previews(tmp_path, [0, 1], n_samples=2, ids=["a", "e"])["pixelated"]


def fill(folder, names):
    """Write a picture of its own colour per name, and return the colours."""
    for place, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(picture("PNG", colour=(place, 0, 0)))
    return {name: (place, 0, 0) for place, name in enumerate(names)}


def colours(previews):
    return [Image.open(io.BytesIO(decoded(uri)[1])).getpixel((0, 0)) for uri in previews["previews"]]


@pytest.mark.parametrize(
    ("names", "ids"),
    [
        (["b.png", "a.png", "c.png"], ["b", "a", "c"]),
        (["b.png", "a.png", "c.png"], ["b.png", "a.png", "c.png"]),
        (["cat/2.png", "dog/2.png", "cat/1.png"], ["cat/2.png", "dog/2.png", "cat/1.png"]),
        (["x.v1.png", "x.v2.png", "x.v3.png"], ["x.v1", "x.v2", "x.v3"]),
        (["10.png", "9.png", "2.png"], [10, 9, 2]),
    ],
)
def test_a_picture_belongs_to_the_row_of_its_name(tmp_path, names, ids):
    pictures = fill(tmp_path, names)
    fill(tmp_path, ["zz.png"])
    previews = image_previews(tmp_path, [2, 0], n_samples=3, ids=ids)
    assert colours(previews) == [pictures[names[2]], pictures[names[0]]]
    assert previews["files"] == [names[2], names[0]]


@pytest.mark.parametrize(
    "names", [["b.png", "a.png"], ["cat/0.png", "cat/x.png"], ["0.png"], ["0.png", "1.png", "2.png"]]
)
def test_without_ids_files_are_named_by_rows(tmp_path, names):
    fill(tmp_path, names)
    with pytest.raises(InputError, match=r"2 image files in .*got \d, the first .*\(ids\)"):
        image_previews(tmp_path, [0], n_samples=2)


def test_an_id_without_a_file_or_with_two_is_refused(tmp_path):
    fill(tmp_path, ["cat/1.png", "dog/1.png"])
    with pytest.raises(InputError, match=r"row 1, 'cat/2\.png', got no file"):
        image_previews(tmp_path, [0], n_samples=2, ids=["cat/1.png", "cat/2.png"])
    with pytest.raises(InputError, match=r"row 0, '1', got cat/1\.png and dog/1\.png"):
        image_previews(tmp_path, [0], n_samples=2, ids=["1", "1"])


@pytest.mark.parametrize(
    "content", [b"", b"hello", b"<svg onload='alert(1)'/>", b"RIFF1234WAVE", b"%!PS-Adobe-3.0 EPSF"]
)
def test_what_is_no_image_is_refused(tmp_path, content):
    (tmp_path / "0.png").write_bytes(content)
    with pytest.raises(FileError, match=r"0\.png: .*Replace or remove"):
        image_previews(tmp_path, [0], n_samples=1)


def test_long_texts_are_cut():
    arguments = report(4)
    page = render_report(**arguments | {"texts": ["x" * 5000] * len(arguments["issues"])})
    assert f'"{"x" * 1999}…"' in page
    assert "x" * 2000 not in page


def shown(folder, file="0.png"):
    """Return the kind and the picture that a page shows of the only file of a folder."""
    head, body = decoded(image_previews(folder, [0], n_samples=1, ids=[file])["previews"][0])
    return head.removeprefix("data:image/").removesuffix(";base64"), Image.open(io.BytesIO(body))


def noise(height, width, channels=3):
    return Image.fromarray(RNG.integers(0, 256, (height, width, channels), dtype=np.uint8))


@pytest.mark.parametrize("ending", ["bmp", "tiff", "ppm", "pgm", "tif", "png"])
@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_small_images_are_shown_pixel_by_pixel(tmp_path, ending, mode):
    image = noise(9, 7).convert(mode)
    image.save(tmp_path / f"0.{ending}")
    kind, picture = shown(tmp_path, f"0.{ending}")
    assert kind == "png"
    np.testing.assert_array_equal(np.asarray(picture.convert("RGB")), np.asarray(image.convert("RGB")))


def test_a_photograph_is_made_smaller_and_turned_as_its_camera_was_held(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6  # a quarter turn
    noise(900, 1200).save(tmp_path / "0.png", exif=exif)
    kind, picture = shown(tmp_path)
    assert (kind, picture.size, picture.mode) == ("jpeg", (600, 800), "RGB")


def test_a_page_of_many_pictures_has_smaller_ones(tmp_path, monkeypatch):
    monkeypatch.setattr("dualt.report.previews.TOTAL_LIMIT", 100_000)
    for number in range(10):
        noise(150, 150).save(tmp_path / f"{number}.png")
    many, few = (image_previews(tmp_path, range(number), n_samples=10)["previews"] for number in (10, 2))
    assert sum(map(len, many)) <= 100_000 * 4 / 3 + 1000  # in base64
    assert len(few[0]) > 1.5 * len(many[0])


def test_a_file_that_is_cut_off_or_a_bomb_is_one_clear_error(tmp_path, monkeypatch):
    noise(1000, 1000).save(tmp_path / "0.bmp")
    whole = (tmp_path / "0.bmp").read_bytes()
    (tmp_path / "0.bmp").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FileError, match=r"0\.bmp: .*truncated.*Replace or remove"):
        shown(tmp_path, "0.bmp")
    (tmp_path / "0.bmp").write_bytes(whole)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)
    with pytest.raises(FileError, match=r"0\.bmp: .*decompression bomb"):
        shown(tmp_path, "0.bmp")
