# Everything sets itself up: `make test` on a fresh clone needs Python 3.11 or newer, git and make.

VENV  := .venv
BIN   := $(VENV)/bin
READY := $(VENV)/.ready

# The first interpreter that is new enough and can make virtual environments.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$p" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo "$$p" && break; done)

.DEFAULT_GOAL := help
.PHONY: help setup test format-check lint types imports pytest fix demo bench lock clean

help: ## Show what can be made
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## Make .venv with everything pinned; leaves .venv/bin/ralph working

$(READY): requirements-dev.txt pyproject.toml
	@test -n "$(PYTHON)" || { echo "Needs Python 3.11 or newer with venv; set PYTHON=/path/to/python3." >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

# Types and import rules are checked while the tests wait for their processes.
STATIC := $(VENV)/.static.log

test: format-check lint bytecode ## All checks: format, lint, types, layers, tests
	@$(MAKE) --no-print-directory types imports > $(STATIC) 2>&1 & static=$$!; \
	$(MAKE) --no-print-directory pytest; tests=$$?; \
	wait $$static || tests=$$?; cat $(STATIC); rm -f $(STATIC); exit $$tests

format-check: $(READY)
	$(BIN)/ruff format --check .

lint: $(READY) format-check
	$(BIN)/ruff check .

types: $(READY)
	$(BIN)/mypy --strict

imports: $(READY)
	$(BIN)/lint-imports

# A test that fails is run once more, alone, before it counts: clocks and loaded machines lie.
# Alone it leaves the pictures of others unused, which is no failure.
AGAIN = || { test $$? -eq 1 && $(BIN)/python -m pytest --last-failed --last-failed-no-failures none --snapshot-warn-unused

# Tests wait for processes as long as they compute: two workers keep a core busy.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(2 * (os.cpu_count() or 2))')

# Hundreds of tests start the command; where bytecode is not written, each would compile it anew.
unexport PYTHONDONTWRITEBYTECODE
.PHONY: bytecode
bytecode: $(READY)
	@$(BIN)/python -m compileall -q src

# What is marked slow has targets of its own.
pytest: $(READY) bytecode
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow" $(AGAIN) -m "not slow"; }

.PHONY: without
without: $(READY) bytecode ## The tests that bubblewrap, tmux, gh, npm or a browser make a difference to, without them
	$(BIN)/python -m tests.tools $(BIN)/python -m pytest -n $(WORKERS) -m "tool and not slow" -p no:cacheprovider

.PHONY: cheats
cheats: $(READY) bytecode ## Agents that cheat, in some two hundred ways, and their honest twins (ten minutes)
	$(BIN)/python -m pytest tests/proof -n $(WORKERS)

.PHONY: slow
slow: $(READY) bytecode ## The whole tables of which `make test` tries a few, and long simulations (an hour)
	$(BIN)/python -m pytest -n $(WORKERS) -m slow

fix: $(READY) ## Format and repair what ruff can repair
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

demo: $(READY) ## A whole night in half a minute, on a toy repository, without any model
	$(BIN)/ralph demo

bench: $(READY) ## Run every benchmark
	@for file in benchmarks/bench_*.py; do echo "== $$file"; $(BIN)/python "$$file" || exit 1; done

.PHONY: bench-fleet
bench-fleet: $(READY) ## Two hundred machines that sleep and a real Temporal server (five minutes)
	$(BIN)/python -m benchmarks.fleet

lock: ## Pin the newest allowed dependencies again, with hashes
	$(PYTHON) -m venv $(VENV)-lock
	$(VENV)-lock/bin/python -m pip install --quiet pip-tools
	$(VENV)-lock/bin/pip-compile $(LOCK) -o requirements.txt pyproject.toml
	$(VENV)-lock/bin/pip-compile $(LOCK) -c requirements.txt --extra dev -o requirements-dev.txt pyproject.toml
	$(VENV)-lock/bin/pip-compile $(LOCK) -o requirements-docs.txt requirements-docs.in
	rm -rf $(VENV)-lock

LOCK := --quiet --upgrade --generate-hashes --strip-extras --allow-unsafe --no-header --no-annotate \
	--no-emit-index-url --no-emit-trusted-host --no-emit-find-links

clean: ## Remove the environment and all caches
	rm -rf $(VENV) $(VENV)-lock $(VENV)-docs .e2e-cache build dist site .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

.PHONY: e2e e2e-all
RUNNERS := jest-27 jest-30 mocha-10 mocha-12 vitest-1 vitest-4 ts-jest-29 tsx-4

e2e: $(READY) bytecode ## Whole runs with the real claude and codex against a scripted model (needs npm)
	$(BIN)/python -m tests.e2e.clis claude claude-2.0 codex $(RUNNERS)
	$(BIN)/python -m pytest tests/e2e -n $(WORKERS) -m "not e2e_all and not slow" $(AGAIN) tests/e2e -m "not e2e_all and not slow"; }

.PHONY: fleet
FLEET := tests/e2e/test_fleet.py tests/e2e/test_fleet_accounts.py tests/e2e/test_fleet_budget.py tests/e2e/test_fleet_codec.py tests/e2e/test_fleet_partition.py tests/e2e/test_fleet_tls.py tests/e2e/test_fleet_upgrade.py tests/fleet

fleet: $(READY) bytecode ## A real Temporal server, workers, and all that can break in a night (a quarter of an hour; needs npm; FLEET_STORIES=20 FLEET_SEED=N)
	$(BIN)/python -m tests.e2e.clis claude
	$(BIN)/python -m pytest $(FLEET) -n 2 $(AGAIN) $(FLEET); }

OTHERS := gemini opencode qwen copilot droid cline cn goose aider openhands

e2e-all: $(READY) bytecode ## The same, and every other CLI that is shipped as data (needs Python 3.12 besides)
	$(BIN)/python -m tests.e2e.clis claude claude-2.0 codex $(OTHERS) $(RUNNERS) || echo "what is not installed will fail below"
	$(BIN)/python -m pytest tests/e2e -n 2

.PHONY: peers
peers: $(READY) ## Clone into peers/ what benchmarks compare with, as it was measured (needs git, and Go for one of them)
	$(BIN)/python -m benchmarks.peers $(PEERS)

.PHONY: nights
nights: $(READY) bytecode ## Scripted nights with ours and other supervisors (needs npm; NIGHTS="--short", after make peers)
	$(BIN)/python -m tests.e2e.clis claude
	$(BIN)/python -m benchmarks.nights $(NIGHTS)

.PHONY: checkpoints
checkpoints: $(READY) bytecode ## Public tasks replayed as stories (after make peers; CHECKPOINTS="--short")
	$(BIN)/python -m benchmarks.checkpoints $(CHECKPOINTS)

.PHONY: numbers
numbers: $(READY) bytecode ## All figures of docs/benchmarks.md again, side by side (after make peers; forty minutes; NUMBERS="--short": five minutes)
	$(BIN)/python -m tests.e2e.clis claude
	$(BIN)/python -m benchmarks.numbers $(NUMBERS)

.PHONY: guarantees

guarantees: $(READY) bytecode ## Measure what a night may burn or lose and write docs/guarantees.md
	$(BIN)/python -m pytest -n $(WORKERS) --guarantees

.PHONY: mutants

mutants: $(READY) ## Which small changes of what decides and counts money does no test notice? (SEED=1 SAMPLE=300)
	$(BIN)/python benchmarks/mutants.py --seed $(or $(SEED),1) --sample $(or $(SAMPLE),300)

.PHONY: torture

torture: $(READY) ## Kill the supervisor at every pass of every point and 200 times at random, in the checkout and in lanes (an hour)
	RALPH_TEST_EXEC=1 TORTURE_KILLS=200 $(BIN)/python -m pytest tests/loop/test_kill_anywhere.py tests/lanes/test_kill_lanes.py -n auto

.PHONY: dist

dist: $(READY) ## Build wheel and sdist, install each into clean environments of every Python found, use them
	rm -rf dist
	$(BIN)/python -m hatchling build
	$(BIN)/python tests/install.py dist

.PHONY: attack fuzz

attack: $(READY) bytecode ## Everybody who tries to get in or past, and a table of what happened
	$(BIN)/python -m pytest --attacks -q -n $(WORKERS) -p no:cacheprovider

fuzz: $(READY) bytecode ## Mutate what others write for up to ten minutes; what breaks is kept
	FUZZ_EXAMPLES=$(or $(EXAMPLES),4000) timeout 600 $(BIN)/python -m pytest tests/fuzz -q -n $(WORKERS) --timeout 600 \
		|| { test $$? -eq 124 && echo "ten minutes are over; nothing broke"; }

.PHONY: size

size: $(READY) ## Tokens, functions and parallel assignments of each room against the last tag (BASE=REV); fails nothing
	@$(BIN)/python benchmarks/size.py $(if $(BASE),--base $(BASE))

.PHONY: docs pictures
DOCS := $(VENV)-docs

$(DOCS)/.ready: requirements-docs.txt
	@test -n "$(PYTHON)" || { echo "Needs Python 3.11 or newer with venv; set PYTHON=/path/to/python3." >&2; exit 1; }
	test -x $(DOCS)/bin/python || $(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-docs.txt
	@touch $@

docs: $(DOCS)/.ready ## The documents as a site in site/, with every link tried
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --quiet --strict

pictures: $(READY) ## Draw the pictures of the tutorial and of the page anew, from the real commands
	$(BIN)/python -m tests.docs.pictures
	$(BIN)/python -m tests.e2e.page_pictures
