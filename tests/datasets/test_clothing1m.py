"""Clothing1M in its authors' layout, with images drawn here."""

import numpy as np
import pytest
from PIL import Image

from dualt.datasets import LazyImages, load_dataset, split_dataset
from dualt.errors import FileError, InputError, UnknownNameError


def write_clothing1m(root, noisy=6, clean=3):
    folder = root / "clothing1M"
    for part, n, kind in (("noisy_train", noisy, "noisy"), ("clean_test", clean, "clean")):
        keys = [f"images/{i % 2}/0{i}/{part},{i}.png" for i in range(n)]
        for i, key in enumerate(keys):
            (folder / key).parent.mkdir(parents=True, exist_ok=True)
            # A wide picture: red left third, green centre, blue right third; brightness tells which one.
            pixels = np.zeros((100, 300, 3), np.uint8)
            for channel in range(3):
                pixels[:, 100 * channel : 100 * (channel + 1), channel] = 100 + i
            Image.fromarray(pixels).save(folder / key)
        (folder / f"{part}_key_list.txt").write_text("\n".join(keys))
        # More labels than keys, in another order, as in the original.
        labels = [f"{key} {i % 14}\n" for i, key in enumerate(keys)]
        (folder / f"{kind}_label_kv.txt").write_text("".join([*labels[::-1], "images/9/99/other.jpg 13\n"]))
    return folder


def test_loads_noisy_training_and_clean_test_labels(tmp_path):
    write_clothing1m(tmp_path)
    data = load_dataset("clothing1m", tmp_path)
    assert data.noisy
    assert data.n_classes == 14
    assert data.train_y.tolist() == [0, 1, 2, 3, 4, 5]
    assert data.test_y.tolist() == [0, 1, 2]
    assert isinstance(data.train_x, LazyImages)
    assert data.train_x.shape == (6, 3, 224, 224)


def test_images_are_resized_and_cropped_from_the_centre(tmp_path):
    write_clothing1m(tmp_path)
    images = load_dataset("clothing1m", tmp_path).train_x
    batch = images[np.array([4, 1])]
    assert batch.shape == (2, 3, 224, 224)
    assert batch.dtype == np.uint8
    # 300×100 becomes 768×256; the central 224 columns lie within the green third (256 to 512).
    for image, brightness in zip(batch, (104, 101), strict=True):
        np.testing.assert_array_equal(image[1], brightness)
        np.testing.assert_array_equal(image[[0, 2]], 0)


def test_indexing_is_that_of_an_array(tmp_path):
    write_clothing1m(tmp_path)
    images = load_dataset("clothing1m", tmp_path).train_x
    everything = images[:]
    assert (everything.shape, everything.ndim, everything.dtype) == (images.shape, images.ndim, images.dtype)
    assert everything.nbytes == images.nbytes
    for rows in (slice(1, 5, 2), np.array([5, 0, 0]), [2], np.arange(6) > 3, 3, np.int64(2), slice(0, 0)):
        np.testing.assert_array_equal(images[rows], everything[rows])
    np.testing.assert_array_equal(images.subset([4, 2])[:], everything[[4, 2]])


def test_a_split_decodes_nothing_and_knows_no_clean_labels(tmp_path):
    folder = write_clothing1m(tmp_path)
    data = load_dataset("clothing1m", tmp_path)
    for path in folder.glob("images/**/*.png"):
        path.unlink()
    split = split_dataset(data)
    assert len(split.train_x) + len(split.val_x) == 6
    assert split.train_clean is None
    assert split.val_clean is None
    with pytest.raises(FileError, match=r"Cannot read the image .*noisy_train"):
        split.train_x[:1]
    with pytest.raises(InputError, match="noisy already"):
        split_dataset(data, np.eye(14))


def test_other_parts_can_be_chosen(tmp_path):
    write_clothing1m(tmp_path)
    data = load_dataset("clothing1m", tmp_path, train="clean_test", test="noisy_train")
    assert not data.noisy
    assert len(data.train_y) == 3
    with pytest.raises(UnknownNameError, match=r"clean_tset.*Did you mean 'clean_test'"):
        load_dataset("clothing1m", tmp_path, train="clean_tset")


def test_a_missing_data_set_says_how_to_get_it(tmp_path):
    with pytest.raises(FileError, match=r"clothing1M/noisy_train_key_list\.txt.*dualt data get clothing1m"):
        load_dataset("clothing1m", tmp_path)


@pytest.mark.parametrize("key", ["../../etc/passwd.jpg", "/etc/passwd.jpg", "images/../../x.jpg", "..\\x.jpg"])
def test_a_key_that_leads_out_is_refused(tmp_path, key):
    folder = write_clothing1m(tmp_path)
    (folder / "noisy_train_key_list.txt").write_text(f"{key}\n")
    (folder / "noisy_label_kv.txt").write_text(f"{key} 3\n")
    with pytest.raises(FileError, match=r"Refused .*key_list\.txt: expected paths inside"):
        load_dataset("clothing1m", tmp_path)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("noisy_label_kv.txt", "images/a.jpg 14\n", "class from 0 to 13 in line 1 of .*got 'images/a.jpg 14'"),
        ("noisy_label_kv.txt", "images/a.jpg 1\nimages/b.jpg\n", "line 2"),
        ("noisy_label_kv.txt", "images/a.jpg one\n", "line 1"),
        ("noisy_label_kv.txt", "images/a.jpg 1\n", "got none for 'images/0/00/noisy_train,0.png'"),
        ("noisy_train_key_list.txt", "", "one image per line"),
        ("noisy_train_key_list.txt", b"\xff\xfe\x00", "Cannot read"),
    ],
)
def test_bad_lists_are_refused(tmp_path, file, content, message):
    folder = write_clothing1m(tmp_path)
    (folder / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(FileError, match=message):
        load_dataset("clothing1m", tmp_path)
