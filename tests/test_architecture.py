"""Imports point one way, only the command line prints, and nothing is ever unpickled."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import dualt

ROOT = Path(dualt.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))

LOW = {"errors", "kernels", "cells", "files", "rng", "validation", "labels", "transition", "interop", "plotting"}
FIND = {"noise", "estimators", "issues"}
DATA = {"io", "datasets", "crossfit", "classifier"}
TORCH = {"networks", "losses", "training", "methods"}
MAY_IMPORT = {
    "__init__": {"errors"},
    "__main__": {"cli"},
    "errors": set(),
    "kernels": {"errors"},
    "cells": set(),
    "cluster": {"__init__", "errors"},
    "files": {"errors"},
    "rng": {"errors"},
    "validation": {"errors"},
    "labels": {"errors", "validation"},
    "transition": {"errors", "kernels", "validation", "labels"},
    "interop": {"errors", "validation", "transition"},
    "plotting": {"errors", "validation"},
    "noise": LOW,
    "estimators": LOW,
    "issue_frames": LOW | {"estimators"},
    "issues": LOW | {"estimators", "issue_frames"},  # without a matrix it estimates one
    "io": LOW | FIND,
    "datasets": LOW | FIND | {"io"},
    "crossfit": LOW,
    "classifier": LOW | FIND | {"io", "crossfit"},
    "networks": LOW,
    "losses": LOW,
    "training": LOW | {"networks", "losses"},
    "methods": LOW | {"estimators", "networks", "losses", "training"},
    "pipeline": LOW | FIND | DATA | TORCH,
    "net_classifier": LOW | FIND | DATA | TORCH | {"pipeline"},
    "experiments": LOW | FIND | DATA | TORCH | {"cluster", "pipeline", "net_classifier"},
    "report": LOW | {"__init__", "io"},  # results are read, so their types are imported for checking only
    "cli": LOW | FIND | DATA | TORCH | {"__init__", "cluster", "pipeline", "net_classifier", "experiments", "report"},
}


def part_of(path):
    """Return the first name below `dualt`: of src/dualt/io/load.py, io."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def for_type_checking(node):
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


def running_nodes(node):
    """Walk the tree, leaving out what is imported for type checking only."""
    for child in ast.iter_child_nodes(node):
        if not for_type_checking(child):
            yield child
            yield from running_nodes(child)


def parts_of_import(node):
    """Yield the parts of `dualt` that an import statement loads."""
    if isinstance(node, ast.Import):
        modules = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and node.module == "dualt":
        modules = [f"dualt.{alias.name}" for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0, "imports are absolute"
        modules = [node.module or ""]
    else:
        return
    for module in modules:
        names = module.split(".")
        if names[0] == "dualt":
            found = names[1] if len(names) > 1 else "__init__"
            yield found if (ROOT / found).is_dir() or (ROOT / f"{found}.py").exists() else "__init__"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_down(path):
    part = part_of(path)
    assert part in MAY_IMPORT, f"say in MAY_IMPORT what {part} may import"
    imported = {found for node in running_nodes(ast.parse(path.read_text())) for found in parts_of_import(node)}
    assert imported - {part} <= MAY_IMPORT[part]


def test_the_map_has_no_circle():
    """Parts can be put in an order in which each imports only earlier ones."""
    left = {part: allowed - {part, "__init__"} for part, allowed in MAY_IMPORT.items()}
    while left:
        free = {part for part, allowed in left.items() if not allowed & left.keys()}
        assert free, f"a circle among {sorted(left)}"
        left = {part: allowed for part, allowed in left.items() if part not in free}


def called(node):
    return ast.unparse(node.func) if isinstance(node, ast.Call) else ""


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_only_the_command_line_prints_and_nothing_is_unpickled(path):
    for node in ast.walk(ast.parse(path.read_text())):
        name = called(node)
        assert name != "print" or part_of(path) == "cli"
        assert name not in ("pickle.load", "pickle.loads", "torch.load", "joblib.load", "eval", "exec")
        if name in ("np.load", "npy.read_array"):
            assert "allow_pickle=False" in ast.unparse(node)
        assert not (isinstance(node, ast.Call) and "np.random.seed" in name)


def loaded_modules(code):
    """Return the modules that a fresh Python has after running `code`."""
    script = f"import sys\n{code}\nprint(chr(10).join(sorted(sys.modules)), file=sys.stderr)"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(run.stderr.split())


def test_importing_dualt_loads_nothing_heavy():
    assert not loaded_modules("import dualt") & {"torch", "numpy", "sklearn", "pandas", "matplotlib"}


def test_estimating_from_files_loads_neither_torch_nor_scikit_learn():
    code = "import dualt; dualt.estimate_transition([[.9, .1], [.2, .8]], [0, 1]).warnings; dualt.io; dualt.noise"
    assert not loaded_modules(code) & {"torch", "sklearn", "pandas", "matplotlib", "pyarrow"}


def test_the_data_sets_and_the_classes_need_no_torch():
    code = "import dualt, dualt.datasets, dualt.report; dualt.DualTEstimator; dualt.datasets.load_dataset('synthetic')"
    assert "torch" not in loaded_modules(code)
