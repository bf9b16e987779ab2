"""The compiled library reads and writes only what it was given: watched by the compiler's sanitizers."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "src" / "dualt" / "kernels"
# Exactly as much memory as is needed, from malloc, so that one byte beyond it is noticed.
PROGRAM = """
import sys
from pathlib import Path
import numpy as np
from dualt import kernels
from dualt.errors import InputError
kernels.library, _ = kernels._load(Path(sys.argv[1]))
assert kernels.library is not None
from dualt.kernels.posterior import PosteriorKernel
from dualt.rows.summary import summarize
from dualt.labels import LabelCoder
rng = np.random.default_rng(0)
for number in range(400):
    n_rows, n_classes = rng.integers([1, 2], [200, 40])
    n_classes = [n_classes, 300, 101][(number % 10 == 0) + 2 * (number % 10 == 5)]
    dtype, spread = [np.float32, np.float64][number % 2], rng.choice([0.3, 0.01])
    probs = rng.dirichlet(np.full(n_classes, spread), n_rows).astype(dtype)
    if number % 3 == 0:
        probs[rng.integers(n_rows), rng.integers(n_classes)] = rng.choice([-1, np.nan, np.inf, -0.0])
    labels, coder = rng.integers(n_classes, size=n_rows), LabelCoder(tuple(map(str, range(n_classes))))
    try:
        summarize(probs, labels, coder)
    except InputError:
        pass
    noise = rng.dirichlet(np.full(n_classes, rng.choice([0.2, 0.002, 100, 1e6])), n_classes)
    matrix = (0.5 * np.eye(n_classes) + 0.5 * noise).astype(dtype)
    kernel = PosteriorKernel(matrix, 3)
    kernel.posterior(probs)
    kernel.clearest(probs)
    kernel.scores(probs, np.where(rng.random(n_rows) < 0.1, rng.integers(-(2**62), 2**62, n_rows), labels))
print("clean")
"""


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory):
    """Return the library with sanitizers, and what must be loaded before Python for it to work."""
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("no gcc")
    library = tmp_path_factory.mktemp("sanitized") / "compiled.so"
    flags = ["-g", "-O1", "-fPIC", "-shared", "-Wno-psabi", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    built = subprocess.run([compiler, *flags, "-o", library, *SOURCES.glob("*.c"), "-lm"], check=False)
    runtimes = [
        subprocess.run(
            [compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True
        ).stdout.strip()
        for name in ("libasan.so", "libubsan.so")
    ]
    if built.returncode or not all(Path(name).is_absolute() for name in runtimes):
        pytest.skip("no sanitizers")
    return library, " ".join(runtimes)


@pytest.mark.slow
def test_nothing_beyond_the_arrays_is_touched(sanitized):
    library, runtimes = sanitized
    environment = {**os.environ, "LD_PRELOAD": runtimes, "ASAN_OPTIONS": "detect_leaks=0"}
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM, library], capture_output=True, text=True, check=False, env=environment
    )
    assert found.stdout == "clean\n", found.stderr[-2000:]
