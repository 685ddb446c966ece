"""Values that are wrong are refused by their name, and every value is tried."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.deploy.rendering import rendered, rendered_text
from tests.deploy.variants import VARIANTS
from tests.testcluster.addons.helm import CHART, HelmRefused, helm

SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())
NOT_RENDERED = {"global", "enabled"}
OWN_REGISTRATION = "registration.manifests"
"""Tried in test_registration"""


def paths(schema: dict[str, Any], before: str = "") -> Iterator[str]:
    """Of every value that is no group of values."""
    for name, one in schema["properties"].items():
        if one.get("additionalProperties") is False and one.get("properties") and "default" not in one:
            yield from paths(one, f"{before}{name}.")
        else:
            yield f"{before}{name}"


def given(values: dict[str, Any], before: str = "") -> Iterator[str]:
    for name, one in values.items():
        yield f"{before}{name}"
        if isinstance(one, dict):
            yield from given(one, f"{before}{name}.")


def test_every_value_is_tried() -> None:
    """A new one needs a variant in which it is other than by default."""
    tried = {path for variant in VARIANTS.values() for path in given(variant.values)}
    assert set(paths(SCHEMA)) - tried - NOT_RENDERED == {OWN_REGISTRATION}


def test_values_of_the_wrong_type_are_named() -> None:
    """All at once. Nothing is a list of one number but what is no value of this chart."""
    wrong = sorted(set(paths(SCHEMA)) - NOT_RENDERED)
    with pytest.raises(HelmRefused) as refused:
        rendered_text([word for path in wrong for word in ("--set-json", f"{path}=[17]")])
    named = set(re.findall(r"at '/(\S+?)(?:/0)?'", str(refused.value)))
    assert {path.replace(".", "/") for path in wrong} <= named


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("replica=3", "additional properties 'replica' not allowed"),
        ("image.tags=x", "at '/image': additional properties 'tags' not allowed"),
        ("replicas=three", "at '/replicas': got string, want integer"),
        ("replicas=0", "at '/replicas': minimum: got 0, want 1"),
        ("maxMode=audit", "at '/maxMode': value must be one of 'Audit', 'Warn', 'Enforce'"),
        ("platforms={eks}", "at '/platforms/0': value must be one of"),
        ("library.policies={defaults}", "at '/library/policies/0': value must be one of"),
        ("library.modes.berth-defaults=Enforce", "at '/library/modes': additional properties 'berth-defaults' not allowed"),
        ("library.modes.training=enforce", "at '/library/modes/training': value must be one of 'Audit', 'Warn', 'Enforce'"),
        ("ports.webhook=443", "at '/ports/webhook': minimum: got 443, want 1,024"),
        ("certificates.source=none", "at '/certificates/source': value must be one of"),
        ("certificates.source=secret", "certificates.secretName: is empty; name the Secret with tls.crt, tls.key and ca.crt"),
        ("certificates.source=cert-manager", "certificates.certManager.issuerRef.name: is empty; name the Issuer or ClusterIssuer"),
        ("registration.manifests=a: [", "registration.manifests: is no YAML"),
        ("registration.manifests=kind: Pod", "registration.manifests: does not hold two webhook configurations"),
    ],
)
def test_a_wrong_value_is_told_in_words(option: str, said: str) -> None:
    """By the schema where it can tell, else by the template."""
    with pytest.raises(HelmRefused) as refused:
        rendered_text(["--set", option])
    assert said in str(refused.value).replace("\n", " ")


def test_the_chart_may_stand_in_another_one() -> None:
    """Helm then gives it `global`, and its switch stands among its values."""
    assert rendered({"global": {"a": 1}, "enabled": True}) == rendered()


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_passes_helms_own_checks(name: str) -> None:
    """`helm lint --strict` finds nothing wrong with it."""
    pairs = [word for key, value in VARIANTS[name].values.items() for word in ("--set-json", f"{key}={json.dumps(value)}")]
    assert "0 chart(s) failed" in helm("lint", "--strict", str(CHART), f"--namespace={VARIANTS[name].namespace}", *pairs)
