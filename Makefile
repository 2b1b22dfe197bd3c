# One command each; CI runs the same ones. A plain `make` prints this list.
VENV ?= .venv
PYTHON ?= python3
BIN = $(VENV)/bin
PURE = src/gta_bench/records/*,src/gta_bench/metrics/*,src/gta_bench/datasets/*,src/gta_bench/statistics/*
# Files of tests run side by side; what one file shares stays in one process.
PARALLEL = -n auto --maxprocesses 4 --dist loadfile
EXTRAS = similarity-light,tools,documents,media,serve,report,harness,cluster

.PHONY: help setup check fix test coverage test-slow test-core measure docs screenshots dist golden

help: ## print this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: ## .venv with everything a developer needs
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[$(EXTRAS)]' --group dev

check: ## format, lint, types, layers, generated pages; changes nothing
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/generate_docs.py --check

fix: ## formatter, safe fixes, generated pages
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/python scripts/generate_docs.py

test: ## all fast offline tests, with coverage
	rm -f .coverage .coverage.*
	$(BIN)/coverage run -m pytest $(PARALLEL)
	$(BIN)/coverage combine --quiet

coverage: ## what the last tests covered; fails below the floors, which need data and all programs
	$(BIN)/coverage report --include='$(PURE)' --fail-under=100
	$(BIN)/coverage report --fail-under=95

test-slow: ## LibreOffice, Chromium, Ray, real models, real harnesses
	$(BIN)/pytest $(PARALLEL) -m slow; status=$$?; test $$status -eq 0 -o $$status -eq 5

test-core: ## the core installed without extras, in its own environment
	$(PYTHON) -m venv $(VENV)-core
	$(VENV)-core/bin/pip install --quiet --upgrade pip
	$(VENV)-core/bin/pip install --quiet --constraint constraints.txt . pytest pytest-socket hypothesis
	$(VENV)-core/bin/pytest tests/records tests/metrics tests/datasets tests/test_settings.py \
	  tests/packaging/test_core_alone.py

measure: ## ratios, scale, long simulations; by hand, figures go to docs/measurements.md
	$(BIN)/pytest -m measure --durations=0 -rP

docs: ## build the documentation; warnings are errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

screenshots: ## photograph the demo's report and the site for the documentation
	$(BIN)/python scripts/screenshots.py

dist: ## wheel and source archive in dist/
	$(BIN)/python -m build --quiet

golden: ## rewrite golden files, then read the diff
	$(BIN)/pytest --update-golden
