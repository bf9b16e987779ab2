# make demo    set up .venv and show the main job         make test   the same, then the tests
# make lint    style and types                            make bench  speed and accuracy beside peers
PYTHON ?= python3
BIN := .venv/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test lint bench clean

demo: .venv/installed
	$(BIN)/dualt demo

test: .venv/installed
	$(BIN)/python -m pytest -n 2 --doctest-modules

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv/installed
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[train,tables,cluster,dev,bench]'
	for part in estimate issues classifier training; do $(BIN)/python bench/$$part.py || exit 1; done

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[train,tables,cluster,dev]'
	touch $@

clean:
	rm -rf .venv dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
