"""`berth webhooks`: the two webhook configurations as YAML, made from the catalog; nothing is sent
anywhere."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from certs.authority import CertificateError
from certs.chain import Chain, parse_chain
from cli.given import webhooks_scope as scope
from cli.output import stderr, yaml_writer
from documents.files import read_catalog
from policies.catalog import Catalog
from policies.catalog.parse.reader import shown
from policies.document import InputError
from registration.configurations import Manifest, Service, Url, first, manifests
from registration.entries import CLAIMS, DEFAULT, Chosen
from registration.match_conditions import PatternError

if TYPE_CHECKING:
    from cli.given.names_found import Found

_SERVICE = re.compile(r"(?P<namespace>[a-z0-9]([-a-z0-9]*[a-z0-9])?)/(?P<name>[a-z]([-a-z0-9]*[a-z0-9])?)(:(?P<port>[0-9]{1,5}))?")
"""NAMESPACE/NAME[:PORT], with DNS labels as names."""
_LAST_PORT = 65535

HEAD = """\
# When the API server calls Berth. Made by `berth webhooks` from the catalog: change its options or the catalog, not this file.
# Apply it once Berth answers at its address (kubectl apply -f FILE); deleting it (kubectl delete -f FILE) switches Berth off.
"""
NO_CA = """\
# There is no caBundle in it, so only a certificate that the API server's own machine trusts is accepted, and without one pods
# that name an accelerator are denied. Add the CA of Berth's certificate with `berth webhooks --ca FILE`, or have it filled in
# (cert-manager: annotate both objects with cert-manager.io/inject-ca-from: NAMESPACE/CERTIFICATE).
"""


def add_parser(subparsers: Any) -> None:
    """Add ``webhooks`` to the command's subparsers."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "webhooks",
        help="the webhook configurations for a cluster, as YAML",
        description="Print the webhook configurations that make the API server call Berth. Exit code 2: bad input.",
        examples=(
            ("For a Service in the cluster", "%(prog)s --service berth-system/berth --ca ca.crt | kubectl apply -f -"),
            ("For a server outside of it", "%(prog)s --url https://berth.example:8443 --ca ca.crt"),
            ("For a cluster without resource claims", "%(prog)s --claims Off --ca ca.crt"),
        ),
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--service", metavar="NAMESPACE/NAME[:PORT]", help="Berth's Service; default: berth-system/berth, port 443")
    where.add_argument("--url", metavar="https://HOST:PORT", help="where the API server reaches a Berth outside of the cluster")
    parser.add_argument("--ca", metavar="FILE", help="the CA of Berth's certificate, PEM, by which the API server knows it")
    parser.add_argument("--catalog", metavar="FILE", help="a file laid over the catalog: its resource names are matched too")
    help_ = "what becomes of resource claims, and of pods with some, while Berth is down: Fail (default), Ignore; Off: no DRA here"
    parser.add_argument("--claims", metavar="Fail|Ignore|Off", default=DEFAULT.claims, help=help_)
    help_ = "an extended resource that pods ask for accelerators by, besides those of the catalog; may be repeated"
    parser.add_argument("--resource-name", action="append", default=[], metavar="NAME", help=help_)
    help_ = "a namespace whose pods are not judged, whether it exists or not; may be repeated"
    parser.add_argument("--exclude-namespace", action="append", default=[], metavar="NAME", help=help_)
    help_ = "for policies about queues: workloads are labelled with Kueue's by default, before Kueue is called, and judged"
    parser.add_argument("--queues", action="store_true", help=help_)
    group = parser.add_argument_group("cluster", "read once: which namespaces exist, which resources stand on nodes and DeviceClasses")
    group.add_argument("--kubeconfig", metavar="FILE", help="how the API server is reached")
    group.add_argument("--context", metavar="NAME", help="of that file; default: its current one")
    group.add_argument("--in-cluster", action="store_true", help="by the service account of the pod that this runs in")


def run(args: argparse.Namespace) -> int:
    """Print the manifests. Raises InputError and CatalogFilesError, which the command turns into exit code
    2."""
    target = _url(args.url) if args.url is not None else _service(args.service) if args.service is not None else Service()
    ca = None if args.ca is None else certificates(args.ca, datetime.now(UTC))
    catalog = read_catalog([args.catalog] if args.catalog else [])
    chosen, found = _chosen(args, catalog)
    try:
        made = [*manifests(catalog, target, ca, chosen), *filter(None, [first(catalog, target, ca, chosen)])]
    except PatternError as error:
        raise InputError(file=args.catalog or "catalog", message=str(error)) from None
    for sentence in found.unread if found is not None else ():
        stderr.say(sentence)
    print(document(made, without_ca=ca is None, head=scope.head(catalog, chosen, found)), end="")
    return 0


def _chosen(args: argparse.Namespace, catalog: Catalog) -> tuple[Chosen, Found | None]:
    claims = next((one for one in CLAIMS if one == args.claims), None)
    if claims is None:
        raise InputError(file="--claims", message=f"{shown(args.claims)} is no way to treat claims; give Fail, Ignore or Off")
    named = scope.names(args.resource_name, catalog)
    by_flag = scope.namespaces(args.exclude_namespace)
    found = _found(args, catalog)
    excluded = scope.excluded(catalog, by_flag, own=args.catalog is not None, found=found)
    names = tuple(sorted({*named, *(found.names if found else ())}))
    return Chosen(claims=claims, excluded=excluded, names=names, queues=args.queues), found


def _found(args: argparse.Namespace, catalog: Catalog) -> Found | None:
    if args.in_cluster and args.kubeconfig is not None:
        raise InputError(file="--in-cluster", message="and --kubeconfig are two ways to one cluster; give one of them")
    if args.context is not None and args.kubeconfig is None:
        raise InputError(file="--context", message="is of a kubeconfig; give --kubeconfig FILE with it")
    if not args.in_cluster and args.kubeconfig is None:
        return None
    from cli.given.names_found import read  # imports aiohttp, which takes a tenth of a second

    return read(args.kubeconfig, args.context, catalog)


def document(found: Sequence[Manifest], *, without_ca: bool, head: str = "") -> str:
    """Return the manifests as one YAML file, with instructions at the top."""
    return HEAD + (NO_CA if without_ca else "") + head + "".join(f"---\n{yaml_writer.text(manifest)}" for manifest in found)


def _service(text: str) -> Service:
    found = _SERVICE.fullmatch(text)
    port = int(found["port"] or 443) if found else 0
    if found is None or not 0 < port <= _LAST_PORT:
        raise InputError(file="--service", message=f"{shown(text)} is no Service; give NAMESPACE/NAME or NAMESPACE/NAME:PORT")
    return Service(namespace=found["namespace"], name=found["name"], port=port)


def _url(text: str) -> Url:
    """Parse a base URL. The API server adds the path, calls only over TLS, and accepts no user name, query or
    fragment."""
    wrong = _wrong(text)
    if wrong:
        raise InputError(file="--url", message=f"{shown(text)} {wrong}; give https://HOST:PORT")
    return Url(base=f"https://{urlsplit(text).netloc}")


def _wrong(text: str) -> str:
    try:
        split = urlsplit(text)
        port = split.port
    except ValueError as error:
        return f"is no URL ({error})"
    if split.scheme != "https":
        return "is not https://, and the API server calls over TLS alone"
    if not split.hostname or port == 0 or "@" in text or " " in text or not text.isprintable():
        return "names no host and port"
    if split.path.strip("/") or split.query or split.fragment:
        return "has more than a host and a port; the paths are Berth's own"
    return ""


def certificates(path: str, now: datetime) -> bytes:
    """Return the certificates of a PEM file and nothing else of it.

    Raises InputError if the file is unreadable, has no certificate, contains a private key, or has no
    certificate that can verify others at ``now``.
    """
    try:
        raw = _bytes(path)
        if b"PRIVATE KEY-----" in raw:
            raise CertificateError("holds a private key, which must not get into a manifest; give the CA's certificate alone")
        found = parse_chain(raw)
        _check_anchors(found, now)
    except CertificateError as error:
        raise InputError(file=path, message=str(error)) from None
    return b"".join(one.public_bytes(Encoding.PEM) for one in found)


def _bytes(path: str) -> bytes:
    """Read a file, or a pipe: ``kubectl get secret ... | berth webhooks --ca /dev/stdin``. Raises
    CertificateError."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise CertificateError(f"cannot be read: {error.strerror or error}") from None


def _check_anchors(found: Chain, now: datetime) -> None:
    """Check that one of the CAs is valid. While a CA is being replaced, an expired one may be beside its
    successor.

    Raises CertificateError.
    """
    anchors = [one for one in found if is_anchor(one)]
    if not anchors:
        raise CertificateError(
            "holds no CA: calls would fail as soon as this serving certificate is renewed; give the CA that issued it, usually ca.crt"
        )
    end = max(one.not_valid_after_utc for one in anchors)
    if now >= end:
        raise CertificateError(f"its CA expired on {end:%Y-%m-%d %H:%M}Z, so every call would fail; give the CA that issues now")


def is_anchor(certificate: x509.Certificate) -> bool:
    """Return whether a certificate is a CA, or self-issued.

    Go's crypto/x509, with which the API server verifies, accepts any other only as the server's own
    certificate.
    """
    try:
        if certificate.subject == certificate.issuer:
            return True
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        return False
    except (ValueError, x509.DuplicateExtension, x509.UnsupportedGeneralNameType):
        raise CertificateError("a certificate in it is damaged; give it anew, in PEM form") from None
