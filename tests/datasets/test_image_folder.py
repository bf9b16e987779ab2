"""A folder of images with a class per folder."""

import numpy as np
import pytest
from PIL import Image

from dualt.datasets import LazyImages, load_dataset
from dualt.errors import FileError, InputError


def save(path, pixels):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.asarray(pixels, np.uint8)).save(path)


def test_classes_are_sorted_and_images_stay_as_they_are(tmp_path):
    rng = np.random.default_rng(0)
    pixels = {
        name: rng.integers(256, size=(5, 7, 3)) for name in ("dog/1.png", "cat/b.png", "cat/a.png", "cat/deep/c.PNG")
    }
    for name, image in pixels.items():
        save(tmp_path / "pets" / name, image)
    (tmp_path / "pets/cat/notes.txt").write_text("not an image")
    (tmp_path / "pets/.hidden").mkdir()
    data = load_dataset(tmp_path / "pets")
    assert data.name == "pets"
    assert data.class_names == ("cat", "dog")
    assert data.train_y.tolist() == [0, 0, 0, 1]
    assert data.test_x is None
    assert data.train_x.shape == (4, 3, 5, 7)
    for image, name in zip(data.train_x, ("cat/a.png", "cat/b.png", "cat/deep/c.PNG", "dog/1.png"), strict=True):
        np.testing.assert_array_equal(image, pixels[name].transpose(2, 0, 1))


def test_files_come_in_the_order_of_torchvision(tmp_path):
    for name, value in {"a/10": 2, "a/2": 3, "a/1": 1, "a/0/3": 4, "b/1": 5}.items():
        save(tmp_path / f"{name}.png", np.full((4, 4), value))
    assert load_dataset(tmp_path).train_x[:, 0, 0].tolist() == [1, 2, 3, 4, 5]


def test_grey_images_have_no_channels_and_test_is_found(tmp_path):
    for part, n in (("train", 2), ("test", 1)):
        for i in range(n):
            for name, value in (("no", 10), ("yes", 200)):
                save(tmp_path / part / name / f"{i}.png", np.full((4, 4), value))
    data = load_dataset(tmp_path)
    assert data.train_x.shape == (4, 4, 4)
    assert data.test_x[:, 0, 0].tolist() == [10, 200]
    assert data.test_y.tolist() == [0, 1]


@pytest.mark.parametrize("content", [b"", b"no image"])
def test_a_broken_image_is_named(tmp_path, content):
    save(tmp_path / "a" / "1.png", np.zeros((4, 4)))
    save(tmp_path / "b" / "1.png", np.zeros((4, 4)))
    (tmp_path / "b" / "1.png").write_bytes(content)
    with pytest.raises(FileError, match=r"Cannot read .*1\.png") as raised:
        load_dataset(tmp_path)
    assert "object at" not in str(raised.value)


def test_mixed_sizes_need_a_size_and_are_cropped_square(tmp_path):
    wide = np.zeros((10, 30, 3))
    wide[:, 10:20] = 255
    save(tmp_path / "a" / "wide.png", wide)
    save(tmp_path / "b" / "tall.png", wide.transpose(1, 0, 2))
    save(tmp_path / "b" / "grey.png", np.full((8, 8), 255))
    with pytest.raises(InputError, match=r"one size, got 30×10 .* and 8×8 .*Pass a size"):
        load_dataset(tmp_path)
    images = load_dataset(tmp_path, size=4).train_x
    assert images.shape == (3, 3, 4, 4)
    # The white third is what the central square shows, but for the resampling at its edge.
    assert (images > 200).all()


def test_more_than_fits_is_decoded_lazily(tmp_path, monkeypatch):
    for name in "ab":
        save(tmp_path / name / "1.png", np.full((4, 4), 7))
    eager = load_dataset(tmp_path).train_x
    monkeypatch.setattr("dualt.datasets.images._IN_MEMORY_BYTES", 31)
    lazy = load_dataset(tmp_path)
    assert isinstance(lazy.train_x, LazyImages)
    np.testing.assert_array_equal(lazy.train_x[:], eager)
    assert lazy.moments[0] == pytest.approx(7)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda root: None, "a folder per class, at least two, .*got 0"),
        (lambda root: save(root / "only" / "1.png", np.zeros((2, 2))), "at least two.*got 1"),
        (lambda root: [(root / name).mkdir() for name in "ab"], "Expected images"),
        (lambda root: [(root / name).mkdir() for name in "ab"] + [(root / "a/x.png").write_bytes(b"no")], r"x\.png"),
        (
            lambda root: [save(root / name / "1.png", np.zeros((2, 2))) for name in ("train/a", "train/b", "test/c")],
            "classes of the training part in .*test, got 'c'",
        ),
    ],
)
def test_bad_folders_are_refused(tmp_path, make, message):
    make(tmp_path)
    with pytest.raises(FileError, match=message):
        load_dataset(tmp_path)
