# Needs git, make and python3 (3.11 or later) with venv and pip; everything else is installed.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
WORKERS ?= 2

.PHONY: demo test check bench nightly reproduce clean
.DEFAULT_GOAL := test

$(BIN)/python:
	@$(PYTHON) -c 'import sys; assert sys.version_info >= (3, 11), "gbmrank needs Python 3.11 or later; say PYTHON=..."'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[lightgbm,xgboost,sklearn,report]"
	@touch $@

$(VENV)/.dev: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	@touch $@ $(VENV)/.demo

# Compare gbmrank objectives with the boosters' own on built-in data; report in build/demo.
demo: $(VENV)/.demo
	OMP_WAIT_POLICY=PASSIVE $(BIN)/gbmrank compare --out build/demo --force

# The plugins of this repository, each a distribution of its own.
$(VENV)/.plugins: $(VENV)/.dev $(wildcard plugins/*/pyproject.toml)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps $(patsubst %,-e %,$(wildcard plugins/*))
	@touch $@

# Format, lint, types, layers, generated pages, the documentation (build/docs/index.html).
check: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python docs/generate.py --check
	$(BIN)/sphinx-build -q -W -b html docs build/docs

# Everything CI runs.
test: check $(VENV)/.plugins
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup
	GBMRANK_CACHE_DIR=$${TMPDIR:-/tmp}/gbmrank-tests-$$(id -u) $(BIN)/python -m pytest -n $(WORKERS) --confcutdir=plugins plugins

# The rest of the product of templates and losses.
nightly: $(VENV)/.dev
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup -m nightly

# Speed, as ratios against the boosters in the same run.
bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks

# The experiments of the papers, with data from GBMRANK_DATA; long, and not a part of CI.
STUDIES ?= chen2009 duchi2010 calauzenes2013 ramaswamy2013 menon2014
reproduce: $(VENV)/.dev
	@test -n "$(GBMRANK_DATA)" || { echo "set GBMRANK_DATA to the folder with data; $(BIN)/gbmrank reproduce says what it must hold"; exit 2; }
	for study in $(STUDIES); do OMP_WAIT_POLICY=PASSIVE $(BIN)/gbmrank reproduce $$study --out docs/results || exit 1; done

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
