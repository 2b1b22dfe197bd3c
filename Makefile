# One command each; CI runs the same ones. A plain `make` prints this list.
VENV ?= .venv
PYTHON ?= python3
BIN = $(VENV)/bin
PURE = src/gta_bench/records/*,src/gta_bench/metrics/*,src/gta_bench/datasets/*,src/gta_bench/statistics/*
# Tests often wait, for a program, a server or a delay: one process more than there are cores. One that
# is done takes tests from the others.
PARALLEL = -n $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1) --maxprocesses 5 --dist worksteal
# NO_SKIPS=1: a skipped test is a failure, as on CI. Skips are listed with their reasons.
PYTEST_OPTIONS = -r fEs $(if $(NO_SKIPS),--no-skips)
EXTRAS = all
# What another Python can break: arithmetic, and what `make coverage` leaves out. `make test-core` has
# records, metrics and datasets; slow tests have the engine and the command line.
PYTHON_PART = tests/confine tests/parity tests/statistics -k "unprivileged or parity or statistics"

# Without bytecode, every start of a test process or a command compiles the package again.
unexport PYTHONDONTWRITEBYTECODE
# Threads of matrix libraries that wait for each other on busy cores double the computing.
export OMP_NUM_THREADS = 1
export OPENBLAS_NUM_THREADS = 1

.PHONY: help setup check check-style check-types check-systems check-layers check-pages fix test coverage \
  test-slow test-core test-part measure docs screenshots dist golden

help: ## print this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: ## .venv with everything a developer needs
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt uv
	$(BIN)/uv pip install --quiet --python $(VENV) --constraint constraints.txt \
	  --editable '.[$(EXTRAS)]' --group dev

check: ## format, lint, spelling, types, layers, generated pages; changes nothing
	@$(MAKE) --no-print-directory --keep-going -j 2 $(if $(filter output-sync,$(.FEATURES)),--output-sync) \
	  check-types check-systems check-style check-layers check-pages

check-style:
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/codespell src tests docs scripts examples plugins deploy docker *.md Makefile pyproject.toml
	$(BIN)/python scripts/check_words.py

check-types:
	$(BIN)/mypy

# What the standard library of macOS and Windows does not have.
check-systems:
	$(BIN)/python scripts/check_systems.py

check-layers:
	$(BIN)/lint-imports --no-logo
	$(BIN)/deptry src --no-ansi

check-pages:
	$(BIN)/python scripts/generate_docs.py --check

fix: ## formatter, safe fixes, generated pages
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/python scripts/generate_docs.py

test: ## all fast offline tests
	$(BIN)/pytest $(PYTEST_OPTIONS) $(PARALLEL)

# Tests as another user need a Python outside of root's home, which the newest one may not be; the
# oldest one runs them. What works with the core alone is tested by `make test-core`.
coverage: ## all fast tests again, and what they cover; fails below the floors
	rm -f .coverage .coverage.*
	$(BIN)/coverage run -m pytest $(PYTEST_OPTIONS) $(PARALLEL) -k "not unprivileged" \
	  --ignore=tests/packaging/test_core_alone.py
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --include='$(PURE)' --fail-under=100
	$(BIN)/coverage report --fail-under=95

test-slow: ## LibreOffice, Chromium, Ray, real models, real harnesses
	$(BIN)/pytest $(PYTEST_OPTIONS) $(PARALLEL) -m "slow and not measure" --durations=60 --durations-min=10

test-core: ## the core installed without extras, in its own environment; the APIs of model providers
	$(PYTHON) -m venv $(VENV)-core
	$(BIN)/uv pip install --quiet --python $(VENV)-core --constraint constraints.txt \
	  . --group clients pytest pytest-socket hypothesis
	$(VENV)-core/bin/pytest $(PYTEST_OPTIONS) tests/records tests/metrics tests/datasets \
	  tests/providers tests/test_settings.py tests/packaging/test_core_alone.py \
	  --ignore=tests/datasets/test_mutations.py --ignore=tests/metrics/test_deviations.py \
	  --ignore=tests/metrics/test_strict_shotguns.py

test-part: ## the fast tests of what another Python can break (PYTHON_PART above)
	$(BIN)/pytest $(PYTEST_OPTIONS) $(PARALLEL) $(PYTHON_PART)

measure: ## ratios, scale, long simulations; by hand, figures go to docs/measurements.md
	$(BIN)/pytest -m measure --durations=0 -rP

docs: ## build the documentation; warnings are errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

screenshots: ## photograph reports, a preview and the site for the documentation
	$(BIN)/python -m scripts.screenshots

dist: ## wheel and source archive in dist/
	$(BIN)/python -m build --quiet

golden: ## rewrite golden files, then read the diff
	$(BIN)/pytest --update-golden

.PHONY: check-dist test-inspect hashes sbom

hashes: ## requirements-hashed.txt, by constraints.txt: for `pip install --require-hashes`
	$(BIN)/uv pip compile pyproject.toml --quiet --extra all --constraint constraints.txt \
	  --universal --python-version 3.11.5 --generate-hashes --no-header --no-annotate \
	  --no-emit-index-url --output-file requirements-hashed.txt

# The tool has an environment of its own: it is no part of what it describes.
SBOM ?= build/gta_bench.cdx.json
SBOM_OPTIONS ?= --validate

sbom: ## CycloneDX bill of materials of requirements-hashed.txt, in build/
	mkdir -p $(dir $(SBOM))
	$(BIN)/uv tool run --quiet --from cyclonedx-bom==7.5.0 cyclonedx-py requirements \
	  requirements-hashed.txt --pyproject pyproject.toml --mc-type library --output-reproducible \
	  $(SBOM_OPTIONS) --output-file $(SBOM)

check-dist: ## metadata of the files in dist/, as PyPI checks it
	$(BIN)/twine check --strict dist/*

# The releases of Inspect that pyproject.toml allows; `make test-inspect INSPECT=lowest`.
INSPECT ?= newest
INSPECT_VENV ?= $(VENV)-inspect
INSPECT_LOWEST = $(shell sed -nE 's/^ *"inspect_ai>=([0-9.]+),.*/\1/p' pyproject.toml)
INSPECT_TESTS = tests/agents tests/cli tests/decisions tests/demo tests/exports tests/harnesses \
  tests/judge_quality tests/judging tests/rl tests/running tests/runs tests/served/test_runs.py \
  tests/tasks tests/web tests/test_api.py

test-inspect: ## tests that use Inspect, on its newest release or INSPECT=lowest
	$(MAKE) setup VENV=$(INSPECT_VENV)
	$(INSPECT_VENV)/bin/uv pip install --quiet --python $(INSPECT_VENV) --upgrade --editable . \
	  inspect_ai$(if $(filter lowest,$(INSPECT)),==$(INSPECT_LOWEST))
	$(INSPECT_VENV)/bin/uv pip check --python $(INSPECT_VENV)
	$(INSPECT_VENV)/bin/python -m pytest $(PYTEST_OPTIONS) $(PARALLEL) $(INSPECT_TESTS)
