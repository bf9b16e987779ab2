"""`dualt train` and `dualt predict` as a user runs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import dualt
from dualt.cli.predict import predict
from dualt.cli.train import train
from dualt.datasets import load_dataset
from dualt.errors import FileError, InputError, UnknownNameError
from dualt.rows import NoisyPosterior

app = typer.Typer()
app.command()(train)
app.command()(predict)
QUICK = ["--epochs", "10", "--learning-rate", "0.1", "--batch-size", "32", "--n-jobs", "1"]


def run(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("train") / "model"
    return folder, json.loads(run("train", "digits", "--noise", "sym-0.2", *QUICK, "-o", folder, "--json"))


def test_train_prints_and_keeps_everything(trained):
    folder, printed = trained
    assert printed == json.loads((folder / "run.json").read_text())
    assert printed["test_accuracy"] > 0.5
    assert list(printed["stages"]) == ["ce", "forward"]
    assert len(printed["stages"]["ce"]["history"]["validation_accuracy"]) == 10
    assert printed["estimate"]["estimator"] == "dual-t"
    assert printed["l1_error"] == pytest.approx(10 * printed["l1_error_per_class"])
    kept = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    checkpoints = ["checkpoints/ce.safetensors", "checkpoints/forward.safetensors"]
    assert kept == [*checkpoints, "model.json", "report.html", "run.json", "weights.safetensors"]


def test_the_report_does_not_read_the_rows_again(tmp_path, monkeypatch):
    passes, summary = [], vars(NoisyPosterior)["summary"]
    summarize = summary.func

    def counted(self):
        passes.append(self)
        return summarize(self)

    monkeypatch.setattr(summary, "func", counted)
    run("train", "digits", "--method", "ce", *QUICK, "--epochs", "1", "-o", tmp_path / "m", "--json")
    assert (tmp_path / "m" / "report.html").exists()
    assert len(passes) == 1


def test_a_learned_matrix_is_kept_and_compared(tmp_path):
    arguments = ["train", "digits", "--noise", "pair-0.3", "--method", "volminnet", *QUICK, "-o", tmp_path / "m"]
    printed = json.loads(run(*arguments, "--set", "volume_weight=1e-3", "--json"))
    assert list(printed["stages"]) == ["volminnet"]
    assert (printed["transition"], printed["estimate"], printed["out_of_fold"]) == (None, None, None)
    learned = np.array(printed["learned_transition"])
    np.testing.assert_allclose(learned.sum(axis=1), 1, rtol=1e-5)
    assert printed["learned_l1_error"] == pytest.approx(np.abs(learned - dualt.noise.pair(10, 0.3)).sum())
    assert json.loads((tmp_path / "m" / "model.json").read_text())["about"]["learned_transition"] == learned.tolist()
    with pytest.raises(InputError, match="no option 'volume'"):
        run(*arguments, "--set", "volume=1")


def test_the_page_for_people(tmp_path):
    output = run("train", "digits", "--method", "ce", *QUICK, "-o", tmp_path / "m")
    assert "of the clean test labels right" in output
    assert "P(given label | true class)" in output


def test_resume_continues(trained):
    folder, printed = trained
    again = json.loads(run("train", "digits", "--noise", "sym-0.2", *QUICK, "-o", folder, "--json", "--resume"))
    assert again["test_accuracy"] == printed["test_accuracy"]
    assert again["stages"] == printed["stages"]


def test_predict_from_every_kind_of_file(trained, tmp_path):
    folder, printed = trained
    digits = load_dataset("digits")
    said = json.loads(run("predict", folder, "digits", "-o", tmp_path / "p.npy", "--json"))
    assert said["accuracy"] == pytest.approx(printed["test_accuracy"])
    probs = np.load(tmp_path / "p.npy", allow_pickle=False)
    assert probs.shape == (360, 10)
    np.save(tmp_path / "x.npy", digits.test_x)
    np.savez(tmp_path / "x.npz", X=digits.test_x)
    for name in ("x.npy", "x.npz"):
        run("predict", folder, tmp_path / name, "-o", tmp_path / "p.csv")
        rows = (tmp_path / "p.csv").read_text().splitlines()
        assert rows[0] == "prediction,0,1,2,3,4,5,6,7,8,9"
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
    known = ["--label", "kind", "--transition", matrix, "--network", "mlp-small"]
    output = run("train", table, *known, *QUICK, "--epochs", 60, "-o", tmp_path / "m")
    assert "The model is in" in output
    run("predict", tmp_path / "m", table, "--label", "kind", "-o", tmp_path / "p.csv")
    chosen = [line.split(",")[0] for line in (tmp_path / "p.csv").read_text().splitlines()[1:]]
    assert np.mean([c == ["no", "yes"][y] for c, y in zip(chosen, labels, strict=True)]) > 0.95


@pytest.mark.slow
def test_two_processes_give_what_one_gives(tmp_path):
    arguments = ["digits", "--noise", "sym-0.2", *QUICK, "--epochs", "2", "--json", "-o"]
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
        run("train", "digits", "--augment", "rotate", "-o", tmp_path / "m")
    np.save(tmp_path / "x.npy", np.zeros((3, 5), np.float32))
    with pytest.raises(InputError, match="Expected samples of shape"):
        run("predict", folder, tmp_path / "x.npy", "-o", tmp_path / "p.csv")
    with pytest.raises(FileError, match=r"ends in .csv or .npy"):
        run("predict", folder, "digits", "-o", tmp_path / "p.txt")
    with pytest.raises(FileError, match="Cannot read the model"):
        run("predict", tmp_path, "digits", "-o", tmp_path / "p.csv")
