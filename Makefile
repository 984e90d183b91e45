# Every target sets up what it needs in .venv; `make help` lists them.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
ARGS ?=

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test lint lint-check lint-format lint-types format docs bench leaderboard clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' Makefile
	@echo 'Variables: PYTHON=python3.12 picks the interpreter that creates .venv;'
	@echo '           ARGS="-k name" is handed to pytest.'

demo: $(VENV)/.stamp-plain ## install the package and run the demonstration
	$(BIN)/python examples/demo.py

# One BLAS thread a worker: xdist already uses every core.
test: $(VENV)/.stamp-test ## run all tests and doctests, in parallel
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 \
		$(BIN)/python -m pytest -n auto --dist worksteal $(ARGS)

lint: lint-check lint-format lint-types ## check style, format and types

lint-check: $(VENV)/.stamp-dev
	$(BIN)/ruff check .

lint-format: $(VENV)/.stamp-dev
	$(BIN)/ruff format --check .

lint-types: $(VENV)/.stamp-dev
	$(BIN)/mypy

format: $(VENV)/.stamp-dev ## rewrite the source in the house format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# One BLAS thread: the examples are small, and threads would only wait for each other.
docs: $(VENV)/.stamp-docs ## build the site into build/docs; a warning is an error
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 \
		$(BIN)/python -m sphinx -b html -W --keep-going --quiet docs build/docs
	@! grep -rlE '<(script|link|img)[^>]+(src|href)="(https?:)?//' build/docs --include='*.html' || { \
		echo 'These pages fetch something from elsewhere; the site must do without.' >&2; exit 1; }
	@echo 'The site is build/docs/index.html'

bench: $(VENV)/.stamp-test ## run every benchmarks/bench_*.py and write its result beside it
	@set -e; for script in $(sort $(wildcard benchmarks/bench_*.py)); do \
		echo "== $$script"; $(BIN)/python "$$script" > "$${script%.py}.tmp"; \
		mv "$${script%.py}.tmp" "$${script%.py}.md"; cat "$${script%.py}.md"; \
	done

leaderboard: $(VENV)/.stamp-test ## measure every method on every development set (hours; goes on where it stopped)
	@$(PIP) install 'lightgbm>=4.3' 'gpboost>=1.5'
	$(BIN)/python benchmarks/leaderboard/run.py $(ARGS)

clean: ## remove caches and build products (.venv stays)
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -rf docs/auto_examples docs/api/generated docs/api/backreferences docs/benchmarks docs/project
	find src tests reproduction benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# A set-up that failed half-way must not look finished, hence the removal.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo 'comtl needs Python 3.11 or newer: name one, e.g. make PYTHON=python3.12 $(MAKECMDGOALS)' >&2; exit 1; }
	@echo 'Creating $(VENV)'
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
		echo 'No virtual environment could be made: install the venv module of $(PYTHON)' >&2; exit 1; }

# The installs are editable, so only a change of a pyproject.toml calls for a new one.
# A larger set-up contains the smaller ones and marks them as done too.
$(VENV)/.stamp-plain: pyproject.toml | $(BIN)/python
	@echo 'Installing comtl'
	@$(PIP) install --editable .
	@touch $@

$(VENV)/.stamp-test: pyproject.toml reproduction/pyproject.toml | $(BIN)/python
	@echo 'Installing comtl with what its tests need'
	@$(PIP) install --editable '.[test]' --editable ./reproduction
	@touch $@ $(VENV)/.stamp-plain

$(VENV)/.stamp-dev: pyproject.toml reproduction/pyproject.toml | $(BIN)/python
	@echo 'Installing comtl with what its tests and checks need'
	@$(PIP) install --editable '.[dev]' --editable ./reproduction
	@touch $@ $(VENV)/.stamp-test $(VENV)/.stamp-plain

$(VENV)/.stamp-docs: pyproject.toml reproduction/pyproject.toml | $(BIN)/python
	@echo 'Installing comtl with what its documentation needs'
	@$(PIP) install --editable '.[docs]' --editable ./reproduction
	@touch $@ $(VENV)/.stamp-plain
