"""The API server's address and the credentials of a pod's service account, as the kubelet gives them to its containers.

They are read as client-go reads them (rest.InClusterConfig). The official client is not used for this, as importing it takes 19 MB of
memory and 0.13 s of CPU time.
"""

from __future__ import annotations

import hashlib
import ssl
from collections.abc import Mapping
from pathlib import Path

MOUNTED = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""The folder in which the kubelet mounts a pod's token, CA and namespace (ServiceAccount admission, and
client-go's InClusterConfig)."""
_ADDRESS = ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT")


def server(environment: Mapping[str, str]) -> str:
    """Return https://HOST:PORT of the Service "kubernetes". Raises ValueError where a variable is not set."""
    missing = [name for name in _ADDRESS if not environment.get(name)]
    if missing:
        raise ValueError(f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not set")
    host, port = (environment[name] for name in _ADDRESS)
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"


def token(mounted: Path) -> str:
    """Return the value of the Authorization header. Raises ValueError."""
    return f"Bearer {_text(mounted / 'token')}"


def namespace(mounted: Path) -> str:
    """Return the pod's namespace; "default" if it can't be read, as client-go's loader does."""
    try:
        return _text(mounted / "namespace")
    except ValueError:
        return "default"


def trust(mounted: Path) -> tuple[ssl.SSLContext, bytes]:
    """Return the TLS settings that trust the cluster's CA, and a hash of the CA.

    The file is read once, as it may be replaced between two readings. Raises ValueError.
    """
    file = mounted / "ca.crt"
    text = _text(file)
    try:
        context = ssl.create_default_context(cadata=text)
    except ssl.SSLError as error:
        raise ValueError(f"{file} has no certificate that can be read: {error.reason or error}") from error
    return context, hashlib.sha256(text.encode()).digest()


def _text(file: Path) -> str:
    """Return what a file holds without the white space around it. Raises ValueError, which names the file."""
    try:
        text = file.read_text("ascii", "ignore").strip()  # comments in a bundle may have letters that OpenSSL's PEM reader does not take
    except OSError as error:
        raise ValueError(f"{file} can't be read: {error.strerror}") from error
    if not text:
        raise ValueError(f"{file} is empty")
    return text
