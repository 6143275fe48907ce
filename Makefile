# Each target does its own set-up: a bare Debian with Python 3.10 or newer and a network is enough.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VENV ?= .venv
PYTHON ?=
# Test processes at once; every one has servers of its own.
WORKERS ?= 2
# What else pytest is given, for example: make test ARGS="-k limit -x"
ARGS ?=

PY := $(VENV)/bin/python
STAMP := $(VENV)/.installed

.PHONY: help venv system demo test check format verify proto bench clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

venv: $(STAMP) ## Create .venv with taskbatch (editable) and all tools

$(STAMP): pyproject.toml .ci/setup-venv
	@PYTHON="$(PYTHON)" .ci/setup-venv $(VENV)
	@touch $@

system: ## Install the servers that tests use, if they are missing (as root, Debian)
	@.ci/setup-system

demo: venv ## See it work: a mixed load on an embedded server, in under a minute
	@$(VENV)/bin/taskbatch demo

test: venv system ## Run all tests, on real servers
	$(PY) -m pytest -n $(WORKERS) $(ARGS)

check: venv ## Lint, types, layers, spelling
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports
	$(VENV)/bin/codespell

format: venv ## Repair what ruff can repair by itself
	$(VENV)/bin/ruff check --fix
	$(VENV)/bin/ruff format

verify: venv system ## Acceptance tests on the built and installed wheel; generated code is current
	.ci/verify $(PY)

proto: venv ## Regenerate taskbatch/v1 from proto/
	$(PY) -m grpc_tools.protoc -Iproto --python_out=. --pyi_out=. proto/taskbatch/v1/task.proto

bench: venv system ## Measure cold start and throughput
	$(PY) bench/quick.py

clean: ## Remove what was built and cached; keeps .venv
	rm -rf build dist *.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +
