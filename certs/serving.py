"""The TLS context that serves: from the paths of a certificate and its key."""

from __future__ import annotations

import ssl
from pathlib import Path

from certs.authority import CertificateError


def server_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """TLS 1.2 or later, HTTP/1.1 by ALPN (what the API server speaks to webhooks).

    Raises CertificateError with the file and what is wrong with it.
    """
    for path in (certificate, key):
        _readable(path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        # Without a password callback OpenSSL would ask on the terminal for an encrypted key, and hang a server.
        context.load_cert_chain(certificate, key, password=_no_password)
    except _Encrypted:
        raise CertificateError(f"{key}: the key is encrypted; give one without a passphrase") from None
    except ssl.SSLError as error:
        raise CertificateError(_sentence(certificate, key, error)) from None
    return context


class _Encrypted(Exception):
    """The key asked for a passphrase."""


def _no_password() -> str:
    raise _Encrypted


def _readable(path: Path) -> None:
    try:
        path.read_bytes()
    except OSError as error:
        raise CertificateError(f"{path}: cannot be read: {error.strerror or error}") from None


def _sentence(certificate: Path, key: Path, error: ssl.SSLError) -> str:
    if "KEY_VALUES_MISMATCH" in str(error):
        return f"{key}: this key does not belong to the certificate in {certificate}; give the two that were made together"
    return f"{certificate} and {key} are not a PEM certificate and its key ({error.reason or error}); give files in PEM form"
