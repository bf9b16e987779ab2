"""Raw data as people have them, with all that tables and folders have in them, and the truth."""

import csv
from pathlib import Path

import numpy as np
from PIL import Image

CLASSES = {
    "animals, small": ["fox", "hen", "cat"],
    'the "sea"': ["ship", "wave", "salt"],
    "café ☕": ["cup", "milk", "cake"],
}


def read(path):
    with Path(path).open(encoding="utf-8", newline="") as stream:
        return list(csv.reader(stream))


def raw_table(n_rows=240):
    """Rows of sku, title, label and note, with all that tables have in them; and the true labels."""
    rng = np.random.default_rng(5)
    names = list(CLASSES)
    rows, truth = [["sku", "title", "label", "note"]], []
    for number in range(n_rows):
        true = int(rng.integers(3))
        words = rng.choice(CLASSES[names[true]], 6)
        title = " ".join(words) + rng.choice(["", ', "so to say"', "\nsecond line", " 🦊", "; =1+1"])
        label = names[(true + 1) % 3] if rng.random() < 0.1 else names[true]
        rows.append(
            [f"{number // 3:04}", title, "" if rng.random() < 0.05 else label, rng.choice(["", "007", "1,5", "'x"])]
        )
        truth.append(names[true])
    rows[20] = rows[19]
    truth[19] = truth[18]
    return [list(map(str, row)) for row in rows], truth


def write_table(path, rows, **dialect):
    with Path(path).open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, **dialect).writerows(rows)


def write_images(folder, n_images=45):
    """Pictures in three class folders, every ninth in a wrong one; return the true class by content."""
    rng = np.random.default_rng(2)
    names = ["a, b", "café ☕", "=1"]
    patterns = rng.integers(0, 2, (3, 12, 12)) * 200
    truth = {}
    for number in range(n_images):
        true = number % 3
        label = names[(true + 1) % 3] if number % 9 == 4 else names[true]
        pixels = np.clip(patterns[true] + rng.integers(0, 56, (12, 12)), 0, 255).astype(np.uint8)
        # Names repeat over the classes: a picture that moves may find its name taken.
        path = Path(
            folder, label, ["", "deep"][number % 2], f"{number // 5}{['', ' 🦊', ', x', '-', chr(10)][number % 5]}.png"
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        assert not path.exists()
        Image.fromarray(pixels).save(path)
        truth[path.read_bytes()] = names[true]
    assert len(truth) == n_images
    return truth


def contents(folder):
    """Return the content of every file in a folder by its path inside it."""
    folder = Path(folder)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
