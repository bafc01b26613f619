# Every target works as the first command on a fresh clone. Needs Python 3.11+ and make only.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Dozens of processes are started: none of them should have to compile everything again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo up test test-all lint bench clean

help:
	@echo "make demo    start everything on a throw-away data dir and show what it does"
	@echo "make up      start the stack and keep it running (Ctrl-C stops it)"
	@echo "make test    lint and tests, within ten minutes on two cores"
	@echo "make test-all the same, with the few that take a minute each"
	@echo "make bench   measurements, side by side with their floors"
	@echo "make setup   only create the environment in .venv"

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
PYTEST := $(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

test: setup lint
	@$(PYTEST) -m "not slow"

test-all: setup lint
	@$(PYTEST)

bench: setup
	@$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) .data
