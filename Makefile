# `make demo` and `make test` create a virtual environment in $(VENV) and install the package and the required tools.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
# Small matrix products are not faster with BLAS threads, and two test processes share the cores.
TEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest
# TESTS="tests/metrics" runs only some tests.
TESTS ?=
# Coverage makes the tests 50% slower, so only `.ci/run` measures it with COVERAGE="--cov --cov-report=term".
COVERAGE ?=

.PHONY: demo test lint types layers unit slow docs bench clean

demo: $(VENV)/.installed-cli
	$(BIN)/calibrant demo

test: lint types layers unit

lint: $(VENV)/.installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python tools/check_words.py src tools

types: $(VENV)/.installed-dev
	$(BIN)/mypy

layers: $(VENV)/.installed-dev
	$(BIN)/lint-imports

unit: $(VENV)/.installed-dev
	$(TEST) -n 2 --dist worksteal -m "not slow" $(TESTS) $(COVERAGE)

slow: $(VENV)/.installed-dev
	$(TEST) -n 2 -m slow

# Build the manual in build/docs/index.html. Warnings are errors, links are checked, and nothing is downloaded.
docs: $(VENV)/.installed-docs
	$(BIN)/sphinx-build --fresh-env -W --keep-going -q -d build/doctrees docs build/docs
	$(BIN)/python tools/check_links.py build/docs
	$(BIN)/python tools/check_manual.py build/docs

bench:
	benchmarks/run.sh

$(VENV)/.created:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	touch $@

$(VENV)/.installed: $(VENV)/.created pyproject.toml
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/.installed-cli: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --editable ".[cli]"
	touch $@

$(VENV)/.installed-dev: $(VENV)/.installed pyproject.toml
	$(BIN)/python -m pip install --quiet --group dev
	touch $@

$(VENV)/.installed-docs: $(VENV)/.installed pyproject.toml
	$(BIN)/python -m pip install --quiet --editable ".[all]" --group docs
	touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .coverage dist build
