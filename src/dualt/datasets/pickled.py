"""Read a pickle of plain data without calling anything that it names.

`pickletools.genops` splits the file into operations; the interpreter below carries out those that
build numbers, strings, lists, tuples and dicts on a stack of its own. Of the objects that a pickle
can name it knows three: numpy's array and dtype, which it builds itself from checked sizes, and the
encoding of text into bytes. Anything else is refused, so a hostile file cannot run code.
"""

from __future__ import annotations

import io
import math
import pickletools
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.errors import FileError
from dualt.files import open_input

_NAMES = {
    "numpy.core.multiarray _reconstruct": "array",
    "numpy._core.multiarray _reconstruct": "array",
    "numpy ndarray": "ndarray",
    "numpy dtype": "dtype",
    "_codecs encode": "encode",
}
_DTYPES = frozenset({"b1", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8"})


class _Name(str):
    """A name out of `_NAMES`; a class of its own so that no string of the file can pass for one."""

    __slots__ = ()


def read_pickle(path: Path) -> Any:
    """Return the numbers, strings, lists, tuples, dicts and arrays pickled in `path`; keys come as `str`."""
    with open_input(path) as file:
        # In memory: a file claims lengths that a read from it would allocate at once.
        stream = io.BytesIO(file.read())
    try:
        machine = _Machine(budget=2 * len(stream.getbuffer()))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of backslashes in strings, which we refuse anyway
            for operation, argument, _ in pickletools.genops(stream):
                if operation.name not in _OPERATIONS:
                    raise ValueError(f"the operation {operation.name} is not allowed")
                _OPERATIONS[operation.name](machine, argument)
        if stream.read(1):
            raise ValueError("more bytes follow its end")
        return machine.stack.pop()
    except (ValueError, IndexError, KeyError, TypeError) as error:
        raise FileError(
            f"Refused {path}: expected a whole pickle of nothing but arrays, numbers, strings, lists and"
            f" dicts, but {error}. Get it again from its publisher."
        ) from error


class _Machine:
    """The stack, the marks on it and the memo; `budget` is how many bytes may be copied."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def pop_last(self, count: int) -> list[Any]:
        if count > len(self.stack):
            raise ValueError("its stack is empty")
        items = self.stack[len(self.stack) - count :]
        del self.stack[len(self.stack) - count :]
        return items

    def pop_marked(self) -> list[Any]:
        return self.pop_last(len(self.stack) - self.marks.pop())

    def extend(self, items: list[Any]) -> None:
        self._top(list).extend(items)

    def update(self, items: list[Any]) -> None:
        target = self._top(dict)
        for key, value in zip(items[::2], items[1::2], strict=True):
            # Only text: hashing nested tuples, the other possible keys, can be made to take for ever.
            if type(key) not in (str, bytes):
                raise ValueError(f"a key of a dict is of type {type(key).__name__}")
            self.spend(len(key))
            target[key if isinstance(key, str) else key.decode("latin-1")] = value

    def _top(self, kind: type) -> Any:
        if type(self.stack[-1]) is not kind:
            raise ValueError(f"it adds items to something that is not a {kind.__name__}")
        return self.stack[-1]

    def name(self, full_name: str) -> None:
        if full_name not in _NAMES:
            raise ValueError(f"it names {full_name.replace(' ', '.')!r:.80}")
        self.push(_Name(_NAMES[full_name]))

    def reduce(self) -> None:
        name, arguments = self.pop_last(2)
        if type(name) is not _Name or type(arguments) is not tuple:
            raise ValueError("it calls something that is not a function")
        text = arguments[0] if type(arguments[0]) is str else ""
        if name == "array":
            self.push(np.empty(0, np.uint8))
        elif name == "dtype" and text in _DTYPES:
            self.push(np.dtype(f"<{text}"))
        elif name == "encode":
            self.spend(len(text))
            self.push(text.encode("latin-1"))
        else:
            raise ValueError(f"it calls {name} with unusual arguments")

    def spend(self, n_bytes: int) -> None:
        """Refuse a small file that repeats itself into a large memory."""
        self.budget -= n_bytes
        if self.budget < 0:
            raise ValueError("it blows itself up")

    def build(self) -> None:
        target, state = self.pop_last(2)
        if isinstance(target, np.dtype):
            _check_byte_order(state)
        elif isinstance(target, np.ndarray):
            self.fill(target, state)
        else:
            raise ValueError(f"it sets the state of a {type(target).__name__}")
        self.push(target)

    def fill(self, array: NDArray[Any], state: tuple[Any, ...]) -> None:
        """Give `array` the shape, type and bytes of `state`, once they are known to fit each other."""
        _, shape, dtype, fortran, data = state
        data = data.encode("latin-1") if type(data) is str else data
        if type(data) is not bytes or not isinstance(dtype, np.dtype):
            raise ValueError("an array holds something else than numbers")
        if type(shape) is not tuple or len(shape) > 8 or any(type(side) is not int or side < 0 for side in shape):
            raise ValueError("the shape of an array is not a few whole numbers")
        if math.prod(shape) * dtype.itemsize != len(data):
            raise ValueError(f"an array has {len(data):,} bytes, which do not fit its shape")
        self.spend(len(data))
        array.__setstate__((1, shape, dtype, bool(fortran), data))  # type: ignore[arg-type]


def _check_byte_order(state: tuple[Any, ...]) -> None:
    _, order, subtype, names, fields, *_ = state
    if order not in ("|", "<") or (subtype, names, fields) != (None, None, None):
        raise ValueError("an array is of an unusual type")


_Operation = Callable[[_Machine, Any], Any]
_PUSHED = (
    "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINSTRING", "SHORT_BINSTRING", "BINUNICODE",
    "SHORT_BINUNICODE", "BINBYTES", "SHORT_BINBYTES",
)  # fmt: skip
_OPERATIONS: dict[str, _Operation] = {
    **dict.fromkeys(_PUSHED, _Machine.push),
    **dict.fromkeys(("PROTO", "FRAME", "STOP"), lambda machine, _: None),
    "NONE": lambda machine, _: machine.push(None),
    "NEWTRUE": lambda machine, _: machine.push(True),
    "NEWFALSE": lambda machine, _: machine.push(False),
    "EMPTY_LIST": lambda machine, _: machine.push([]),
    "EMPTY_DICT": lambda machine, _: machine.push({}),
    "EMPTY_TUPLE": lambda machine, _: machine.push(()),
    "TUPLE1": lambda machine, _: machine.push(tuple(machine.pop_last(1))),
    "TUPLE2": lambda machine, _: machine.push(tuple(machine.pop_last(2))),
    "TUPLE3": lambda machine, _: machine.push(tuple(machine.pop_last(3))),
    "TUPLE": lambda machine, _: machine.push(tuple(machine.pop_marked())),
    "MARK": lambda machine, _: machine.marks.append(len(machine.stack)),
    **dict.fromkeys(("BINGET", "LONG_BINGET"), lambda machine, key: machine.push(machine.memo[key])),
    **dict.fromkeys(("BINPUT", "LONG_BINPUT"), lambda machine, key: machine.memo.update({key: machine.stack[-1]})),
    "MEMOIZE": lambda machine, _: machine.memo.update({len(machine.memo): machine.stack[-1]}),
    "APPEND": lambda machine, _: machine.extend(machine.pop_last(1)),
    "APPENDS": lambda machine, _: machine.extend(machine.pop_marked()),
    "SETITEM": lambda machine, _: machine.update(machine.pop_last(2)),
    "SETITEMS": lambda machine, _: machine.update(machine.pop_marked()),
    "GLOBAL": _Machine.name,
    "STACK_GLOBAL": lambda machine, _: machine.name(" ".join(machine.pop_last(2))),
    "REDUCE": lambda machine, _: machine.reduce(),
    "BUILD": lambda machine, _: machine.build(),
}
