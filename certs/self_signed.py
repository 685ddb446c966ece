"""The folder of ``--self-signed DIR``, for development: a CA that outlives restarts.

    ca.crt   what callers trust         ca.key   mode 0600, signs serving certificates

It is made by the first start and never replaced: callers trust it, so anything wrong with it is an error that
says what to do. Serving certificates are in memory only. In a cluster replicas share a Secret (``rotation``).
"""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from certs.authority import CertificateError, KeyPair, load_pair, make_ca
from certs.reading import read_file, reason_of
from certs.renewal_due import renewal_reason

PRIVATE = 0o600


def stored_or_made(directory: Path, now: datetime) -> tuple[KeyPair, str]:
    """Return the CA of the folder, and a log sentence about it, "" if there is nothing to say.

    Raises CertificateError with the file, what is wrong and what to do, when the folder or its CA cannot be used.
    """
    certificate, key = directory / "ca.crt", directory / "ca.key"
    try:
        there = [path.exists() for path in (certificate, key)]
        if not any(there):
            return _made(directory, now), f"made a new CA: {certificate}"
    except OSError as error:
        raise CertificateError(f"{directory}: {reason_of(error, '--self-signed needs a writable folder')}") from None
    otherwise = f"restore {certificate} and {key}, or delete both and restart for a new CA, which every client must then trust"
    for path, found in zip((certificate, key), there, strict=True):
        if not found:
            raise CertificateError(f"{path}: it is missing; {otherwise}")
    ca = _stored(certificate, key, otherwise)
    due = renewal_reason(ca, (), now)
    if now >= ca.certificate.not_valid_after_utc:
        raise CertificateError(f"{certificate}: {due}; {otherwise}")
    return ca, f"{certificate} should be replaced soon: {due}" if due else ""


def _stored(certificate: Path, key: Path, otherwise: str) -> KeyPair:
    contents = read_file(certificate), read_file(key)
    try:
        return load_pair(*contents)
    except CertificateError as error:
        raise CertificateError(f"{certificate}: {error}; {otherwise}") from None


def _made(directory: Path, now: datetime) -> KeyPair:
    """Make the CA: of two processes that start at once one fails, as the key is created only where there is none."""
    ca = make_ca(now)
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(directory / "ca.key", os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
    with os.fdopen(descriptor, "wb") as file:
        file.write(ca.key_pem)
    unfinished = directory / ".ca.crt.new"
    unfinished.write_bytes(ca.certificate_pem)
    unfinished.replace(directory / "ca.crt")
    return ca
