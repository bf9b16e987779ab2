"""What fuzzing found, each as its smallest case."""

import io
import json
import struct
import sys
import zipfile

import fuzz_samples as samples
import numpy as np
import pytest
from dualt.datasets.clothing1m import load_clothing1m
from fuzz_trial import limited

import dualt
from dualt import noise
from dualt.audit import read_audit
from dualt.datasets.images import LazyImages, image_size_and_mode
from dualt.datasets.table_files import load_table
from dualt.errors import DualtError, FileError, InputError, LabelsError
from dualt.io import load_labels, load_probabilities
from dualt.io.load import open_table
from dualt.io.shards import open_shards
from dualt.issues import Decision, apply_review
from dualt.report import image_previews
from dualt.reproduce.experiments import load_experiment, parse_change

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="time and memory are limited by Linux")


def refuses(error, match, function, *arguments, **options):
    """Expect an error of ours, under limits of time and memory."""
    with pytest.raises(error, match=match), limited():
        function(*arguments, **options)


@pytest.mark.parametrize("names", [5, None, 1.5])
def test_class_names_that_are_no_list(names, tmp_path):
    if names is not None:
        refuses(LabelsError, "list of class names", dualt.estimate_transition, [[0.9, 0.1]], [0], class_names=names)
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"transition": samples.MATRIX, "class_names": names or 7}))
    refuses(LabelsError, "list of class names", dualt.io.load_named_transition, path)


@pytest.mark.parametrize("value", [np.array([0.5, 0.1]), [1], "x", 1j, None])
def test_numbers_that_are_none(value):
    refuses(InputError, "rate", noise.symmetric, 3, value)
    refuses(InputError, "max_steps", dualt.clean_posterior, [[0.9, 0.1]], np.eye(2), max_steps=value)
    if value is not None:
        refuses(InputError, "top", dualt.find_label_issues, [[0.9, 0.1]], [0], np.eye(2), top=value)


def test_a_row_number_beyond_all_rows(tmp_path):
    (tmp_path / "audit.csv").write_text(f"index,given,true\n{'9' * 30},0,1\n")
    refuses(InputError, "row number", read_audit, tmp_path / "audit.csv")


def test_empty_lines_are_no_matter_for_a_warning(tmp_path):
    (tmp_path / "y.csv").write_text("label\n\n\n1\n\n0\n")
    assert load_labels(tmp_path / "y.csv").tolist() == [1, 0]


def test_a_header_that_claims_four_gigabytes(tmp_path):
    path = tmp_path / "p.npy"
    path.write_bytes(b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**32 - 1) + b"{'descr'")
    refuses(FileError, "header", load_probabilities, path)


def test_a_header_of_python_2_is_read_without_a_word(tmp_path):
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1L, 2L), }".ljust(117) + b"\n"
    numbers = np.array([0.5, 0.5]).tobytes()
    (tmp_path / "p.npy").write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + numbers)
    assert load_probabilities(tmp_path / "p.npy").values.tolist() == [[0.5, 0.5]]


def test_one_long_label_does_not_widen_all_others(tmp_path):
    """As an array of text, these 1.4 MB would take 400 GB."""
    for name in ("y.txt", "y.csv"):
        (tmp_path / name).write_text("cat\n" * 250_000 + "x" * 400_000 + "\n")
        refuses(LabelsError, "at most 1,000 characters", load_labels, tmp_path / name)


def test_brackets_and_digits_without_end():
    for text in ("x = " + "[" * 5_000, f"x = {'9' * 5_000}"):
        assert parse_change(text)[0] == "x"


def test_an_infinite_size():
    refuses(InputError, "sizes", load_experiment, "figure2", "smoke", {"sizes": [float("inf")]})


@pytest.mark.parametrize(
    "change",
    [
        {"n_networks": 10**12}, {"n_networks": 0}, {"input_shape": [10**12]},
        {"input_shape": [0]}, {"mean": [1.0, 2.0]}, {"mean": ["x"]}, {"mean": [1e300]},
        {"options": {"width": 10**9}}, {"options": {"depth": 3}}, {"class_names": ["a", "a", "b"]}, {"network": 3},
    ],
)  # fmt: skip
def test_a_model_that_promises_something_else(change, tmp_path):
    from dualt.nn.training.model import Model

    for name, content in samples.model_files().items():
        (tmp_path / name).write_bytes(content)
    content = json.loads(samples.model_files()["model.json"])
    (tmp_path / "model.json").write_text(json.dumps({**content, **change}))
    refuses(DualtError, None, Model.load, tmp_path)
    for name in change:
        del content[name]
    (tmp_path / "model.json").write_text(json.dumps(content))
    refuses(FileError, "as `dualt train` writes it", Model.load, tmp_path)


@pytest.mark.parametrize("column", ["loss", "epoch"])
def test_a_checkpoint_whose_history_is_none(column, tmp_path):
    content, path = samples.checkpoint(), tmp_path / "c.safetensors"
    name = f'\\"{column}\\"'.encode()
    assert name in content
    path.write_bytes(content.replace(name, name[:2] + b"x" + name[3:]))
    refuses(FileError, "history", samples.state().resume, path, {"epochs": 3})


def test_a_checkpoint_whose_optimizer_lacks_something(tmp_path):
    path = tmp_path / "c.safetensors"
    for old, new in ((b"optimizer.0.step", b"optimizer.0.stop"), (b"optimizer.0.step", b"optimizer.9.step")):
        path.write_bytes(samples.checkpoint().replace(old, new))
        refuses(FileError, "damaged", samples.state().resume, path, {"epochs": 3})


def test_report_images_with_a_damaged_header(tmp_path):
    (tmp_path / "x.npy").write_bytes(samples.npy(samples.IMAGES).replace(b")", b" "))
    refuses(FileError, "damaged", image_previews, tmp_path / "x.npy", range(5), n_samples=5)


@pytest.mark.parametrize("side", [9_000, 15_000, 60_000])
def test_an_image_that_promises_more_pixels_than_it_can_hold(side, tmp_path):
    from PIL import Image

    small, path = io.BytesIO(), tmp_path / "x.bmp"
    Image.new("RGB", (8, 8)).save(small, "BMP")
    path.write_bytes(small.getvalue()[:18] + struct.pack("<ii", side, side) + small.getvalue()[26:])
    refuses(FileError, r"pixels", image_size_and_mode, path)


@pytest.mark.parametrize("label", ["1e300", "nan", "-inf", "1e19"])
def test_a_number_that_is_no_class(label, tmp_path):
    (tmp_path / "d.csv").write_text(f"a,label\n1,0\n2,1\n3,{label}\n")
    if label == "nan":
        refuses(LabelsError, "a label", load_table, tmp_path / "d.csv")
    else:
        assert load_table(tmp_path / "d.csv").class_names[-1] in (label, "1")  # a code, which stays text
    review = [Decision(0, "0", "1", line=2)]
    if label != "nan":  # a missing label stays missing
        refuses(LabelsError, "class number", apply_review, np.array([0.0, 1.0, float(label)]), review)


@pytest.mark.parametrize("kind", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_members_that_are_not_deflated(kind, tmp_path):
    with zipfile.ZipFile(tmp_path / "p.npz", "w", kind) as archive:
        archive.writestr("probs.npy", samples.npy(samples.PROBS))
    refuses(FileError, "NumPy does not write", load_probabilities, tmp_path / "p.npz")


def test_an_old_name_of_a_type(tmp_path):
    """NumPy advises against `a3`, its former name of `S3`."""
    content = samples.npy(np.array([b"cat", b"dog"])).replace(b"'|S3'", b"'|a3'")
    (tmp_path / "labels.npy").write_bytes(content)
    with zipfile.ZipFile(tmp_path / "labels.npz", "w") as archive:
        archive.writestr("labels.npy", content)
    for name in ("labels.npy", "labels.npz"):
        assert load_labels(tmp_path / name).tolist() == [b"cat", b"dog"]


def test_a_shard_whose_pages_are_damaged(tmp_path):
    """Its description is whole, so the damage shows only when a column is decoded."""
    content = bytearray(samples.parquet(**dict(zip("abc", samples.PROBS.T, strict=True)), label=samples.LABELS))
    content[4:40] = b"\xff" * 36
    for place in range(40, len(content) // 3, 7):
        content[place] ^= 0xFF
    (tmp_path / "1.parquet").write_bytes(content)
    with pytest.raises(FileError, match=r"1\.parquet"):
        for _ in open_shards(tmp_path, label="label").blocks[0].read():
            pass


def test_a_label_of_five_thousand_digits(tmp_path):
    (tmp_path / "clothing1M").mkdir()
    for part in ("noisy_train", "clean_test"):
        (tmp_path / "clothing1M" / f"{part}_key_list.txt").write_text("images/a.png\n")
    (tmp_path / "clothing1M" / "noisy_label_kv.txt").write_text(f"images/a.png {'9' * 5_000}\n")
    refuses(FileError, "class from 0 to 13", load_clothing1m, tmp_path)


@pytest.mark.parametrize("place", ["label", "a"])
def test_a_column_of_parquet_that_ends_the_process(place, tmp_path):
    """A histogram of one level where there are two: nothing catches what Arrow throws if Python asks for the column."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path, labels = tmp_path / "0.parquet", np.array([0, 1, 1, 0])
    pq.write_table(pa.table({"a": [0.9, 0.2, 0.3, 0.4], "b": [0.1, 0.8, 0.7, 0.6], "label": labels}), path)
    whole = path.read_bytes()
    start, two, one = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little"), b"\x19\x26\x00\x08", b"\x19\x16\x08"
    parts = whole[start:-8].split(two)
    assert len(parts) == 4
    footer = parts[0] + b"".join(
        (one if name == place else two) + part for name, part in zip(("a", "b", "label"), parts[1:], strict=True)
    )
    path.write_bytes(whole[:start] + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    if place == "label":
        refuses(FileError, "histogram", open_shards, tmp_path, label="label")
    else:
        new = (tmp_path / "new.parquet", labels[::-1], path, load_labels(path, column="label"))
        refuses(FileError, "histogram", dualt.io.save_corrected, *new, column="label")


def test_a_number_of_a_text_that_is_none_of_the_different_ones(tmp_path):
    """The description of the page of different texts says that there are fewer."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "y.parquet"
    pq.write_table(pa.table({"label": ["a", "b", "c"] * 8}), path, compression="none")
    column, whole = pq.ParquetFile(path).metadata.row_group(0).column(0), path.read_bytes()
    n_refused = 0
    for place in range(column.dictionary_page_offset, column.data_page_offset):
        for byte in (2, 4):
            path.write_bytes(whole[:place] + bytes([byte]) + whole[place + 1 :])
            try:
                assert len(load_labels(path)) == len(open_table(path).read_texts(0)) == 24
            except DualtError:
                n_refused += 1
    assert n_refused


def test_a_chunk_of_an_image_that_claims_gigabytes(tmp_path):
    """Pillow skips what is left of the chunk by reading it."""
    image = pytest.importorskip("PIL.Image")
    path = tmp_path / "x.png"
    image.fromarray(np.zeros((4, 4), np.uint8)).save(path)
    content = bytearray(path.read_bytes())
    length = content.index(b"IDAT") - 4
    content[length : length + 4] = (2**32 - 16).to_bytes(4, "big")
    path.write_bytes(content)
    with limited():
        assert not LazyImages([path], (4, 4), mode="L")[0].any()


@pytest.mark.parametrize("text", [".epochs=3", "network.=lenet", "a..b=1", " . =1"])
def test_a_setting_without_a_name(text):
    refuses(InputError, "Expected field=value", parse_change, text)
