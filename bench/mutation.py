"""Do the tests notice? Small bugs, put into the core one at a time, and how many of them a test catches.

    python bench/mutation.py [estimators votes ...] [--count 40] [--seed 0] [--jobs 2]

Each bug changes one operator, comparison, condition, axis or small number of a copy of the source; the tests of the
mirrored folder then run against that copy. What survives is printed as file:line and both versions of the code.
Messages of errors, types and constants that only set the cost (`_NAME = ...`) are left alone.
"""

from __future__ import annotations

import argparse
import ast
import copy
import itertools
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
# What is tried, and the tests that should notice.
CORE = {
    "estimators": ["tests/estimators", "tests/test_public_api.py"],
    "votes": ["tests/votes"],
    "rows": ["tests/rows", "tests/test_array_likes.py"],
    "issues": ["tests/issues"],
    "audit": ["tests/audit"],
    "crossfit": ["tests/test_crossfit.py"],
    "transition.py": ["tests/test_transition.py"],
    "nn/losses.py": ["tests/nn/test_corrected_losses.py", "tests/nn/test_batch_selection.py"],
}
SWAPS: dict[type[Any], type[Any]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
NAMES = {"minimum": "maximum", "maximum": "minimum", "min": "max", "max": "min", "argmax": "argmin", "argmin": "argmax"}
TIMEOUT = 300


def places(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that a bug can change, leaving out annotations, messages and constants of cost."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, (ast.Raise, ast.Import, ast.ImportFrom, ast.JoinedStr, ast.AnnAssign)):
            continue
        if isinstance(child, ast.Assign) and isinstance(tree, ast.Module):
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


def survives(mutant: Mutant, tests: list[str]) -> bool:
    """Return whether all tests pass with the bug."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "src", folder, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
        Path(folder, mutant.file.relative_to(ROOT / "src")).write_text(mutant.source, encoding="utf-8")
        environment = os.environ | {"PYTHONPATH": folder, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "not slow", *tests]
        try:
            found = subprocess.run(
                command, cwd=ROOT, env=environment, capture_output=True, timeout=TIMEOUT, check=False
            )
        except subprocess.TimeoutExpired:
            return False
    return found.returncode == 0


def main() -> None:
    """Try bugs in each package and print the score."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="*", default=list(CORE), metavar="package", help=", ".join(CORE))
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    for package in options.packages:
        drawn = list(mutants(package, options.count, options.seed))
        with ThreadPoolExecutor(options.jobs) as pool:
            alive = list(pool.map(partial(survives, tests=CORE[package]), drawn))
        survivors = list(itertools.compress(drawn, alive))
        print(f"{package}: {len(drawn) - len(survivors)} of {len(drawn)} caught", flush=True)
        for mutant in survivors:
            print(f"  {mutant.file.relative_to(ROOT)}:{mutant.line}: {mutant.before}  ->  {mutant.after}", flush=True)


if __name__ == "__main__":
    main()
