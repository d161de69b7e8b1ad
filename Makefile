# Needs git, make and python3 (3.11 or later) with venv and pip; everything else is installed.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
WORKERS ?= 2

.PHONY: help demo test check types lint docs bench soak nightly machines reproduce coverage fuzz mutation test-oldest test-newest integrations dist release clean
.DEFAULT_GOAL := test

## help          what each target does
help:
	@sed -n 's/^## /  /p' $(firstword $(MAKEFILE_LIST))

$(BIN)/python:
	@$(PYTHON) -c 'import sys; assert sys.version_info >= (3, 11), "gbmrank needs Python 3.11 or later; say PYTHON=..."'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[lightgbm,xgboost,sklearn,report]"
	@touch $@

$(VENV)/.dev: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -e ".[dev]"
	@touch $@ $(VENV)/.demo

## demo          compare objectives with the boosters' own on built-in data; report in build/demo
demo: $(VENV)/.demo
	OMP_WAIT_POLICY=PASSIVE $(BIN)/gbmrank compare --out build/demo --force

# The plugins of this repository, each a distribution of its own.
$(VENV)/.plugins: $(VENV)/.dev $(wildcard plugins/*/pyproject.toml)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps $(patsubst %,-e %,$(wildcard plugins/*))
	@touch $@

## check         format, lint, types, layers, generated pages, the documentation (build/docs/index.html)
check: $(VENV)/.dev
	@$(MAKE) --no-print-directory -j 2 --output-sync=target types lint docs

types: $(VENV)/.dev
	$(BIN)/mypy

lint: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-cache

docs: $(VENV)/.dev
	$(BIN)/python docs/generate.py --check
	$(BIN)/sphinx-build -q -W -b html docs build/docs

# Boosters of several workers would keep all processors spinning.
test nightly machines fuzz mutation coverage test-oldest test-newest integrations: export OMP_WAIT_POLICY = PASSIVE

## test          everything CI runs: check, then all tests but the long ones (tests/README.md)
test: check $(VENV)/.plugins
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder \
		-m "not nightly and not integration and not formula"
	$(BIN)/python -m pytest -n $(WORKERS) -p tests.plain_kernels -m "formula and not nightly" \
		$$($(BIN)/python -m tests.formulas)
	GBMRANK_CACHE_DIR=$${TMPDIR:-/tmp}/gbmrank-tests-$$(id -u) $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --confcutdir=plugins plugins

## nightly       the rest: every composition compiled, what takes long, then other machines
nightly: $(VENV)/.dev
	HYPOTHESIS_PROFILE=nightly $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m "nightly or formula"
	.ci/machines $(BIN)/python $(WORKERS)

## machines      the compiled tests with AVX2, plain x86-64, other libraries, threads and hash seeds
machines: $(VENV)/.dev
	.ci/machines $(BIN)/python $(WORKERS) $(FILES)

## fuzz          property tests with many examples, then the coverage-guided fuzzer
# GBMRANK_FUZZ_EXAMPLES and FUZZ_SECONDS per target; without atheris the fuzzer is left out.
FUZZ_SECONDS ?= 60
fuzz: $(VENV)/.dev
	HYPOTHESIS_PROFILE=fuzz $(BIN)/python -m pytest tests/properties -m "nightly or not nightly"
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check --only-binary :all: atheris
	$(BIN)/python -m tests.fuzz --seconds $(FUZZ_SECONDS)

## mutation      small faults put into the formulas: which do the tests notice?
MUTANTS ?= 15
mutation: $(VENV)/.dev
	$(BIN)/python -m tests.mutation --sample $(MUTANTS) --seed 0 --page docs/mutation.md

## coverage      branch coverage: everything compiled, then the kernels as plain Python
COVERAGE = COVERAGE_FILE=$(CURDIR)/build/coverage/.coverage $(BIN)/coverage
PLAIN := tests/mutation tests/losses tests/properties tests/objectives/test_values.py \
	tests/objectives/test_engines.py tests/objectives/test_graph_sums.py tests/objectives/test_query_sums.py \
	tests/kernels/test_callback.py tests/metrics/test_disagreement.py tests/metrics/test_diversity.py \
	tests/metrics/test_ranked.py tests/objectives/test_swaps.py
coverage: $(VENV)/.plugins
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "coverage>=7.10"
	rm -rf build/coverage && mkdir -p build/coverage
	$(COVERAGE) run --rcfile=.ci/coveragerc -m pytest -n $(WORKERS) --dist loadfile
	$(COVERAGE) run --rcfile=.ci/coveragerc -m pytest -n $(WORKERS) -p tests.plain_kernels -k "not long and not number_of_threads" $(PLAIN)
	$(COVERAGE) combine --rcfile=.ci/coveragerc
	$(COVERAGE) report --ignore-errors --rcfile=.ci/coveragerc --fail-under=95

## test-oldest   the tests with the oldest versions that pyproject.toml allows
OLDEST_VENV ?= build/oldest
test-oldest:
	$(PYTHON) -m venv $(OLDEST_VENV)
	$(OLDEST_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -c .ci/oldest.txt -e ".[all,tuning]" \
		hypothesis mpmath pandas polars pytest pytest-xdist pytrec-eval-terrier
	$(OLDEST_VENV)/bin/python -m pytest -n $(WORKERS) --dist loadfile tests

## test-newest   the tests with the newest versions; some (XGBoost 3.3) need Python 3.12 or later
PYTHON_NEWEST ?= $(shell for name in python3.14 python3.13 python3.12 $(PYTHON); do if $$name -c "" 2>/dev/null; then echo $$name; break; fi; done)
NEWEST_VENV ?= build/newest
test-newest:
	@$(PYTHON_NEWEST) -c 'import sys; v = sys.version_info; print("Python", sys.version.split()[0]); v >= (3, 12) or print("no Python 3.12 or later was found: packages that need it stay at older versions; say PYTHON_NEWEST=...")'
	$(PYTHON_NEWEST) -m venv $(NEWEST_VENV)
	$(NEWEST_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade -e ".[all,tuning]" \
		hypothesis mpmath pandas polars pytest pytest-xdist pytrec-eval-terrier
	-$(NEWEST_VENV)/bin/python -m pip install --disable-pip-version-check --upgrade numba  # above our ceiling, too
	$(NEWEST_VENV)/bin/python -m pytest -n $(WORKERS) --dist loadfile tests

## integrations  packages that work with gbmrank and are not needed by it
# In an environment of their own. What cannot be installed is left out: its tests say why.
# Spark needs Java 17, such as Debian's package openjdk-17-jre-headless.
INTEGRATIONS_VENV ?= build/integrations
INTEGRATIONS ?= mlflow-skinny "optuna-integration[lightgbm,xgboost]" "onnxmltools onnxruntime" treelite shap ray "pyspark pandas pyarrow"
integrations:
	$(PYTHON) -m venv $(INTEGRATIONS_VENV)
	$(INTEGRATIONS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -e ".[lightgbm,xgboost,sklearn,report,tuning]" hypothesis pandas pytest pytest-xdist
	@for package in $(INTEGRATIONS); do \
		$(INTEGRATIONS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check $$package || echo "$$package cannot be installed: its tests are skipped"; \
	done
	$(INTEGRATIONS_VENV)/bin/python -m pytest -m integration -rs tests/integrations

## bench         speed, as ratios against the boosters in the same run
bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks

## soak          endurance: memory over many rounds and fits, trainings side by side; minutes
soak: $(VENV)/.dev
	OMP_WAIT_POLICY=PASSIVE $(BIN)/python -m benchmarks.soak

## reproduce     the experiments of the papers, with data from GBMRANK_DATA; long
STUDIES ?= chen2009 duchi2010 calauzenes2013 ramaswamy2013 menon2014
reproduce: $(VENV)/.dev
	@test -n "$(GBMRANK_DATA)" || { echo "set GBMRANK_DATA to the folder with data; $(BIN)/python -m studies says what it must hold"; exit 2; }
	for study in $(STUDIES); do OMP_NUM_THREADS=1 $(BIN)/python -m studies $$study --threads 1 --out docs/results || exit 1; done

## dist          wheels of gbmrank and its plugins, tried in an empty environment (build/dist)
DIST := build/dist
dist: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check build twine
	rm -rf $(DIST) build/dist-venv
	for project in . $(wildcard plugins/*); do $(BIN)/python -m build --outdir $(DIST) $$project > /dev/null || exit 1; done
	$(BIN)/python -m twine check --strict $(DIST)/*
	$(PYTHON) -m venv build/dist-venv
	build/dist-venv/bin/python -m pip install --quiet --disable-pip-version-check --find-links $(DIST) \
		"gbmrank[lightgbm,xgboost,sklearn] @ file://$(CURDIR)/$$(ls $(DIST)/gbmrank-[0-9]*.whl)" $(notdir $(wildcard plugins/*))
	cd build && dist-venv/bin/python ../tests/smoke.py

## release       check and build a version, and say what to tag and upload
VERSION = $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' gbmrank/__init__.py)
release: $(VENV)/.dev
	@test -z "$$(git status --porcelain)" || { echo "The tree has changes that are not committed. Commit them first."; exit 1; }
	@grep -q '^## \[$(VERSION)\] - [0-9]' CHANGELOG.md || { echo "CHANGELOG.md has no dated heading for $(VERSION). Write '## [$(VERSION)] - YEAR-MONTH-DAY'."; exit 1; }
	@grep -q '^version: $(VERSION)$$' CITATION.cff || { echo "CITATION.cff names another version than $(VERSION). Change it there."; exit 1; }
	@$(MAKE) --no-print-directory test dist
	@printf '%s\n' "" "Version $(VERSION) is checked and built. To publish it:" \
		"  git tag -a v$(VERSION) -m 'gbmrank $(VERSION)' && git push origin v$(VERSION)" \
		"  $(BIN)/twine upload $(DIST)/*"

## clean         remove what these targets made
clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
