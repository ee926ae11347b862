# The door to this repository. `make demo` and `make test` set everything up by themselves.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: help install demo test quick torture check format bench docs screenshots clean

help: ## what there is
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

install: $(INSTALLED) ## the environment, in .venv

$(INSTALLED): pyproject.toml constraints.txt Makefile
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "needs Python 3.11 or newer; got $$($(PYTHON) --version). Try: make PYTHON=python3.12"; exit 2; }
	@# Debian's python3 can make an environment without pip only; then its own pip fills it.
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) >/dev/null 2>&1 || $(PYTHON) -m venv --clear --without-pip $(VENV)
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m pip --python $(BIN)/python install --quiet pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt hatchling editables setuptools
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --no-build-isolation -e '.[dev]'
	@touch $@

demo: install ## generate a pair of graphs and align it: with seeds, and with names instead
	@rm -rf demo
	$(BIN)/clusterea generate demo/pair --like demo --labels
	$(BIN)/clusterea align demo/pair --seeds-share 0.3 --out demo/run --preset fast
	$(BIN)/clusterea align demo/pair --names labels --seeds-from names --out demo/names --preset fast
	@echo "Open demo/run/report.html and demo/names/report.html in a browser."

# One thread a worker: torch's threads and the workers would fight over the cores otherwise.
test: install ## all tests
	OMP_NUM_THREADS=1 $(BIN)/pytest -n auto

quick: install ## the tests that take no more than a few seconds
	OMP_NUM_THREADS=1 $(BIN)/pytest -n auto -m "not slow"

check: install ## format, lint, types and import layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: install ## put the code into form
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# `INPUTS=1000 KILLS=20 TRIALS=50 make torture` is a short one.
INPUTS ?= 100000
KILLS ?= 200
TRIALS ?= 1000
torture: install ## hostile input, killed runs and damaged files, for two hours or so
	OMP_NUM_THREADS=1 $(BIN)/python tests/torture/fuzz_input.py --inputs $(INPUTS)
	OMP_NUM_THREADS=1 $(BIN)/python tests/torture/kill_runs.py --kills $(KILLS)
	OMP_NUM_THREADS=1 $(BIN)/python tests/torture/corrupt_runs.py --trials $(TRIALS)

bench: install ## the speed of reading and generating, at DBP1M's size
	$(BIN)/python benchmarks/speed.py generate read

docs: install ## the documentation, in site/
	$(BIN)/python docs/generate_settings.py
	$(BIN)/mkdocs build --quiet --strict
	@echo "Open site/index.html in a browser."

screenshots: install ## the pictures of pages in the documentation; needs Chromium
	$(BIN)/python docs/screenshots.py

clean: ## remove what make made
	rm -rf $(VENV) demo dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis
