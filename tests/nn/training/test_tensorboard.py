"""The curves that TensorBoard reads are those of the run."""

import subprocess
import sys

import numpy as np
import pytest

import dualt
from dualt.errors import FileError
from dualt.nn.training.tensorboard import tensorboard_log

pytest.importorskip("tensorboard")
RNG = np.random.default_rng(0)
CLEAN = np.arange(120) % 2
SAMPLES = RNG.normal(size=(120, 3)) + 3 * CLEAN[:, None]


def scalars(folder, tag):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder))
    events.Reload()
    found = events.Scalars(tag)
    return [event.step for event in found], [event.value for event in found]


def test_a_classifier_logs_every_epoch_of_every_stage(tmp_path):
    model = dualt.RobustNetClassifier(recipe="paper", epochs=3, tensorboard=tmp_path, random_state=0, n_jobs=1).fit(
        SAMPLES, CLEAN
    )
    for stage in ("ce", "forward"):
        for name in ("loss", "validation_accuracy"):
            steps, values = scalars(tmp_path, f"{stage}/{name}")
            assert steps == [1, 2, 3]
            np.testing.assert_allclose(values, model.history_[stage][name], rtol=1e-6)


def test_logging_changes_nothing(tmp_path):
    plain, logged = (
        dualt.RobustNetClassifier(recipe="paper", epochs=2, tensorboard=folder, random_state=0, n_jobs=1).fit(
            SAMPLES, CLEAN
        )
        for folder in (None, tmp_path)
    )
    np.testing.assert_array_equal(plain.predict_proba(SAMPLES), logged.predict_proba(SAMPLES))


def test_without_a_folder_the_callback_is_passed_on():
    def callback(stage, record):
        raise AssertionError

    with tensorboard_log(None, callback) as log:
        assert log is callback


def test_a_file_in_the_way_is_our_error(tmp_path):
    (tmp_path / "logs").write_text("")
    with pytest.raises(FileError, match="Cannot log into"), tensorboard_log(tmp_path / "logs"):
        pass


def test_without_tensorboard_its_extra_is_named(tmp_path):
    code = (
        "import sys; sys.modules['tensorboard'] = None\n"
        f"sys.argv = ['dualt', 'train', 'digits', '--tensorboard', {str(tmp_path)!r}, '-o', {str(tmp_path / 'm')!r}]\n"
        "from dualt.cli import main; main()"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert found.returncode == 2
    assert found.stderr == (
        "error: Logging for TensorBoard needs the extra [tensorboard]: pip install 'dualt[tensorboard]'\n"
    )
