"""`dualt train` and `dualt predict` as a user runs them."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import typer
from PIL import Image
from sklearn.datasets import load_digits
from typer.testing import CliRunner

import dualt
from dualt.cli.options import Command
from dualt.cli.predict import predict
from dualt.cli.train import train
from dualt.datasets import load_dataset
from dualt.errors import DualtError, FileError, InputError, TransitionError, UnknownNameError
from dualt.nn.storage import Model
from tests.cli.commands import read_rows

app = typer.Typer()
app.command(cls=Command)(train)
app.command(cls=Command)(predict)
PAPER = ["--recipe", "paper", "--epochs", "10", "--set", "learning_rate=0.1", "--set", "batch_size=32", "--n-jobs", "1"]


def run(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("train") / "model"
    return folder, json.loads(run("train", "digits", "--noise", "sym-0.2", *PAPER, "-o", folder, "--json"))


def test_train_prints_and_keeps_everything(trained):
    folder, printed = trained
    assert printed == json.loads((folder / "run.json").read_text())
    assert printed["test_accuracy"] > 0.5
    assert list(printed["stages"]) == ["ce", "forward"]
    assert len(printed["stages"]["ce"]["history"]["validation_accuracy"]) == 10
    assert printed["estimate"]["estimator"] == "dual-t"
    assert printed["l1_error"] == dualt.l1_error(printed["transition"], dualt.noise.symmetric(10, 0.2))
    kept = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    checkpoints = [f"checkpoints/{name}" for name in ("ce.safetensors", "forward.safetensors", "options.json")]
    assert "contradicts only" in printed["distrust"], "after ten epochs dual-T counts the noise twice"
    assert kept == [*checkpoints, "model.safetensors", "run.json"], "so there is no report"


def clouds(n=400, n_wrong=40):
    """Three clouds of points with some wrong labels: points, given labels, and which are wrong."""
    rng = np.random.default_rng(0)
    clean = rng.integers(3, size=n)
    given = clean.copy()
    wrong = rng.choice(n, n_wrong, replace=False)
    given[wrong] = (clean[wrong] + 1) % 3
    return rng.normal(size=(n, 4)) + 6 * np.eye(3, 4)[clean], given, wrong


QUICK = ["--set", "folds=2", "--epochs", "15", "--n-jobs", "1"]


def test_the_report_names_the_rows_of_a_table_by_their_ids(tmp_path):
    x, given, wrong = clouds()
    ids = [f"sample-{7 * row}" for row in range(400)]
    lines = [",".join([ids[row], *map(str, x[row]), "abc"[given[row]]]) for row in range(400)]
    (tmp_path / "data.csv").write_text("\n".join(["key,a,b,c,d,label", *lines]))
    with_network = ["--network", "mlp", *QUICK]
    run("train", tmp_path / "data.csv", "--id", "key", *with_network, "-o", tmp_path / "m")
    page = (tmp_path / "m" / "report.html").read_text()
    assert sum(f'"{ids[row]}"' in page for row in wrong) > 35
    assert Model.load(tmp_path / "m").feature_names == ("a", "b", "c", "d"), "an id is no feature"
    with pytest.raises(UnknownNameError, match="Did you mean 'key'"):
        run("train", tmp_path / "data.csv", "--id", "nokey", *with_network, "-o", tmp_path / "n")


def test_the_report_names_images_by_their_files(tmp_path):
    rng = np.random.default_rng(0)
    wrong = []
    for row in range(300):
        true = row % 2
        given = 1 - true if row % 10 == 0 else true
        folder = tmp_path / "images" / "train" / ["dark", "light"][given]
        folder.mkdir(parents=True, exist_ok=True)
        pixels = (rng.random((8, 8)) * 60 + 180 * true).astype(np.uint8)
        Image.fromarray(pixels).save(folder / f"photo {row}.png")
        if given != true:
            wrong.append(f"train/{folder.name}/photo {row}.png")
    run("train", tmp_path / "images", *QUICK, "-o", tmp_path / "m")
    page = (tmp_path / "m" / "report.html").read_text()
    assert sum(f'"{name}"' in page for name in wrong) > 25
    assert "data:image/png" in page


def test_a_known_matrix_is_matched_by_the_names_of_its_classes(tmp_path):
    x, given, _ = clouds()
    lines = [",".join([*map(str, row), ["ant", "bee", "cat"][label]]) for row, label in zip(x, given, strict=True)]
    (tmp_path / "data.csv").write_text("\n".join(["a,b,c,d,label", *lines]))
    matrix = np.array([[0.9, 0.1, 0.0], [0.0, 0.8, 0.2], [0.3, 0.0, 0.7]])
    order = [2, 0, 1]
    names = [["ant", "bee", "cat"][place] for place in order]
    (tmp_path / "t.json").write_text(
        json.dumps({"transition": matrix[np.ix_(order, order)].tolist(), "class_names": names})
    )
    known = ["--network", "mlp", "--transition", tmp_path / "t.json", "--epochs", "2", "--n-jobs", "1", "--json", "-o"]
    found = json.loads(run("train", tmp_path / "data.csv", *known, tmp_path / "m"))
    np.testing.assert_allclose(found["transition"], matrix)
    other = {"transition": matrix.tolist(), "class_names": ["ant", "bee", "dog"]}
    (tmp_path / "t.json").write_text(json.dumps(other))
    with pytest.raises(TransitionError, match="'cat', 'dog' are not in both"):
        run("train", tmp_path / "data.csv", *known, tmp_path / "n")
    assert not (tmp_path / "n" / "run.json").exists()


def test_a_learned_matrix_is_kept_and_compared(tmp_path):
    arguments = ["train", "digits", "--noise", "pair-0.3", "--method", "revision", *PAPER, "-o", tmp_path / "m"]
    printed = json.loads(run(*arguments, "--json"))
    assert list(printed["stages"]) == ["ce", "reweighting", "revision"]
    learned = np.array(printed["learned_transition"])
    np.testing.assert_allclose(learned.sum(axis=1), 1, rtol=1e-5)
    assert printed["learned_l1_error"] == pytest.approx(np.abs(learned - dualt.noise.pair(10, 0.3)).sum())
    assert Model.load(tmp_path / "m").about["learned_transition"] == learned.tolist()
    with pytest.raises(UnknownNameError, match=r"Unknown setting 'widht'.*width"):
        run(*arguments, "--set", "widht=1")


def test_resume_continues(trained):
    folder, printed = trained
    again = json.loads(run("train", "digits", "--noise", "sym-0.2", *PAPER, "-o", folder, "--json", "--resume"))
    assert again["test_accuracy"] == printed["test_accuracy"]
    assert again["stages"] == printed["stages"]


def test_a_run_is_not_replaced_unasked(trained, tmp_path):
    folder, _ = trained
    again = ["train", "digits", "--noise", "sym-0.2", *PAPER, "-o", folder, "--json"]
    with pytest.raises(InputError, match=r"--resume .*--overwrite"):
        run(*again)
    with pytest.raises(InputError, match="got both"):
        run(*again, "--resume", "--overwrite")
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    run("train", "digits", "--method", "ce", *PAPER, "--epochs", "1", "-o", copy, "--overwrite")
    assert sorted(path.name for path in (copy / "checkpoints").iterdir()) == ["ce.safetensors", "options.json"]


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A table, and a finished run on it with a page."""
    folder = tmp_path_factory.mktemp("table")
    x, given, _ = clouds(200, 20)
    np.savez(folder / "data.npz", X=x, y=given)
    run("train", folder / "data.npz", *QUICK, "-o", folder / "m")
    return folder / "data.npz", folder / "m"


@pytest.mark.parametrize(
    "mistake",
    [
        "--network mlpp", "--network lenet", "--estimator tt", "--set weights=none.safetensors", "--set device=gpuu",
        "--set optimizer=adm", "--epochs 0", "--set batch_size=0", "--set learning_rate=-1",
        "--set folds=1000", "--set width=0", "--set width=nan", "--set width=inf",
        "--set width=wide", "--set momentum=2", "--estimator oracle",
    ],
)  # fmt: skip
def test_a_mistake_costs_no_finished_run(table, mistake):
    data, folder = table
    before = contents(folder)
    with pytest.raises(DualtError):
        run("train", data, *QUICK, *mistake.split(), "-o", folder, "--overwrite")
    assert contents(folder) == before


def test_another_run_is_not_resumed(table, tmp_path):
    data, folder = table
    before = contents(folder)
    with pytest.raises(InputError, match="started with method 'auto', not 'mixup'"):
        run("train", data, *QUICK, "--method", "mixup", "--resume", "-o", folder)
    assert contents(folder) == before
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    output = run("train", data, *QUICK, "--method", "mixup", "--overwrite", "-o", copy)
    assert "report.html" not in output
    assert not (copy / "report.html").exists(), "mixup has no estimate, and the page of the run before is not its own"


def test_the_accuracy_is_that_of_the_networks_as_they_are_saved(tmp_path):
    printed = run("train", "digits", "--method", "decoupling", "--epochs", "2", "--n-jobs", "1", "-o", tmp_path / "m")
    stored = json.loads((tmp_path / "m" / "run.json").read_text())["test_accuracy"]
    run("predict", tmp_path / "m", "digits", "-o", tmp_path / "p.npy")
    hits = np.load(tmp_path / "p.npy").argmax(axis=1) == load_dataset("digits").test_y
    assert stored == pytest.approx(hits.mean())
    assert f"Accuracy {stored:.2%} on the clean test labels, 2 networks averaged" in printed


def test_folders_without_labels_are_predicted_and_files_named(trained, tmp_path):
    folder, _ = trained
    pixels, digits = load_digits(return_X_y=True)
    flat, classes = tmp_path / "flat", tmp_path / "classes"
    flat.mkdir()
    for number in range(12):
        image = Image.fromarray(np.rint(pixels[number].reshape(8, 8) * (255 / 16)).astype(np.uint8))
        image.save(flat / f"{number}.png")
        (classes / str(digits[number])).mkdir(parents=True, exist_ok=True)
        image.convert("RGB").resize((16, 16), 0).save(classes / str(digits[number]) / f"{number}.png")
    said = json.loads(run("predict", folder, flat, "-o", tmp_path / "flat.csv", "--json"))
    assert said["n_samples"] == 12
    rows = read_rows(tmp_path / "flat.csv")
    assert [row["file"] for row in rows] == sorted(f"{number}.png" for number in range(12))
    run("predict", folder, flat, "-o", tmp_path / "flat.npy")
    np.testing.assert_allclose(
        np.load(tmp_path / "flat.npy").max(axis=1), [float(row["probability"]) for row in rows], atol=1e-6
    )
    run("predict", folder, classes, "-o", tmp_path / "classes.csv")
    named = {Path(row["file"]).name: row["predicted"] for row in read_rows(tmp_path / "classes.csv")}
    assert named == {row["file"]: row["predicted"] for row in rows}, "resized to the images of training"


def test_digits_with_pair_noise_by_the_defaults(tmp_path):
    options = ["--noise", "pair-0.3", "-o", tmp_path / "m", "--n-jobs", "1", "--json"]
    found = json.loads(run("train", "digits", *options))
    assert (found["method"], found["distrust"]) == ("forward", None)
    assert found["test_accuracy"] > 0.9
    assert found["estimate"]["noise_rate_interval"][0] <= 0.3


def test_labels_that_nothing_can_be_learned_from_give_no_rate(tmp_path):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "data.npz", X=rng.normal(size=(300, 5)), y=rng.integers(3, size=300))
    output = run(
        "train", tmp_path / "data.npz", "-m", "forward", "--set", "folds=2", "-o", tmp_path / "m", "--n-jobs", "1"
    )
    assert "No noise rate can be claimed: the classifier agrees with" in output.replace("\n", " ")
    assert "plain cross entropy" in output
    assert "in 100 labels" not in output
    assert not (tmp_path / "m" / "report.html").exists()
    found = json.loads((tmp_path / "m" / "run.json").read_text())
    assert (found["method"], found["asked_method"], found["transition"]) == ("ce", "forward", None)


def test_predict_from_every_kind_of_file(trained, tmp_path):
    folder, printed = trained
    digits = load_dataset("digits")
    run("predict", folder, "digits", "-o", tmp_path / "p.npy")
    probs = np.load(tmp_path / "p.npy", allow_pickle=False)
    assert (probs.argmax(axis=1) == digits.test_y).mean() == pytest.approx(printed["test_accuracy"])
    np.save(tmp_path / "x.npy", digits.test_x)
    np.savez(tmp_path / "x.npz", X=digits.test_x)
    for name in ("x.npy", "x.npz"):
        run("predict", folder, tmp_path / name, "-o", tmp_path / "p.csv")
        rows = (tmp_path / "p.csv").read_text().splitlines()
        assert rows[0] == "predicted,probability"
        assert [row.split(",")[0] for row in rows[1:]] == [str(label) for label in probs.argmax(axis=1)]


def test_tables_and_a_known_matrix(tmp_path):
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=200)
    x = rng.normal(size=(200, 3)) + 3 * labels[:, None]
    table = tmp_path / "data.csv"
    lines = ["a,b,c,kind", *(",".join([*map(str, row), ["no", "yes"][y]]) for row, y in zip(x, labels, strict=True))]
    table.write_text("\n".join(lines))
    matrix = tmp_path / "matrix.csv"
    matrix.write_text("0.9,0.1\n0.1,0.9\n")
    known = ["--label", "kind", "--transition", matrix, "--network", "mlp-small", "--n-jobs", "1"]
    output = run("train", table, *known, "-o", tmp_path / "m")
    assert "The model is in" in output

    def predicted(lines):
        (tmp_path / "new.csv").write_text("\n".join(lines))
        run("predict", tmp_path / "m", tmp_path / "new.csv", "-o", tmp_path / "p.csv")
        return [line.split(",")[-2] for line in (tmp_path / "p.csv").read_text().splitlines()[1:]]

    chosen = predicted(lines)
    assert np.mean([c == ["no", "yes"][y] for c, y in zip(chosen, labels, strict=True)]) > 0.95
    turned = ["c,extra,b,a", *(",".join(map(str, [row[2], 7, row[1], row[0]])) for row in x)]
    assert predicted(turned) == chosen, "columns are matched by name, others ignored, no label needed"
    with pytest.raises(InputError, match="none named c"):
        predicted(["a,b,kind", "1,2,no"])
    with pytest.raises(InputError, match=r"float32.*row 1"):
        predicted(["a,b,c", "1,2,3", "1,nan,3"])


@pytest.mark.slow
def test_two_processes_give_what_one_gives(tmp_path):
    arguments = ["digits", "--noise", "sym-0.2", *PAPER, "--set", "dropout=0", "--epochs", "2", "--json", "-o"]
    alone = json.loads(run("train", *arguments, tmp_path / "alone"))
    script = tmp_path / "run.py"
    script.write_text("import typer; from dualt.cli.train import train; typer.run(train)")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", script]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [*command, *arguments, tmp_path / "together"],
        capture_output=True, text=True, env=environment, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    together = json.loads(done.stdout)
    np.testing.assert_allclose(together["transition"], alone["transition"], atol=1e-3)
    for stage in ("ce", "forward"):
        losses = [run["stages"][stage]["history"]["loss"] for run in (together, alone)]
        np.testing.assert_allclose(losses[0], losses[1], rtol=1e-3)


def test_mistakes_are_named(trained, tmp_path):
    folder, _ = trained
    with pytest.raises(UnknownNameError, match="Did you mean 'forward'"):
        run("train", "digits", "--method", "foward", "-o", tmp_path / "m")
    with pytest.raises(UnknownNameError, match="Unknown augmentation 'rotate'"):
        run("train", "digits", "--set", "augment=rotate", "-o", tmp_path / "m")
    np.save(tmp_path / "x.npy", np.zeros((3, 5), np.float32))
    with pytest.raises(InputError, match="Expected samples of shape"):
        run("predict", folder, tmp_path / "x.npy", "-o", tmp_path / "p.csv")
    with pytest.raises(FileError, match=r"ends in .csv, .*npy"):
        run("predict", folder, "digits", "-o", tmp_path / "p.txt")
    with pytest.raises(FileError, match="Expected a folder that dualt train wrote"):
        run("predict", tmp_path, "digits", "-o", tmp_path / "p.csv")


COLUMNS = ["id", "words", "colour", "income", "team"]
TEAMS = {
    "billing": "refund money invoice charge",
    "bugs": "crash error freeze stuck",
    "wishes": "add feature wish idea",
}


def tickets(path, n, seed, label=True):
    """Write a table of texts, categories, numbers with blanks and ids; return the true classes and the wrong labels."""
    rng = np.random.default_rng(seed)
    true, rows = rng.choice([*TEAMS], n), []
    wrong = {*rng.choice(np.arange(5, n), n // 5, replace=False).tolist()}
    for row, team in enumerate(true):
        others = rng.choice(TEAMS[team].split(), 2), rng.choice(["the", "app,", "my;", "very", "=again"], 4)
        words = " ".join(np.concatenate(others))
        number = [*TEAMS].index(team)
        colour = ["red", "green", "blue"][number if rng.random() < 0.8 else rng.integers(3)]
        income = "" if row % 9 == 0 else f"{50 + 10 * number + rng.normal(0, 8):.1f}"
        given = [*TEAMS][(number + 1) % 3] if row in wrong else team
        rows.append([f"t-{row}", words, colour, income, "" if row < 3 else given])
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows([COLUMNS, *rows] if label else [row[:-1] for row in [COLUMNS, *rows]])
    return true, wrong


@pytest.mark.parametrize(
    ("learned", "least"),
    [("--text words", 0.95), ("--text words --features colour,income", 0.95), ("", 0.75)],
    ids=["text", "both", "table"],
)
def test_a_table_with_texts_categories_and_blanks(tmp_path, learned, least):
    _, wrong = tickets(tmp_path / "data.csv", 500, 0)
    true, _ = tickets(tmp_path / "new.csv", 200, 1, label=False)
    if not learned:  # by default all columns are numbers and categories
        for name in ("data.csv", "new.csv"):
            lines = list(csv.reader((tmp_path / name).read_text().splitlines()))
            kept = [[cell for place, cell in enumerate(line) if place != 1] for line in lines]
            (tmp_path / name).write_text("\n".join(map(",".join, kept)))
    before = (tmp_path / "new.csv").read_text()
    options = ["--label", "team", "--id", "id", *learned.split(), "-o", tmp_path / "model"]
    printed = json.loads(run("train", tmp_path / "data.csv", *options, "--json"))
    assert printed["n_samples"] == 497, "three rows have no label"
    assert printed["distrust"] is None
    assert sum(f'"t-{row}"' in (tmp_path / "model" / "report.html").read_text() for row in wrong) > 0.7 * len(wrong)
    said = run("predict", tmp_path / "model", tmp_path / "new.csv", "-o", tmp_path / "out.csv")
    assert "200 samples predicted" in said
    out = read_rows(tmp_path / "out.csv")
    given = list(csv.DictReader(before.splitlines()))
    assert [{name: row[name] for name in given[0]} for row in out] == given, "every column, every cell"
    assert [*out[0]][-2:] == ["predicted", "probability"]
    assert np.mean([row["predicted"] for row in out] == true) > least
    with pytest.raises(InputError, match="already"):
        run("train", tmp_path / "data.csv", *options)
    with pytest.raises(InputError, match=r"'predicted' in .*Rename"):
        run("predict", tmp_path / "model", tmp_path / "out.csv", "-o", tmp_path / "again.csv")


def test_what_tables_and_networks_do_not_share(tmp_path):
    tickets(tmp_path / "data.csv", 60, 0)
    table = ["train", tmp_path / "data.csv", "--label", "team", "-o", tmp_path / "m"]
    with pytest.raises(InputError, match=r"--method, --epochs: .*--network mlp"):
        run(*table, "--method", "ce", "--epochs", "3")
    with pytest.raises(InputError, match="leave --network out"):
        run(*table, "--id", "id", "--network", "mlp")
    with pytest.raises(InputError, match="--quick and --merge-labels with a table"):
        run("train", "digits", "--text", "t", "-o", tmp_path / "m")
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "model.json").write_text('{"rows": 3}')
    with pytest.raises(InputError, match=r"\(model.json\): pass --overwrite to replace it"):  # no --resume
        run(*table)
    with pytest.raises(FileError, match="Expected a model that dualt train wrote"):
        run("predict", tmp_path / "m", tmp_path / "data.csv", "-o", tmp_path / "p.csv")
