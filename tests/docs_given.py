"""What the pages take for granted: files, models and machines a reader has, made small. Named by `<!-- given: -->`."""

import os
import socket
import sys
from pathlib import Path

import numpy as np
from docs_pages import ROOT

from dualt import noise
from tests.cli.commands import fill_in, write_rows

CLEAN = np.arange(300) % 3


def readme_files(run):
    """Probabilities of two models, labels, pictures and features, as the README names them."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(300, 4)) + 3 * np.eye(3, 4)[CLEAN]
    given = noise.corrupt(CLEAN, noise.pair(3, 0.3), random_state=0)
    probs, second = (np.eye(3)[predicted(CLEAN, errors, rng)] * 0.7 + 0.1 for errors in (10, 15))
    np.save("probs.npy", probs)
    np.save("second.npy", second)
    np.save("images.npy", rng.integers(0, 255, (300, 8, 8), dtype=np.uint8))
    np.save("labels.npy", given)
    run.names |= {"pred_probs": probs, "second_probs": second, "noisy_labels": given}
    run.names |= {"X": features, "noisy_y": given, "X_new": features}


def predicted(clean, n_errors, rng):
    """Return the classes with some of them turned to the next."""
    rows = rng.choice(len(clean), n_errors, replace=False)
    return np.where(np.isin(np.arange(len(clean)), rows), (clean + 1) % 3, clean)


def readme_tickets(run):
    """A table of texts, and a review of one of its rows."""
    words = {"billing": "invoice refund charged card", "login": "password reset account locked"}
    rng, rows = np.random.default_rng(0), []
    for number in range(80):
        queue, other = list(words)[:: 1 if number % 2 else -1]
        text = " ".join(rng.choice(words[queue].split(), 4))
        rows.append({"ticket": f"T{number}", "text": text, "queue": other if number == 7 else queue})
    write_rows("tickets.csv", rows)
    Path("suspects-review.csv").write_text("index,id,old,new\n7,T7,login,billing\n", encoding="utf-8")


def customers(run):
    """A table with numbers, categories and empty cells, and a review of one of its rows."""
    rng, rows = np.random.default_rng(0), []
    for row in range(200):
        age, job = int(rng.integers(18, 80)), rng.choice(["clerk", "nurse", ""])
        risk = "low" if (age + 20 * (job == "nurse") > 50) != (row == 7) else "high"
        rows.append({"customer": f"C{row}", "age": "" if row % 20 == 3 else age, "job": job, "risk": risk})
    write_rows("customers.csv", rows)
    old = rows[7]["risk"]
    write_rows("suspects-review.csv", [{"index": 7, "id": "C7", "old": old, "new": {"low": "high"}.get(old, "low")}])


def readme_shards(run):
    """The same probabilities and labels in parts: a folder of each, and a folder of Parquet tables."""
    import pandas as pd

    for folder in ("probs", "labels", "data"):
        Path(folder).mkdir()
    for number, rows in enumerate(np.array_split(np.arange(300), 3)):
        probs, labels = run.names["pred_probs"][rows], run.names["noisy_labels"][rows]
        np.save(f"probs/{number}.npy", probs)
        np.save(f"labels/{number}.npy", labels)
        pd.DataFrame(probs, columns=["p_0", "p_1", "p_2"]).assign(given=labels).to_parquet(f"data/{number}.parquet")


def filled_audit(run):
    """The column "true" of audit.csv, as a person fills it in."""
    fill_in("audit.csv", CLEAN)


def filled_howto_audit(run):
    """The same with the true classes of true.npy."""
    fill_in("audit.csv", np.load("true.npy"))


def vote_table(run):
    """The labels of three people for texts of two kinds, a row per vote."""
    rng, rows = np.random.default_rng(0), []
    words = {"animal": "fox hen owl cat dog cow", "drink": "tea milk beer wine rum gin"}
    for number in range(150):
        true, other = list(words)[:: 1 if number % 2 else -1]
        text = " ".join(rng.choice(words[true].split(), 5))
        for who, errors in (("Ann", 0.1), ("Bo", 0.2), ("Cy", 0.3)):
            rows.append({"id": number, "who": who, "label": other if rng.random() < errors else true, "text": text})
    write_rows("votes.csv", rows)


def filled_vote_audit(run):
    """Their true classes: even numbers are drinks."""
    fill_in("audit.csv", ["drink", "animal"] * 75)


def tiny_data(run):
    """Every data set of the paper in its original format, with a handful of images; some more in images.npz."""
    from tests.paper_data import write_all

    run.environment["DUALT_DATA"] = str(write_all(Path("data-sets").absolute()))
    np.savez("images.npz", X=np.random.default_rng(0).integers(256, size=(5, 28, 28), dtype=np.uint8))


def repository(run):
    """Commands are typed in a clone of the repository: this one."""
    run.folder = ROOT


def free_port(run):
    """The machine `host` is this one; its port 8786 may be taken."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    run.addresses = {"host:8786": f"127.0.0.1:{port}", "--port 8786": f"--host 127.0.0.1 --port {port}"}


def answering_workers(run):
    """The scheduler and workers that the page started are up."""
    from distributed import Client

    with Client(f"tcp://{run.addresses['host:8786']}", timeout=60) as client:
        client.wait_for_workers(2, timeout=60)


def slurm(run):
    """`sbatch`, as far as the page uses it: see docs_sbatch.py."""
    command = Path("bin/sbatch").absolute()
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{ROOT}/tests/docs_sbatch.py" "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    here = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    run.environment["PATH"] = f"{command.parent}{os.pathsep}{here}"


def hugging_face(run):
    """A data set with a ClassLabel, and a Trainer of a small BERT that has seen others, where one word tells all."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    from datasets import ClassLabel, Dataset, Features, List, Value
    from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

    features = Features({"input_ids": List(Value("int64")), "label": ClassLabel(names=["cat", "dog", "cow", "hen"])})

    def texts(true, labels):
        tokens = np.random.default_rng(0).integers(10, 20, (len(true), 4))
        tokens[:, 1] = 1 + true
        return Dataset.from_dict({"input_ids": tokens.tolist(), "label": labels.tolist()}, features=features)

    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    config = BertConfig(vocab_size=20, num_labels=4, **sizes)
    arguments = TrainingArguments(
        "trainer", report_to="none", use_cpu=True, disable_tqdm=True, save_strategy="no", logging_strategy="no",
        num_train_epochs=4, per_device_train_batch_size=50, per_device_eval_batch_size=500, learning_rate=0.01,
    )  # fmt: skip
    true = np.arange(2000) % 4
    others = texts(true, noise.corrupt(true, noise.symmetric(4, 0.2), random_state=1))
    trainer = Trainer(args=arguments, train_dataset=others, model_init=lambda: BertForSequenceClassification(config))
    trainer.train()
    run.names |= {"trainer": trainer, "dataset": texts(run.names["true"], run.names["labels"])}


def photo_folders(run):
    """Small images in a folder per class, bars across or upright, one of them in the wrong folder."""
    from PIL import Image

    rng = np.random.default_rng(0)
    for row in range(40):
        image = rng.integers(0, 60, (12, 12), dtype=np.uint8)
        image[(slice(None), slice(3, 9)) if row % 2 else (slice(3, 9), slice(None))] += 180
        folder = Path("photos", "upright" if row % 2 or row == 10 else "across")
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(folder / f"{row}.png")


def keras_model(run):
    """Images whose brightest pixel tells their class, and a Keras network, on torch, that has learnt it."""
    os.environ["KERAS_BACKEND"] = "torch"
    import keras

    keras.utils.set_random_seed(0)
    true = run.names["true"]
    images = np.random.default_rng(0).random((len(true), 2, 2)) + np.eye(4).reshape(4, 2, 2)[true]
    layers = [keras.layers.Flatten(), keras.layers.Dense(16, "relu"), keras.layers.Dense(4, "softmax")]
    model = keras.Sequential(layers)
    model.compile(keras.optimizers.Adam(0.01), "sparse_categorical_crossentropy")
    model.fit(images, run.names["labels"], epochs=5, verbose=0)
    run.names |= {"model": model, "images": images}
