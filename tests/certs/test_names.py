"""Names that a certificate can be issued for."""

from __future__ import annotations

import pytest

from certs.names import normal

LABEL = "a" * 63


@pytest.mark.parametrize(
    "name",
    [
        "localhost",
        "berth.berth-system.svc",
        "*.berth.svc",
        "1a.example",
        "xn--bcher-kva.example",
        "Berth.Example",
        "10-0-0-7.example",
        LABEL,
        f"{LABEL}.{LABEL}.{LABEL}.{'a' * 61}",
        "10.0.0.7",
        "::1",
        "fe80::1",
    ],
)
def test_a_name_stays_as_it_is(name: str) -> None:
    """DNS names of RFC 1123 labels, a wildcard in front, at most 253 characters; addresses in their shortest form."""
    assert normal(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "a b",
        "berth..svc",
        ".svc",
        "berth.svc.",
        "-a",
        "a-.svc",
        "a_b",
        "bücher.example",
        "*",
        "*.",
        "a.*.svc",
        "*a.svc",
        "berth.svc:8443",
        "https://berth.svc",
        "[::1]",
        "10.0.0.256",
        "10.0.0",
        "10.0.0.0/8",
        "a\n",
        LABEL + "a",
        f"{LABEL}.{LABEL}.{LABEL}.{'a' * 62}",
        "\udc80",
    ],
)
def test_what_no_caller_can_ask_for_is_no_name(name: str) -> None:
    """Spaces, empty labels, ports, brackets, ranges, hyphens at an end, over 63 or 253 characters."""
    assert normal(name) is None


@pytest.mark.parametrize(("name", "form"), [("0:0::1", "::1"), ("FE80::A", "fe80::a"), ("fe80::1%eth0", "fe80::1")])
def test_an_address_has_one_form(name: str, form: str) -> None:
    """The shortest, without a zone, as a certificate gives it back."""
    assert normal(name) == form
