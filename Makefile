# make demo    set up .venv with what the main job needs, and show it
# make test    set up .venv with everything, then the tests, in some minutes; make test-all adds the slow ones, make test-slow runs only those
# make lint    style and types
# make docs    the site, into site/: open site/index.html
# make bench   speed and accuracy beside peers, into the pages
# make bench-scale   data larger than memory, beside reading it and beside a peer (7 GB of disk, some minutes)
PYTHON ?= python3
BIN := .venv/bin
# Tests of a file stay together, with what they share, until another process has none left and takes some.
SHARED := --dist worksteal
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test test-all test-slow lint docs bench bench-scale clean

demo: .venv/demo
	$(BIN)/dualt demo

test: .venv/installed
	$(BIN)/python -m pytest $(SHARED) -n 2 --doctest-modules -m "not slow"

test-all: test test-slow

test-slow: .venv/installed
	$(BIN)/python -m pytest $(SHARED) -n 3 -m slow $(SLOW)  # three: they wait for processes of their own

# Here hypothesis tries more examples; the variable reaches the tests of `make test` too.
test-all test-slow: export HYPOTHESIS_PROFILE := ci

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: .venv/docs
	$(BIN)/sphinx-build --fail-on-warning --keep-going --quiet --doctree-dir site/.doctrees docs site

bench: .venv/installed
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[train,tables,cluster,dev,bench]'
	$(BIN)/python bench/page.py estimate threads issues coverage classifier training floor families several_models votes

bench-scale: .venv/installed
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[train,tables,cluster,dev,bench]'
	$(BIN)/python bench/page.py scale files

# The base install; where everything is installed, there is nothing to do.
.venv/demo: pyproject.toml constraints.txt hatch_build.py $(wildcard src/dualt/kernels/*.[ch])
	test -e .venv/installed || { $(PYTHON) -m venv .venv && $(BIN)/pip install --quiet --constraint constraints.txt --editable .; }
	touch $@

.venv/installed: pyproject.toml constraints.txt hatch_build.py $(wildcard src/dualt/kernels/*.[ch])
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[train,tables,cluster,dev]'
	touch $@

.venv/docs: .venv/installed
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[train,tables,cluster,dev,docs]'
	touch $@

clean:
	rm -rf .venv dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
