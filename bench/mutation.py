"""Do the tests notice? Small bugs, put into the core one at a time, and how many of them a test catches.

    python bench/mutation.py [estimators votes ...] [--count 40] [--seed 0] [--jobs 2]

Each bug changes one operator, comparison, condition, axis or small number of a copy of the source; the fast tests of
the mirrored folder then run against that copy. What survives, or does not end, is printed as file:line and both
versions of the code. Error messages, types and constants of a module are left alone.
"""

from __future__ import annotations

import argparse
import ast
import copy
import itertools
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
# What is tried, and the tests that should notice.
CORE = {
    "estimators": ["tests/estimators"],
    "votes": ["tests/votes"],
    "rows": ["tests/rows", "tests/test_array_likes.py"],
    "issues": ["tests/issues", "tests/rows/test_dask.py"],
    "audit": ["tests/audit"],
    "crossfit": ["tests/test_crossfit.py", "tests/test_crossfit_models.py"],
    "transition.py": ["tests/test_transition.py", "tests/kernels/test_posterior_kernel.py"],
    "nn/losses.py": ["tests/nn/test_losses.py"],
}
SWAPS: dict[type[Any], type[Any]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
NAMES = {"minimum": "maximum", "maximum": "minimum", "min": "max", "max": "min", "argmax": "argmin", "argmin": "argmax"}
# Tests that take this many times as long as without the bug, and a minute, are stopped: it is listed, and counts as
# caught, being an endless loop.
PATIENCE = 5
# Imported once, before the processes that run the tests are forked.
PRELOAD = [
    "pytest",
    "hypothesis",
    "pandas",
    "scipy.stats",
    "scipy.optimize",
    "sklearn.linear_model",
    "sklearn.pipeline",
]


def places(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that a bug can change, leaving out annotations, messages and constants of cost."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, (ast.Raise, ast.Import, ast.ImportFrom, ast.JoinedStr, ast.AnnAssign)):
            continue
        if isinstance(child, ast.Assign) and isinstance(tree, ast.Module):
            continue
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        yield child
        if isinstance(child, ast.FunctionDef):
            yield from places(ast.Module(body=child.body, type_ignores=[]))
        else:
            yield from places(child)


def mutate(node: ast.AST) -> bool:
    """Change the node in place; return whether there was anything to change."""
    if isinstance(node, (ast.BinOp, ast.BoolOp)) and type(node.op) in SWAPS:
        node.op = SWAPS[type(node.op)]()
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
        node.ops[0] = SWAPS[type(node.ops[0])]()
    elif isinstance(node, (ast.If, ast.IfExp)):
        node.test = ast.UnaryOp(ast.Not(), node.test)
    elif isinstance(node, ast.Constant) and type(node.value) is int and 0 <= node.value <= 3:
        node.value = 1 - node.value if node.value < 2 else node.value + 1
    elif isinstance(node, ast.Attribute) and node.attr in NAMES:
        node.attr = NAMES[node.attr]
    elif isinstance(node, ast.Name) and node.id in NAMES and isinstance(node.ctx, ast.Load):
        node.id = NAMES[node.id]
    else:
        return False
    return True


class Mutant(NamedTuple):
    """A bug: where it is, the code before and after, and the source of the file with it."""

    file: Path
    line: int
    before: str
    after: str
    source: str


def mutants(package: str, count: int, seed: int) -> Iterator[Mutant]:
    """Yield `count` bugs drawn from a package."""
    base = ROOT / "src" / "dualt" / package
    sources = {
        file: file.read_text(encoding="utf-8") for file in ([base] if base.suffix else sorted(base.glob("*.py")))
    }
    candidates = [
        (file, number)
        for file, source in sources.items()
        for number, node in enumerate(places(ast.parse(source)))
        if mutate(copy.deepcopy(node))
    ]
    for file, number in random.Random(seed).sample(candidates, min(count, len(candidates))):
        tree = ast.parse(sources[file])
        node: Any = next(itertools.islice(places(tree), number, None))
        before = ast.unparse(node.test if isinstance(node, ast.If) else node)
        mutate(node)
        after = ast.unparse(node.test if isinstance(node, ast.If) else node)
        yield Mutant(file, node.lineno, before, after, ast.unparse(tree))


def run_tests(source: str, tests: list[str]) -> None:
    """Run tests against a copy of the source and exit with pytest's code; in a forked process."""
    import hypothesis
    import pytest

    os.setsid()
    os.chdir(ROOT)
    with Path(os.devnull).open("w") as nothing:
        os.dup2(nothing.fileno(), 1)
        os.dup2(nothing.fileno(), 2)
    # The first failing example is enough: no time goes into a smaller one, and none is kept for the next bug.
    hypothesis.settings.register_profile(
        "first failure", deadline=None, max_examples=20, phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate]
    )
    os.environ |= {"HYPOTHESIS_PROFILE": "first failure", "HYPOTHESIS_STORAGE_DIRECTORY": f"{source}/.hypothesis"}
    os.environ["PYTHONPATH"] = source  # for tests that start Python themselves
    sys.path[:0] = [source, str(ROOT)]
    fast = "-x -q -p no:cacheprovider --hypothesis-seed=0 -W ignore::pytest.PytestAssertRewriteWarning"
    os._exit(pytest.main([*fast.split(), "-m", "not slow", *tests]))


def outcome(mutant: Mutant | None, tests: list[str], timeout: float | None = None) -> str:
    """Return "caught", "survived" or "timed out" for a bug, or for the source as it is."""
    if mutant is not None:  # the tests of the same name first
        tests = sorted(
            (
                str(file.relative_to(ROOT))
                for test in tests
                for file in sorted((ROOT / test).glob("test_*.py")) or [ROOT / test]
            ),
            key=lambda name: (Path(name).stem != f"test_{mutant.file.stem}", "dask" in name),
        )
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "src")
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        if mutant is not None:
            (source / mutant.file.relative_to(ROOT / "src")).write_text(mutant.source, encoding="utf-8")
        process = multiprocessing.get_context("forkserver").Process(target=run_tests, args=(str(source), tests))
        process.start()
        process.join(timeout)
        if process.pid and process.exitcode is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.join()
            return "timed out"
    if process.exitcode in (4, 5):
        raise SystemExit(f"Expected tests in {tests}, got none.")
    return "caught" if process.exitcode else "survived"


def main() -> None:
    """Try bugs in each package and print the score."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="*", default=list(CORE), metavar="package", help=", ".join(CORE))
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    multiprocessing.get_context("forkserver").set_forkserver_preload(PRELOAD)
    for package in options.packages:
        drawn, tests, start = list(mutants(package, options.count, options.seed)), CORE[package], time.monotonic()
        if outcome(None, tests) != "survived":
            raise SystemExit(f"The tests of {package} fail without any bug.")
        timeout = 60 + PATIENCE * (time.monotonic() - start)
        n_caught = 0
        with ThreadPoolExecutor(options.jobs) as pool:
            outcomes = pool.map(partial(outcome, tests=tests, timeout=timeout), drawn)
            for mutant, found in zip(drawn, outcomes, strict=True):
                n_caught += found != "survived"
                if found != "caught":
                    place = f"{mutant.file.relative_to(ROOT)}:{mutant.line}"
                    print(f"  {found} {place}: {mutant.before}  ->  {mutant.after}", flush=True)
        minutes = (time.monotonic() - start) / 60
        print(f"{package}: {n_caught} of {len(drawn)} caught, in {minutes:.1f} minutes", flush=True)


if __name__ == "__main__":
    main()
