"""The Secret of the certificates that replicas share, as an administrator sees it."""

from __future__ import annotations

import base64

from certs.rotation import Material
from certs.secret import from_data
from cluster.certificates.secret_store import REQUEST
from tests.testcluster.addons.installed import NAMESPACE
from tests.testcluster.controlplane.api import Api, Raw

NAME = "berth-certificates"
SECRET: Raw = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": NAME, "namespace": NAMESPACE}}


def stored(api: Api) -> Raw | None:
    """The object."""
    return api.get("v1", "Secret", NAME, NAMESPACE)


def material(api: Api) -> Material:
    """What it holds; nothing in it is damaged."""
    secret = stored(api)
    assert secret is not None
    found, wrong = from_data({key: base64.b64decode(value) for key, value in secret["data"].items()})
    assert wrong == ()
    return found


def rotate(api: Api, what: str, number: int) -> None:
    """As `berth certs rotate` does."""
    api.patch(SECRET, {"metadata": {"annotations": {REQUEST: f"{what} {number}"}}})
