# Berth's image: a Python, and /opt/berth with what `berth` runs on. docs/image.md says what is in it, and how to build it on another base.
#
# BUILDER has pip and a shell, BASE needs neither: of BUILDER nothing is shipped. Both have the same minor version of Python.
# The builder's digest is the index that Docker's official images record for 3.13-slim-trixie (amd64, arm64 and others).
ARG BUILDER=docker.io/library/python:3.13-slim-trixie@sha256:9662417aace5ae7b8e2609cce472b72a8958e134ba372808abe9cc1a0c0125e6
ARG BASE=gcr.io/distroless/python3-debian13:nonroot

FROM ${BASE} AS base

FROM ${BUILDER} AS builder
WORKDIR /build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore PYTHONDONTWRITEBYTECODE=1 PYTHONHASHSEED=0
COPY requirements.txt deploy/image/build.txt ./
# Where packages come from is the machine's own business: both secrets may be left out, and nothing of them is kept.
RUN --mount=type=secret,id=pip,target=/etc/pip.conf --mount=type=secret,id=ca \
    python3 -m venv /tools \
 && python3 -m venv --without-pip /opt/berth \
 && /tools/bin/python -m pip install --quiet --only-binary :all: --no-deps --require-hashes -r build.txt \
 && /tools/bin/python -m pip --python /opt/berth/bin/python3 install --quiet --no-compile --only-binary :all: --no-deps --require-hashes -r requirements.txt
COPY . src/
# The interpreter of BASE; distroless has it here, python:*-slim in /usr/local/bin.
ARG PYTHON=/usr/bin/python3
ARG SOURCE_DATE_EPOCH=0
RUN --mount=type=bind,from=base,target=/base \
    SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH} /tools/bin/python -m pip wheel --quiet --no-deps --no-index --no-build-isolation --wheel-dir . ./src \
 && /tools/bin/python -m pip --python /opt/berth/bin/python3 install --quiet --no-compile --no-deps --no-index --find-links . gpu-berth \
 && /tools/bin/python -m pip --python /opt/berth/bin/python3 check \
 && python3 src/deploy/image/finish.py /opt/berth /base "${PYTHON}"

FROM base
ARG VERSION=""
ARG REVISION=""
ARG SOURCE=""
LABEL org.opencontainers.image.title="berth" \
      org.opencontainers.image.description="Gives GPU pods the right berth: a Kubernetes admission server with typed GPU policies" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.source="${SOURCE}"
COPY --from=builder /opt/berth /opt/berth
# Nothing is written while it runs: bytecode was compiled above, also that of the base's standard library.
ENV PATH=/opt/berth/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    PYTHONDONTWRITEBYTECODE=1 PYTHONPYCACHEPREFIX=/opt/berth/pycache PYTHONUNBUFFERED=1
WORKDIR /
USER 65532:65532
ENTRYPOINT ["/opt/berth/bin/berth"]
