"""`berth certs`: the certificates of an installation: what they are, whether callers can verify them, and a
rotation on request.

Keys are never printed. Exit code 0: all is well, or the rotation was asked for; 1: `check` found something
wrong, a line for each; 2: bad input.
"""

from __future__ import annotations

import argparse
import asyncio
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from certs.rotation import Material
from certs.secret import from_data, is_ours
from cli.options import add_cluster_options
from cli.output import stderr
from cluster.certificates.registrations import Configuration, Registrations
from cluster.certificates.secret_store import REQUEST, SecretStore
from cluster.client.access import Access
from cluster.client.api_client import Client
from cluster.client.errors import AccessError, Failure, Rejected
from documents.printable import printable
from policies.document import InputError
from registration.configurations import NAME
from sources.state import access_of
from webhook.settings import DEFAULT_SECRET

WRONG = 1


def add_parser(subcommands: Any) -> None:
    """Add `certs` to the command's subparsers."""
    parser: argparse.ArgumentParser = subcommands.add_parser(
        "certs",
        help="show, check or rotate Berth's certificates",
        description="Show, check or rotate the certificates that Berth's replicas share in a Secret (serve --cert-secret). "
        "Exit code 0: success, 1: check found a problem, 2: invalid input.",
        examples=(
            ("List the certificates and when they expire", "%(prog)s show"),
            ("Check that the API server can verify them", "%(prog)s check"),
            ("Replace the CA; the old CA stays trusted for --ca-overlap", "%(prog)s rotate ca"),
        ),
    )
    add = parser.add_argument
    add(
        "action",
        choices=("show", "check", "rotate"),
        help="show: print the certificates; check: list problems; rotate: ask the replicas for new certificates",
    )
    add(
        "which", nargs="?", choices=("leaf", "ca"), default="leaf", help="what rotate replaces: the serving certificate (default) or the CA"
    )
    add("--secret", metavar="NAMESPACE/NAME", default=DEFAULT_SECRET, help=f"Secret with the certificates; default: {DEFAULT_SECRET}")
    add_cluster_options(parser)


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledCertificates:
    """What an installation has."""

    material: Material
    damaged: tuple[str, ...]
    configurations: list[Configuration]


def run(args: argparse.Namespace) -> int:
    """Do what is asked. Raises InputError where the cluster cannot be asked."""
    namespace, slash, name = args.secret.partition("/")
    if not (namespace and slash and name):
        raise InputError(file="--secret", message=f'"{args.secret}" is not NAMESPACE/NAME; for example, write {DEFAULT_SECRET}')
    access = access_of(args.kubeconfig, args.context)
    try:
        if args.action == "rotate":
            asyncio.run(_ask(access, namespace, name, args.which))
            print(f"requested a new {'CA' if args.which == 'ca' else 'serving certificate'}; to see it, run berth certs show")
            return 0
        found = asyncio.run(_found(access, namespace, name))
    except (AccessError, Failure) as error:
        raise InputError(file="cluster", message=str(error)) from None
    if args.action == "show":
        print("\n".join(map(printable, show_certificates(found))))
        return 0
    problems = list(wrong(found, datetime.now(UTC)))
    for line in problems:
        stderr.say(line)
    if not problems:
        print("no problems found: the registration trusts every CA, and the serving certificate is valid")
    return WRONG if problems else 0


def show_certificates(found: InstalledCertificates) -> Iterator[str]:
    """Yield the lines of `show`: the authorities, the serving certificate, the registration."""
    for one in found.material.authorities:
        until = f"{one.certificate.not_valid_after_utc:%Y-%m-%d %H:%M}Z"
        state = "no longer signs" if one.retired else "in use" if one is found.material.issuer() else "signs next"
        published = f"published {one.published:%Y-%m-%d %H:%M}Z" if one.published else "not published yet"
        yield f"CA {one.fingerprint[:8]}  until {until}  {state}, {published}{'' if one.key is not None else ', key missing'}"
    leaf = found.material.leaf
    if leaf is not None:
        yield f"serving certificate  until {leaf.certificate.not_valid_after_utc:%Y-%m-%d %H:%M}Z  for {', '.join(leaf.names)}"
    for configuration in found.configurations:
        prints = sorted(fingerprint[:8] for fingerprint in configuration.trusts())
        yield f"{configuration.kind}/{NAME} trusts {', '.join(prints) or 'no CA'}"
    yield from found.damaged


def wrong(found: InstalledCertificates, now: datetime) -> Iterator[str]:
    """Yield a sentence for all that keeps callers from verifying Berth, or soon will."""
    material = found.material
    yield from found.damaged
    if material.leaf is None:
        yield "there is no serving certificate; check that a replica is running: kubectl -n berth-system get pods"
    elif now >= material.leaf.certificate.not_valid_after_utc:
        yield f"the serving certificate expired on {material.leaf.certificate.not_valid_after_utc:%Y-%m-%d %H:%M}Z; no replica renewed it"
    issuer = material.issuer()
    if not found.configurations:
        yield f"there is no webhook configuration {NAME}, so the API server does not call Berth; create it with berth webhooks"
    for one in found.configurations:
        missing = sorted(fingerprint[:8] for fingerprint in material.fingerprints - one.trusts())
        if issuer is not None and issuer.fingerprint not in one.trusts():
            yield f"{one.kind}/{NAME} does not trust the CA in use, so the API server cannot call Berth"
        elif missing:
            yield f"{one.kind}/{NAME} does not trust CA {', '.join(missing)} yet"


async def _found(access: Access, namespace: str, name: str) -> InstalledCertificates:
    client = await Client.connect(access)
    try:
        stored = await SecretStore(client, namespace, name).read()
        if stored.value is None:
            raise InputError(file="cluster", message=f"there is no Secret {namespace}/{name}; set --secret NAMESPACE/NAME")
        if not is_ours(stored.data):
            what = "was not created by Berth (serve --cert-source theirs); /readyz of a replica shows the certificate in use"
            raise InputError(file="cluster", message=f"the Secret {namespace}/{name} {what}")
        material, damaged = from_data(stored.data)
        configurations = await Registrations(client, NAME, _nobody).read()
    finally:
        await client.close()
    return InstalledCertificates(material=material, damaged=damaged, configurations=configurations)


async def _ask(access: Access, namespace: str, name: str, which: str) -> None:
    client = await Client.connect(access)
    try:
        path = SecretStore(client, namespace, name).path
        body = {"metadata": {"annotations": {REQUEST: f"{which} {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {secrets.token_hex(4)}"}}}
        reply = await client.call("PATCH", path, body=body, content="application/merge-patch+json")
        if not reply.ok:
            raise Rejected(f"PATCH {path}", reply)
    finally:
        await client.close()


def _nobody(event: str, /, **fields: Any) -> None:
    """Report nothing: a person reads what is printed."""
