"""Strategies for arguments: arrays of every type and layout, labels of every kind, and things that are neither."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

DTYPES = ("f2", "f4", "f8", ">f4", ">f8", "g", "i1", "u2", "i8", ">i4", "?")


def _read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


def _strided(array):
    wide = np.zeros((2 * array.shape[0], 3 * array.shape[1]), array.dtype)
    wide[::2, ::3] = array
    return wide[::2, ::3]


def _unaligned(array):
    packed = np.zeros(array.nbytes + 1, np.uint8)
    view = packed[1:].view(array.dtype).reshape(array.shape)
    view[...] = array
    return view


LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "strided": _strided,
    "backwards": lambda array: array[::-1].copy()[::-1],
    "mirrored": lambda array: array[:, ::-1].copy()[:, ::-1],
    "read-only": _read_only,
    "unaligned": _unaligned,
}

CELLS = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.integers(), st.floats(), st.text(max_size=3),
    st.binary(max_size=3), st.just(np.datetime64("NaT")), st.tuples(st.integers(0, 1)), st.complex_numbers(),
    st.just(2**70),
)  # fmt: skip
_SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
JUNK = st.one_of(
    hnp.arrays(st.one_of(hnp.scalar_dtypes(), hnp.unicode_string_dtypes(max_len=3)), _SHAPES),
    hnp.arrays(np.dtype([("a", "f8"), ("b", "i4")]), _SHAPES),
    hnp.arrays(np.dtype(object), _SHAPES, elements=CELLS),
    st.recursive(CELLS, lambda inner: st.lists(inner, max_size=4), max_leaves=12),
    st.just({}), st.just({1, 2}), st.just(range(4)), st.just("text"),
)  # fmt: skip


def scalars():
    """Numbers and what is given instead of them."""
    return st.one_of(
        st.integers(-2, 40), st.floats(), st.floats(0, 1), st.none(), st.booleans(), st.text(max_size=3),
        st.just(10**400), st.just(np.float32(0.5)), st.just(1j), st.just([1]), st.just(np.array([0.5, 0.1])),
    )  # fmt: skip


@st.composite
def stochastic(draw, n_rows=None):
    """A table whose rows sum to one, of any type and layout; now and then one entry is spoilt."""
    n_classes = draw(st.integers(2, 5))
    rows = n_classes if n_rows == "square" else draw(st.integers(1, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    table = rng.dirichlet(np.full(n_classes, draw(st.sampled_from([0.01, 0.5, 5.0]))), rows)
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    if dtype.kind in "biu" or draw(st.integers(0, 5)) == 0:
        table = np.eye(n_classes)[table.argmax(axis=1)]
    table = table.astype(dtype)
    if draw(st.integers(0, 3)) == 0:
        value = draw(st.floats()) if dtype.kind == "f" else draw(st.integers(0, 1))
        with np.errstate(over="ignore"):
            table[draw(st.integers(0, rows - 1)), 0] = value
    table = LAYOUTS[draw(st.sampled_from(sorted(LAYOUTS)))](table)
    return draw(st.sampled_from([table, table, table, table.astype(object), table.tolist()]))


def probabilities():
    return st.one_of(stochastic(), stochastic(), stochastic(), JUNK)


def matrices():
    return st.one_of(stochastic("square"), stochastic("square"), stochastic("square"), JUNK)


_NAMES = np.array(["", "a", "b\0", "ä", "=c", "10", "9", "\U0001f600", "x" * 300])


@st.composite
def labels_for(draw, table):
    """Labels for the rows of a table: numbers, names, one-hot rows, of mixed kinds, some missing, or no labels."""
    shape = np.shape(table) if isinstance(table, (np.ndarray, list)) and _is_regular(table) else (3, 2)
    n_rows, n_classes = (shape[0], shape[1]) if len(shape) == 2 else (3, 2)
    n_classes = max(1, n_classes)
    codes = np.random.default_rng(draw(st.integers(0, 99))).integers(0, n_classes, n_rows)
    names = np.roll(_NAMES, draw(st.integers(0, 8)))[:n_classes]
    kinds = {
        "int": lambda: codes.astype(draw(st.sampled_from(["i1", "u1", "i4", "u8", ">i2"]))),
        "float": lambda: codes.astype(draw(st.sampled_from(["f2", "f4", ">f8"]))),
        "bool": lambda: codes.astype(bool),
        "str": lambda: names[codes % len(names)] if n_rows else names[:0],
        "bytes": lambda: np.char.encode(names[codes % len(names)], "utf-8") if n_rows else names[:0],
        "object": lambda: names[codes % len(names)].astype(object),
        "one-hot": lambda: np.eye(n_classes)[codes].astype(draw(st.sampled_from(["f4", "i1", "?"]))),
        "list": codes.tolist,
        "mixed": lambda: [draw(CELLS) if place % 7 == 0 else code for place, code in enumerate(codes.tolist())],
        "missing": lambda: np.where(np.arange(n_rows) % 5 == 0, np.nan, codes),
        "none": lambda: [None if place % 5 == 4 else code for place, code in enumerate(codes.tolist())],
        "column": lambda: codes[:, None],
        "backwards": lambda: codes[::-1].copy()[::-1],
        "shorter": lambda: codes[:-1],
        "off": lambda: codes + draw(st.sampled_from([1, -1, 2**40])),
        "junk": lambda: draw(JUNK),
    }
    usual = ["int", "float", "bool", "str", "bytes", "object", "one-hot", "list"]
    return kinds[draw(st.sampled_from([*kinds, *usual]))]()


def _is_regular(table) -> bool:
    try:
        np.shape(table)
    except ValueError:
        return False
    return True


def class_names():
    names = st.lists(st.one_of(st.text(max_size=3), st.integers(-1, 12), st.none(), st.floats()), max_size=5)
    return st.one_of(st.none(), st.none(), st.none(), names, st.just("abc"), st.just(_NAMES[:3]), st.just(5), JUNK)
