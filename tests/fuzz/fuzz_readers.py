"""Every reader of files: valid files to start from, and a call that reads one and checks what it got."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import fuzz_reading as reading
import fuzz_samples as samples
import numpy as np
from fuzz_containers import (
    Inside,
    inside_gzip,
    inside_npy_header,
    inside_png,
    inside_safetensors,
    inside_zip,
)

from dualt import io
from dualt.datasets.published import load_cifar10, load_clothing1m, read_idx
from dualt.datasets.table_files import load_npz, load_table
from dualt.io.cells import guard_cell
from dualt.report import image_previews, text_previews

Files = dict[str, bytes]


@dataclass(frozen=True)
class Reader:
    """A format: `read` is given the path of a mutated file called `file`, with the files `beside` it."""

    file: str
    seeds: Callable[[], list[bytes]]
    read: Callable[[Path], object]
    inside: Inside | None = None
    beside: Callable[[], Files] = field(default=dict)


def _preset_seeds() -> list[bytes]:
    from importlib.resources import files

    return [(files("dualt.reproduce") / "presets" / f"{name}.toml").read_bytes() for name in ("figure2", "table1")]


def _table_rows(delimiter: str = ",") -> list[bytes]:
    named = [
        [*samples.NAMES, "label"],
        *([*row, label] for row, label in zip(samples.PROBS, samples.LABELS, strict=True)),
    ]
    bare = samples.PROBS.tolist()
    return [
        samples.csv(named, delimiter),
        samples.csv(bare, delimiter),
        samples.csv([[1], [0], [2]]),
        b'label\n"a"\nb\n',
    ]


def _parquet_seeds() -> list[bytes]:
    columns = dict(zip("abc", samples.PROBS.T, strict=True))
    return [samples.parquet(**columns), samples.parquet(label=samples.LABELS), samples.parquet(label=list("abca"))]


def _npy_seeds() -> list[bytes]:
    arrays = (
        samples.PROBS,
        samples.PROBS.astype(">f4"),
        np.asfortranarray(samples.PROBS),
        samples.LABELS,
        samples.NAMES,
    )
    return [samples.npy(array) for array in arrays]


def _clothing_files() -> Files:
    keys = b"images/a.png\nimages/b.png\n"
    lists = {f"clothing1M/{part}_key_list.txt": keys for part in ("noisy_train", "clean_test")}
    kv = {f"clothing1M/{part}_label_kv.txt": b"images/a.png 3\nimages/b.png 13\n" for part in ("noisy", "clean")}
    picture = samples.image("PNG")
    return {**lists, **kv, "clothing1M/images/a.png": picture, "clothing1M/images/b.png": picture}


def _cifar_batches(folder: str, content: Callable[[], bytes]) -> Callable[[], Files]:
    suffix = ".bin" if folder.endswith("bin") else ""
    return lambda: {f"{folder}/data_batch_{i}{suffix}": content() for i in range(1, 6)}


def _shard() -> bytes:
    return samples.parquet(**dict(zip("abc", samples.PROBS.T, strict=True)), label=samples.LABELS)


_ROWS = [
    ["index", "old", "new"],
    [0, guard_cell(samples.OLD[0]), "'=cow"],
    [3, guard_cell(samples.OLD[3]), guard_cell(samples.OLD[3])],
]
_AUDIT = [["index", "given", "true"], [0, 1, 2], [3, 0, ""], [5, 2, 2]]
_NAMED_MATRIX = json.dumps({"transition": samples.MATRIX, "class_names": samples.NAMES.tolist()}).encode()
_JSON_MATRICES = (_NAMED_MATRIX, b"[[1, 0], [0.5, 0.5]]")
_IMAGE_KINDS = ("PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF")

READERS: dict[str, Reader] = {
    "probabilities .npy": Reader("p.npy", _npy_seeds, reading.probabilities, inside_npy_header),
    "probabilities .npz": Reader("p.npz", lambda: [samples.npz(p=samples.PROBS)], reading.probabilities, inside_zip),
    "probabilities .csv": Reader("p.csv", _table_rows, reading.probabilities),
    "probabilities .tsv": Reader("p.tsv", lambda: _table_rows("\t"), reading.probabilities),
    "probabilities .parquet": Reader("p.parquet", _parquet_seeds, reading.probabilities),
    "labels .npy": Reader("y.npy", _npy_seeds, reading.labels, inside_npy_header),
    "labels .csv": Reader("y.csv", _table_rows, reading.labels),
    "labels .parquet": Reader("y.parquet", _parquet_seeds, reading.labels),
    "labels .txt": Reader("y.txt", lambda: [b"cat\ndog\ncat\n", b"\xef\xbb\xbf1\n2\n10\n"], reading.labels),
    "class names .txt": Reader("names.txt", lambda: ["cat\ndog\nnaïve\n".encode()], io.load_class_names),
    "class names .json": Reader("names.json", lambda: [b'["cat", "dog", 3]'], io.load_class_names),
    "transition .json": Reader("t.json", lambda: [samples.estimate(), *_JSON_MATRICES], reading.transition),
    "transition .csv": Reader("t.csv", lambda: [samples.csv([samples.NAMES, *samples.MATRIX])], reading.transition),
    "transition .npy": Reader("t.npy", lambda: [samples.npy(samples.MATRIX)], reading.transition, inside_npy_header),
    "shard .parquet": Reader(
        "s/1.parquet", lambda: [_shard()], reading.shards, None, lambda: {"s/2.parquet": _shard()},
    ),
    "saved summary": Reader("s.npz", lambda: [samples.summary()], reading.summary, inside_zip),
    "review .csv": Reader("review.csv", lambda: [samples.csv(_ROWS)], reading.review),
    "review .json": Reader("review.json", samples.exports, reading.review),
    "moves .csv": Reader("moves.csv", lambda: [b"from,to\ncat/1.png,dog/1.png\n'=a/2.png,b/2.png\n"], io.read_moves),
    "audit .csv": Reader("audit.csv", lambda: [samples.csv(_AUDIT)], reading.audit),
    "idx": Reader("a-idx3", lambda: [samples.idx(samples.IMAGES)], lambda path: read_idx(path, 3)),
    "idx .gz": Reader(
        "a.gz", lambda: [samples.gzip.compress(samples.idx(samples.IMAGES), 1, mtime=0)],
        lambda path: read_idx(path, 3), inside_gzip,
    ),
    "cifar binary": Reader(
        "cifar-10-batches-bin/test_batch.bin", lambda: [samples.cifar_binary(1), samples.cifar_binary(2)],
        reading.dataset(lambda path: load_cifar10(path.parents[1])), None,
        _cifar_batches("cifar-10-batches-bin", samples.cifar_binary),
    ),
    "data set .npz": Reader(
        "d.npz", lambda: [samples.npz(X=samples.PROBS, y=samples.LABELS, class_names=samples.NAMES)],
        reading.dataset(load_npz), inside_zip,
    ),
    "data set .csv": Reader("d.csv", _table_rows, reading.dataset(load_table)),
    "clothing1m lists": Reader(
        "clothing1M/noisy_label_kv.txt", lambda: [_clothing_files()["clothing1M/noisy_label_kv.txt"]],
        reading.dataset(lambda path: load_clothing1m(path.parents[1])), None, _clothing_files,
    ),
    "image folder": Reader(
        "a/x.png", lambda: [samples.image(kind) for kind in _IMAGE_KINDS], reading.images,
        inside_png, lambda: {"b/y.png": samples.image("PNG")},
    ),
    "report images .npy": Reader(
        "x.npy", lambda: [samples.npy(samples.IMAGES)], lambda path: image_previews(path, range(5), n_samples=5),
        inside_npy_header,
    ),
    "report texts": Reader(
        "x.txt", lambda: [b"one\ntwo\nthree\n"], lambda path: text_previews(path, range(3), n_samples=3)
    ),
    "preset .toml": Reader("x.toml", _preset_seeds, reading.preset),
    "model .json": Reader(
        "model.json", lambda: [samples.model_files()["model.json"]], reading.model, None, samples.model_files
    ),
    "model weights": Reader(
        "weights.safetensors", lambda: [samples.model_files()["weights.safetensors"]], reading.model,
        inside_safetensors, samples.model_files,
    ),
    "pre-trained weights": Reader(
        "w.safetensors", lambda: [samples.weights()], reading.weights, inside_safetensors
    ),
    "checkpoint": Reader("c.safetensors", lambda: [samples.checkpoint()], reading.checkpoint, inside_safetensors),
}  # fmt: skip
