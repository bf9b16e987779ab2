"""Arrays of other libraries are read as they are, and give what NumPy's give."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest

import dualt
from dualt.errors import InputError

RNG = np.random.default_rng(0)
PROBS = RNG.dirichlet(np.ones(3), 200).astype(np.float32)
LABELS = (PROBS.cumsum(axis=1) < RNG.random((200, 1))).sum(axis=1).clip(0, 2)
NAMES = np.array(["cat", "dog", "fox"])


class Column(Sequence):
    """A column of a Hugging Face data set: a sequence that reads its file for every access."""

    def __init__(self, values):
        self.values, self.reads = values, 0

    def __len__(self):
        return len(self.values)

    def __getitem__(self, key):
        self.reads += 1
        return self.values[key]


class DataSet:
    """A Hugging Face data set: columns by name, rows by number, and nothing that NumPy knows."""

    def __init__(self, columns):
        self.columns_ = columns

    @property
    def column_names(self):
        return list(self.columns_)

    def __len__(self):
        return len(next(iter(self.columns_.values())))

    def __getitem__(self, key):
        return Column(self.columns_[key]) if isinstance(key, str) else {n: c[key] for n, c in self.columns_.items()}


def data_set():
    return DataSet({name: PROBS[:, at].tolist() for at, name in enumerate(NAMES)}), Column(NAMES[LABELS].tolist())


def polars():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(PROBS, schema=list(NAMES))
    return frame, polars.Series(NAMES[LABELS], dtype=polars.Categorical)


def tensors(**changes):
    torch = pytest.importorskip("torch")
    return torch.tensor(PROBS, **changes), torch.tensor(LABELS)


def arrow():
    arrow = pytest.importorskip("pyarrow")
    return arrow.table({name: PROBS[:, place] for place, name in enumerate(NAMES)}), arrow.array(NAMES[LABELS])


KINDS = {
    "tensors": tensors,
    "a tensor on the graph": lambda: tensors(requires_grad=True),
    "tensors in lists": lambda: tuple(map(list, tensors())),
    "columns": lambda: (Column(PROBS.tolist()), Column(LABELS.tolist())),
    "arrow": arrow,
    "a data set": data_set,
    "polars": polars,
}


@pytest.mark.parametrize("kind", KINDS)
def test_they_give_what_numpy_gives(kind):
    probs, labels = KINDS[kind]()
    expected = dualt.estimate_transition(PROBS, LABELS).transition
    # Rows in another order in memory are summed in another order.
    np.testing.assert_allclose(dualt.estimate_transition(probs, labels).transition, expected, rtol=1e-9)
    found, wanted = dualt.find_label_issues(probs, labels), dualt.find_label_issues(PROBS, LABELS)
    np.testing.assert_array_equal(found.ranking, wanted.ranking)


def test_half_precision_tensors():
    probs, labels = tensors()
    for short in (probs.half(), probs.bfloat16()):
        found = dualt.estimate_transition(short, labels).transition
        expected = dualt.estimate_transition(short.float().numpy(), LABELS).transition
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_a_column_is_read_whole_and_not_entry_by_entry():
    labels = Column(LABELS.tolist())
    dualt.estimate_transition(PROBS, labels)
    assert labels.reads == 1


def test_the_names_of_an_arrow_table_order_the_classes():
    table, labels = arrow()
    turned = table.select(["fox", "cat", "dog"])
    assert dualt.estimate_transition(turned, labels).class_names == ("fox", "cat", "dog")
    expected = dualt.estimate_transition(PROBS[:, [2, 0, 1]], NAMES[LABELS], class_names=["fox", "cat", "dog"])
    np.testing.assert_array_equal(dualt.estimate_transition(turned, labels).transition, expected.transition)


def test_a_sparse_tensor_is_refused_with_the_remedy():
    probs, labels = tensors()
    with pytest.raises(InputError, match="to_dense"):
        dualt.estimate_transition(probs.to_sparse(), labels)


@pytest.mark.parametrize("kind", ["Int64", "string", "boolean", "Float64"])
def test_missing_labels_of_a_pandas_array_are_left_out_as_those_of_a_series(kind):
    probs, labels = PROBS[:, :2] / PROBS[:, :2].sum(axis=1, keepdims=True), (LABELS > 0).astype(int)
    series = pd.Series(NAMES[labels] if kind == "string" else labels).astype(kind)
    series[3] = pd.NA
    expected, found = (dualt.find_label_issues(probs, given) for given in (series, series.array))
    np.testing.assert_array_equal(found.probability_right, expected.probability_right)
    assert np.flatnonzero(~found.labelled).tolist() == [3]
