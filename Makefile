# Every target starts from a bare clone with python3 and make: it builds .venv, installs and runs.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-all rehearse check check-all check-pythons lint format clean
.DEFAULT_GOAL := demo

.venv/.installed: pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: .venv/.installed
	$(BIN)/dpmine demo

# Whole files, so that what the tests of one share (golden values, small tables) is worked out by one process only.
test: .venv/.installed
	$(BIN)/python -m pytest -n 2 --dist loadfile

lint: .venv/.installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

# Every script in benchmarks/ on a few hundred rows, so that none stops running unnoticed.
rehearse: .venv/.installed
	$(BIN)/python -m pytest -n 2 -m benchmarks tests/benchmarks

check: lint test rehearse check-pythons

# A quick part of the tests on every other Python that is here, each in an environment of its own.
check-pythons: .venv/.installed
	$(BIN)/python .ci/other_pythons.py

# The slow tests too: many more crashes, races and draws.
check-all: lint .venv/.installed
	DPMINE_EXPLORE=1 $(BIN)/python -m pytest -n 2 --dist loadfile -m 'slow or not slow'

format: .venv/.installed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf .venv .venv-3.* .pytest_cache .mypy_cache .ruff_cache .hypothesis
