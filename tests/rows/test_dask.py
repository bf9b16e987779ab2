"""Dask's collections and clusters: they give what memory gives, are lazy, and survive a worker's death."""

import json
import os
import signal

import numpy as np
import pandas as pd
import pytest

import dualt
from dualt.errors import InputError, LabelsError, ProbabilitiesError
from dualt.io import open_shards
from dualt.rows import NoisyPosterior, as_posterior
from dualt.rows.dask import DaskPosterior
from tests.cli.commands import refused, run
from tests.strategies import same_summary

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

N, C = 3_000, 100  # a chunk of so many classes has 2,048 rows, more than the blocks here
NAMES = np.array([f"class {number}" for number in range(C)])
RNG = np.random.default_rng(0)
CLEAN = RNG.integers(0, C, N)
PROBS = (0.6 * np.eye(C)[CLEAN] + 0.4 * RNG.dirichlet(np.full(C, 0.05), N)).astype(np.float64)
LABELS = dualt.noise.corrupt(CLEAN, dualt.noise.pair(C, 0.3), random_state=1)


def same(found, expected):
    """The first pass is equal; in later ones a row within rounding of a threshold may fall either way."""
    assert same_summary(found.rows_summary, expected.rows_summary)
    assert found.class_names == expected.class_names
    np.testing.assert_allclose(found.transition, expected.transition, atol=0.03)
    assert np.abs(found.fit.support - expected.fit.support).max() <= 1
    assert np.mean(found.fit.support != expected.fit.support) < 0.05


@pytest.fixture(scope="module")
def expected():
    return dualt.estimate_transition(PROBS, LABELS)


@pytest.fixture(scope="module")
def cluster():
    options = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "silence_logs": 50}
    with distributed.LocalCluster(n_workers=2, processes=True, **options) as running:
        yield running


@pytest.mark.parametrize("estimator", ["t", "dual-t", "spade", "confident-joint", "clean-count"])
def test_every_estimator_gives_what_it_gives_in_memory(estimator):
    probs, labels = da.from_array(PROBS, chunks=(700, 33)), da.from_array(LABELS, chunks=999)
    same(dualt.estimate_transition(probs, labels, estimator), dualt.estimate_transition(PROBS, LABELS, estimator))


@pytest.mark.parametrize("lengths", [(1, *[300] * 9, 299), (2_621, 379)], ids=str)
def test_the_cut_changes_nothing(expected, lengths):
    same(dualt.estimate_transition(da.from_array(PROBS, chunks=(lengths, C)), LABELS), expected)


FRAME = pd.DataFrame(PROBS, columns=NAMES)


@pytest.mark.parametrize(
    "labels",
    [
        NAMES[LABELS],
        dd.from_pandas(pd.Series(NAMES[LABELS]), npartitions=5),
        dd.from_pandas(pd.Series(NAMES[LABELS], name="y").to_frame(), npartitions=2),
        dd.from_pandas(pd.Series(NAMES[LABELS], dtype="category"), npartitions=2),
        dd.from_pandas(pd.Series(LABELS, dtype="Int64"), npartitions=4),
        da.from_array(NAMES[LABELS], chunks=800),
        da.from_array(np.eye(C)[LABELS], chunks=(800, 50)),
    ],
    ids=lambda labels: f"{type(labels).__module__}.{getattr(labels, 'dtype', '')}",
)
def test_data_frames_and_all_kinds_of_labels(labels, expected):
    found = dualt.estimate_transition(dd.from_pandas(FRAME, npartitions=4), labels)
    assert found.class_names == tuple(NAMES)
    assert same_summary(found.rows_summary, expected.rows_summary)
    np.testing.assert_allclose(found.transition, expected.transition, atol=0.03)


@pytest.mark.parametrize("estimator", ["hoc", "joint"])
def test_estimators_that_fetch_rows(estimator):
    probs, labels = PROBS[:400, :3] + 0.1, LABELS[:400] % 3
    probs /= probs.sum(axis=1, keepdims=True)
    lazily = da.from_array(probs, chunks=(90, 3))
    same(dualt.estimate_transition(lazily, labels, estimator), dualt.estimate_transition(probs, labels, estimator))


def test_unknown_sizes_and_empty_partitions():
    """Rows chosen by a condition: Dask does not know how many they are, and one partition has none."""
    chosen = (np.arange(N) % 3 > 0) & ((np.arange(N) < 600) | (np.arange(N) >= 1_200))
    wanted = dualt.estimate_transition(PROBS[chosen], LABELS[chosen])
    lazily = da.from_array(chosen, chunks=600)
    probs = da.from_array(PROBS, chunks=(600, C))[lazily]
    labels = da.from_array(LABELS, chunks=600)[lazily]
    assert np.isnan(probs.shape[0])
    same(dualt.estimate_transition(probs, labels), wanted)
    assert np.isnan(probs.shape[0])
    frame = dd.from_pandas(FRAME.assign(given=LABELS, chosen=chosen), npartitions=5)
    frame = frame[frame["chosen"]]
    found = dualt.estimate_transition(frame[NAMES.tolist()], frame["given"])
    np.testing.assert_allclose(found.transition, wanted.transition, atol=0.03)


def test_float32_and_verified_rows():
    probs = PROBS.astype(np.float32)
    rows = np.random.default_rng(5).choice(N, 150, replace=False)
    wanted = dualt.estimate_transition(probs, LABELS, verified=(rows, CLEAN[rows]))
    lazily = da.from_array(probs, chunks=(640, C))
    same(dualt.estimate_transition(lazily, LABELS, verified=(rows, CLEAN[rows])), wanted)


def test_rows_come_back_in_order():
    told = []
    lazily = da.from_array(PROBS, chunks=(111, C))
    posterior = as_posterior(lazily, LABELS, on_progress=lambda done, total: told.append((done, total)))
    assert isinstance(posterior, DaskPosterior)
    chunks = list(posterior.chunks())
    np.testing.assert_array_equal(np.concatenate([probs for probs, _ in chunks]), PROBS)
    np.testing.assert_array_equal(np.concatenate([codes for _, codes in chunks]), LABELS)
    assert told == [(N, N), *((888 * k, N) for k in (1, 2, 3)), (N, N)]  # the summary, then eight blocks at a time
    wanted = np.array([2_999, 5, 5, 700])
    np.testing.assert_array_equal(posterior.take(wanted)[0], PROBS[wanted])
    np.testing.assert_array_equal(posterior.take(wanted)[1], LABELS[wanted])
    assert len(posterior.take(wanted[:0])[1]) == 0


@pytest.mark.parametrize("options", [{}, {"top": 77}, {"top": 0}, {"top": N}, {"threshold": 0.3}], ids=str)
def test_issues_are_a_lazy_frame(options):
    # Rounded, so that many labels are equally suspect and the first of them must be taken.
    probs = np.round(PROBS * 4) + 0.01
    probs /= probs.sum(axis=1, keepdims=True)
    lazily = da.from_array(probs, chunks=(450, C))
    found = dualt.find_label_issues(lazily, NAMES[LABELS], estimator="spade", class_names=NAMES, **options)
    assert isinstance(found, dd.DataFrame)
    assert found.divisions == (*range(0, N, 450), N - 1)
    wanted = dualt.find_label_issues(probs, NAMES[LABELS], estimator="spade", class_names=NAMES, **options).to_frame()
    pd.testing.assert_frame_equal(found.compute(), wanted, check_dtype=False, check_index_type=False, rtol=1e-4)


def test_scores_are_not_computed_before_they_are_asked_for():
    passes = []

    def seen(block):
        passes.append(len(block))
        return block

    lazily = da.from_array(PROBS, chunks=(N, C)).map_blocks(seen, meta=np.empty((0, C)))
    issues = dualt.find_label_issues(lazily, LABELS, dualt.noise.pair(C, 0.3))
    assert passes == [N]  # the summary's
    issues.compute(scheduler="synchronous")
    assert passes == [N, N]


@pytest.mark.parametrize(
    ("probs", "labels", "error", "message"),
    [
        (PROBS, LABELS[:-1], InputError, "3,000 rows and 2,999 labels"),
        (PROBS, da.from_array(LABELS[:-1], chunks=100), InputError, "3,000 rows and 2,999 labels"),
        (PROBS, np.where(np.arange(N) == 2_500, C, LABELS), LabelsError, "got 100 at row 2500"),
        (PROBS, da.from_array(np.where(np.arange(N) == 2_500, C, LABELS)), LabelsError, "got 100 at row 2500"),
        (np.where(np.arange(N)[:, None] == 2_500, np.nan, PROBS), LABELS, ProbabilitiesError, "nan at row 2500"),
        (PROBS[:, 0], LABELS, ProbabilitiesError, "got shape"),
        (PROBS[:0], LABELS[:0], ProbabilitiesError, "at least one row"),
        (PROBS.astype(str), LABELS, ProbabilitiesError, "numeric"),
        (PROBS, da.from_array(np.array([*LABELS[:-1], None], object), chunks=N), LabelsError, "None at row 2999"),
    ],
)
def test_unusable_input_is_refused(probs, labels, error, message):
    with pytest.raises(error, match=message):
        dualt.estimate_transition(da.from_array(probs, chunks=600), labels, "spade")


def test_a_series_is_no_table_of_probabilities():
    with pytest.raises(
        ProbabilitiesError, match=r"at least two classes \(columns\), got 1\. For two classes pass both"
    ):
        dualt.estimate_transition(dd.from_pandas(pd.Series(PROBS[:, 0]), npartitions=2), LABELS)


def test_on_a_cluster_the_result_is_the_same_though_a_worker_dies(cluster, expected, tmp_path):
    fatal = tmp_path / "killed"

    def kill_once(block):
        if block[0, 0] == PROBS[1_200, 0] and not fatal.exists():
            fatal.write_text(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGKILL)
        return block

    with distributed.Client(cluster) as client:
        workers = set(client.run(os.getpid).values())
        probs = da.from_array(PROBS, chunks=(600, C)).map_blocks(kill_once, meta=np.empty((0, C)))
        same(dualt.estimate_transition(probs, LABELS), expected)
        assert int(fatal.read_text()) in workers
        assert os.getpid() not in workers


@pytest.fixture
def shards(tmp_path):
    """Three shards of 1,000 rows each, a folder for probabilities and one for labels."""
    for name in ("probs", "labels"):
        (tmp_path / name).mkdir()
    for number in range(3):
        part = slice(1_000 * number, 1_000 * (number + 1))
        np.save(tmp_path / "probs" / f"{number}.npy", PROBS[part])
        np.save(tmp_path / "labels" / f"{number}.npy", LABELS[part])
    return tmp_path


def test_the_command_line_sends_paths_to_a_cluster(cluster, shards, monkeypatch, expected):
    monkeypatch.chdir(shards)
    found = json.loads(run("estimate", "probs", "labels", "--dask", cluster.scheduler_address, "--json").stdout)
    assert found["diagnostics"]["label_counts"] == expected.diagnostics.label_counts.tolist()
    np.testing.assert_allclose(found["transition"], expected.transition, atol=0.03)


def test_what_is_wrong_in_a_shard_is_told_in_one_line(cluster, shards):
    wrong = PROBS[1_000:2_000].copy()
    wrong[7, 0] = 9
    np.save(shards / "probs" / "1.npy", wrong)
    result = run("estimate", shards / "probs", shards / "labels", "--dask", cluster.scheduler_address, code=2)
    assert "1.npy" in result.stderr
    assert "row 1007" in result.stderr
    assert result.stderr.count("\n") == 1


def test_two_workers_of_this_machine(shards):
    target = shards / "matrix.npy"
    run("estimate", shards / "probs", shards / "labels", "--dask", "local", "-e", "spade", "-o", target)
    np.testing.assert_array_equal(np.load(target), dualt.estimate_transition(PROBS, LABELS, "spade").transition)


def test_files_read_by_workers_are_those_read_here(shards):
    posterior = NoisyPosterior.from_blocks(open_shards(shards / "probs", shards / "labels")[0])
    remote = DaskPosterior.of(posterior)
    assert same_summary(remote.summary, posterior.summary)
    np.testing.assert_array_equal(remote.take(np.array([2_999, 0]))[0], PROBS[[2_999, 0]])


def test_a_cluster_that_is_not_there_is_named(shards, monkeypatch):
    monkeypatch.setattr("dualt.rows.dask._TIMEOUT", "1s")
    message = refused("estimate", shards / "probs", shards / "labels", "--dask", "tcp://127.0.0.1:9")
    assert "Expected a Dask scheduler at tcp://127.0.0.1:9" in message
    assert "dask scheduler" in message


def test_verified_rows_are_known_to_the_issues_of_a_cluster():
    rows = np.random.default_rng(0).choice(len(LABELS), 60, replace=False)
    lazily = da.from_array(PROBS, chunks=(400, -1))
    known = dualt.find_label_issues(PROBS, LABELS, verified=(rows, CLEAN[rows])).to_frame()
    frame = dualt.find_label_issues(lazily, LABELS, verified=(rows, CLEAN[rows])).compute()
    np.testing.assert_allclose(frame["probability_right"], known["probability_right"], atol=1e-5)
    np.testing.assert_array_equal(frame["suggested"].to_numpy()[rows], known["suggested"].to_numpy()[rows])
    assert (frame["is_issue"] == known["is_issue"]).mean() > 0.99


def in_partitions(values, n_partitions=3):
    return dd.from_pandas(values, npartitions=n_partitions, sort=False)


@pytest.mark.parametrize("index", [np.arange(N) + 7, np.arange(N).astype(str)], ids=["numbers", "texts"])
def test_labels_are_brought_into_the_order_of_the_partitions_and_those_of_other_rows_refused(index, expected):
    frame, labels = FRAME.set_axis(index), pd.Series(LABELS, index)
    mixed = labels.sample(frac=1, random_state=0)
    for own in (labels, in_partitions(labels, 5), labels.to_numpy(), mixed, in_partitions(mixed)):
        assert same_summary(dualt.estimate_transition(in_partitions(frame), own).rows_summary, expected.rows_summary)
    with pytest.raises(InputError, match=r"index of the probabilities.*to_numpy"):
        dualt.estimate_transition(in_partitions(frame), labels.reset_index(drop=True))


def test_probabilities_of_two_decimals_are_scaled_in_every_partition():
    rounded, labels = np.round(PROBS[:600, :3] + 0.1, 2), LABELS[:600] % 3
    rounded = np.round(rounded / rounded.sum(axis=1, keepdims=True), 2)
    assert np.abs(rounded.sum(axis=1) - 1).max() > 0.005
    for lazily in (da.from_array(rounded, chunks=(200, 3)), in_partitions(pd.DataFrame(rounded))):
        same(dualt.estimate_transition(lazily, labels, "t"), dualt.estimate_transition(rounded, labels, "t"))
