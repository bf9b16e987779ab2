"""Imports point one way, between floors and inside them; an estimate loads little; only the command line prints."""

import ast
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import dualt

ROOT = Path(dualt.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))

# The floors of the house, from the ground up: each may import those before it.
FLOORS = (
    "errors", "validation", "labels", "rng", "files", "kernels", "transition", "noise", "rows", "io", "results",
    "votes", "audit", "estimators", "issues", "crossfit", "classifier", "datasets", "report", "nn",
    "losses", "reproduce", "cli",
)  # fmt: skip
# Methods of results that hand themselves to a later floor, imported when they are called.
DOORS = {("issues/label_issues.py", "report")}
# Outside the floors: the public names, read by any for the version, and `python -m dualt`.
ENTRANCES = ("__init__", "__main__")


def running_nodes(node):
    """Walk the tree, leaving out what is imported for type checking only."""
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test)):
            yield child
            yield from running_nodes(child)


def imported_modules(path, root):
    """Yield the modules of the package that a file imports, as paths below `root` without ending."""
    for node in running_nodes(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            package, *parts = name.split(".")
            if package == "dualt":
                yield module_of(parts, root)


def module_of(parts, root):
    """Return the longest prefix of dotted `parts` that is a module: of rows.summary.summarize, rows/summary."""
    for length in range(len(parts), 0, -1):
        place = root.joinpath(*parts[:length])
        if place.with_suffix(".py").exists():
            return "/".join(parts[:length])
        if (place / "__init__.py").exists():
            return "/".join([*parts[:length], "__init__"])
    return "__init__"


def floor_of(module):
    return module.split("/")[0]


def wrong_imports(root):
    """Return what breaks the order of the floors, or makes a circle inside one, in words."""
    graph = {
        path.relative_to(root).with_suffix("").as_posix(): set(imported_modules(path, root))
        for path in sorted(root.rglob("*.py"))
    }
    found = []
    for module, imported in graph.items():
        floor = floor_of(module)
        if floor in ENTRANCES:
            continue
        if floor not in FLOORS:
            found.append(f"{module} is on no floor")
            continue
        for other in sorted(set(map(floor_of, imported)) & set(FLOORS)):
            later = FLOORS.index(other) > FLOORS.index(floor)
            if later and (f"{module}.py", other) not in DOORS:
                found.append(f"{module} imports {other}, a later floor")
    for floor in FLOORS:
        inside = {module: {other for other in imported if floor_of(other) == floor and other != module}
                  for module, imported in graph.items() if floor_of(module) == floor}  # fmt: skip
        try:
            tuple(TopologicalSorter(inside).static_order())
        except CycleError as error:
            found.append(f"a circle inside {floor}: {' → '.join(error.args[1])}")
    return found


def test_imports_point_one_way():
    assert wrong_imports(ROOT) == []


def test_a_file_that_breaks_the_order_is_found(tmp_path):
    for name, text in {
        "rows/blocks.py": "from dualt.estimators.spade import spade",
        "estimators/spade.py": "def spade():\n    from dualt.cli import main",
        "io/load.py": "from dualt.io.tables import open_table",
        "io/tables.py": "import dualt.io.load",
        "utils.py": "",
        "cli/__init__.py": "import dualt.rows.posterior",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert sorted(wrong_imports(tmp_path)) == [
        "a circle inside io: io/load → io/tables → io/load",
        "estimators/spade imports cli, a later floor",
        "rows/blocks imports estimators, a later floor",
        "utils is on no floor",
    ]


def test_dask_is_imported_in_one_file():
    found = {
        path.relative_to(ROOT).as_posix()
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text()))
        for name in outside_packages(node)
        if name in ("dask", "distributed")
    }
    assert found == {"rows/dask.py"}


def outside_packages(node):
    """Return the packages that an import statement names."""
    if isinstance(node, ast.ImportFrom):
        return [(node.module or "").split(".")[0]]
    return [alias.name.split(".")[0] for alias in node.names] if isinstance(node, ast.Import) else []


def test_no_file_is_long():
    lengths = {str(path.relative_to(ROOT)): path.read_text().count("\n") for path in FILES}
    assert {name: length for name, length in lengths.items() if length > 500} == {}


def test_only_the_command_line_prints_and_nothing_seeds_the_global_generator():
    for path in FILES:
        calls = {ast.unparse(node.func) for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)}
        assert "print" not in calls or path.parent.name == "cli", path
        assert not calls & {"np.random.seed", "torch.manual_seed"}, path


def loaded_modules(code):
    """Return the modules that a fresh Python has after running `code`."""
    script = f"import sys\n{code}\nprint(chr(10).join(sorted(sys.modules)), file=sys.stderr)"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(run.stderr.split())


def test_importing_dualt_loads_nothing_heavy():
    assert not loaded_modules("import dualt") & {"torch", "numpy", "sklearn", "pandas", "matplotlib"}


def test_estimating_from_files_loads_neither_torch_nor_scikit_learn():
    code = "import dualt; dualt.estimate_transition([[.9, .1], [.2, .8]], [0, 1]).warnings; dualt.io; dualt.noise"
    assert not loaded_modules(code) & {"torch", "sklearn", "pandas", "matplotlib", "pyarrow", "dask"}


def test_an_estimate_loads_few_of_our_modules():
    code = "import dualt; dualt.estimate_transition([[.9, .1], [.2, .8]], [0, 1]).warnings"
    found = sorted(name for name in loaded_modules(code) if name.split(".")[0] == "dualt")
    assert len(found) <= 45, found


def test_the_data_sets_and_the_classes_need_no_torch():
    code = "import dualt, dualt.datasets, dualt.report; dualt.DualTEstimator; dualt.datasets.load_dataset('synthetic')"
    assert "torch" not in loaded_modules(code)
