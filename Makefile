# Every target works as the first command on a fresh clone. Needs Python 3.11+ and make only.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# The memory of this checkout, apart from the user's own. The environment and .env come first.
ifeq ($(DATA_DIR)$(shell grep -s '^ *DATA_DIR=.' .env),)
export DATA_DIR := $(CURDIR)/.data
endif
# Dozens of processes are started: none of them should have to compile everything again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo up test test-all lint bench clean clean-data

help:
	@echo "make demo    start everything on a throw-away data dir and show what it does"
	@echo "make up      start the stack and keep it running (Ctrl-C stops it)"
	@echo "make test    lint and tests, within ten minutes on two cores"
	@echo "make test-all the same, with the few that take a minute each"
	@echo "make bench   measurements, side by side with their floors (make bench growth: one of them)"
	@echo "make setup   only create the environment in .venv"
	@echo "make clean   delete the environment; data stays"
	@echo "make clean-data  delete the memory of this checkout (.data), after asking"

setup: $(READY)

$(READY): pyproject.toml constraints.txt bin/setup
	@bin/setup $(VENV)
	@touch $(READY)

demo: setup
	@$(BIN)/mcp-memory demo

up: setup
	@exec $(BIN)/mcp-memory up

lint: setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

# Files run whole, three at a time; the end-to-end ones first, since they wait most.
PYTEST := $(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder --durations 15

test: setup lint
	@$(PYTEST) -m "not slow"

test-all: setup lint
	@$(PYTEST)

# `make bench growth` runs that one: the words after `bench` are names of benchmarks, not targets.
BENCHMARKS := $(filter-out bench,$(MAKECMDGOALS))
bench: setup
	@$(BIN)/python -m benchmarks $(BENCHMARKS)
ifeq ($(firstword $(MAKECMDGOALS)),bench)
$(eval $(BENCHMARKS):;@:)
endif

clean:
	rm -rf $(VENV)

# Never what DATA_DIR names: that may be a memory which matters.
clean-data:
	@[ -d .data ] || { echo "There is no .data here."; exit 0; }; \
	! kill -0 "$$(head -n 1 .data/postgres/postmaster.pid 2>/dev/null)" 2>/dev/null || \
		{ echo "A stack runs on .data: stop it first."; exit 1; }; \
	read -r -p "Delete $(CURDIR)/.data with every document in it? Type yes: " answer || true; \
	[ "$${answer:-}" = yes ] || { echo "Nothing was deleted."; exit 1; }; \
	rm -rf .data && echo "$(CURDIR)/.data is deleted."
