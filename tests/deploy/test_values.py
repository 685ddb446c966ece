"""Values that are wrong are denied by their name, and every value is tried."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis.strategies import fixed_dictionaries, from_regex

from tests.deploy.rendering import rendered, rendered_text
from tests.deploy.test_workload import options
from tests.deploy.variants import VARIANTS
from tests.support.counts import count, only_in_prove
from tests.testcluster.addons.helm import CHART, HelmRejected, helm
from tests.webhook.test_settings import from_args
from webhook.settings import SettingsError

SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())
OPTIONS = {"caLife": "ca_life", "leafLife": "leaf_life", "caOverlap": "ca_overlap"}
NOT_RENDERED = {"global", "enabled"}
OWN_REGISTRATION = "registration.manifests"
"""Tried in test_registration"""
LINTED = ("default", "registration", "policies", "metrics and network", "console", "guards")


def paths(schema: dict[str, Any], before: str = "") -> Iterator[str]:
    """Of every value that is no group of values."""
    for name, one in schema["properties"].items():
        if one.get("additionalProperties") is False and one.get("properties") and "default" not in one:
            yield from paths(one, f"{before}{name}.")
        else:
            yield f"{before}{name}"


def values_given(values: dict[str, Any], before: str = "") -> Iterator[str]:
    for name, one in values.items():
        yield f"{before}{name}"
        if isinstance(one, dict):
            yield from values_given(one, f"{before}{name}.")


def test_every_value_is_tried() -> None:
    """A new one needs a variant in which it is other than by default."""
    tried = {path for variant in VARIANTS.values() for path in values_given(variant.values)}
    assert set(paths(SCHEMA)) - tried - NOT_RENDERED == {OWN_REGISTRATION}


def test_values_of_the_wrong_type_are_named() -> None:
    """All at once. Nothing is a list of one number but what is no value of this chart."""
    wrong = sorted(set(paths(SCHEMA)) - NOT_RENDERED)
    with pytest.raises(HelmRejected) as denied:
        rendered_text([word for path in wrong for word in ("--set-json", f"{path}=[17]")])
    named = set(re.findall(r"at '/(\S+?)(?:/0)?'", str(denied.value)))
    assert {path.replace(".", "/") for path in wrong} <= named


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("replica=3", "additional properties 'replica' not allowed"),
        ("image.tags=x", "at '/image': additional properties 'tags' not allowed"),
        ("resources.request.cpu=1", "at '/resources': additional properties 'request' not allowed"),
        ("audit.resources.limit.cpu=1", "at '/audit/resources': additional properties 'limit' not allowed"),
        ("console.resources.claim={gpu}", "at '/console/resources': additional properties 'claim' not allowed"),
        ("resources.requests=1", "at '/resources/requests': got number, want object"),
        ("replicas=three", "at '/replicas': got string, want integer"),
        ("replicas=0", "at '/replicas': minimum: got 0, want 1"),
        ("maxMode=audit", "at '/maxMode': value must be one of 'Audit', 'Warn', 'Enforce'"),
        ("platforms={eks}", "at '/platforms/0': value must be one of"),
        ("library.policies={defaults}", "at '/library/policies/0': value must be one of"),
        ("library.modes.berth-defaults=Enforce", "at '/library/modes': additional properties 'berth-defaults' not allowed"),
        ("library.modes.training=enforce", "at '/library/modes/training': value must be one of 'Audit', 'Warn', 'Enforce'"),
        ("ports.webhook=443", "at '/ports/webhook': minimum: got 443, want 1,024"),
        ("certificates.leafLife=7d", "at '/certificates/leafLife': '7d' does not match pattern"),
        ("certificates.leafLife=299s", "certificates.leafLife: is less than 5m"),
        ("certificates.caLife=170h", "certificates.caLife: is too short; write at least leafLife plus three times caOverlap"),
        ("certificates.caLife=9000h", "certificates.caLife: is more than a year; write at most 8784h"),
        ("console.enabled=true,console.session=25h", "console.session: is not between 1m and 24h; write, for example, 1h"),
        ("certificates.source=none", "at '/certificates/source': value must be one of"),
        ("certificates.source=secret", "certificates.secretName: is empty; name the Secret with tls.crt, tls.key and ca.crt"),
        ("certificates.source=cert-manager", "certificates.certManager.issuerRef.name: is empty; name the Issuer or ClusterIssuer"),
        ("registration.manifests=a: [", "registration.manifests: is not YAML"),
        ("registration.manifests=kind: Pod", "registration.manifests: does not contain two webhook configurations"),
    ],
)
def test_a_wrong_value_is_told_in_words(option: str, said: str) -> None:
    """By the schema where it can tell, else by the template."""
    with pytest.raises(HelmRejected) as denied:
        rendered_text(["--set", option])
    assert said in str(denied.value).replace("\n", " ")


def test_the_chart_may_stand_in_another_one() -> None:
    """Helm then gives it `global`, and its switch stands among its values."""
    assert rendered({"global": {"a": 1}, "enabled": True}) == rendered()


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in LINTED else only_in_prove) for name in VARIANTS])
def test_a_variant_passes_helms_own_checks(name: str) -> None:
    """`helm lint --strict` finds nothing wrong with it. `make test` has those that render most; all are rendered in test_workload.py."""
    pairs = [word for key, value in VARIANTS[name].values.items() for word in ("--set-json", f"{key}={json.dumps(value)}")]
    assert "0 chart(s) failed" in helm("lint", "--strict", str(CHART), f"--namespace={VARIANTS[name].namespace}", *pairs)


@settings(max_examples=count(8, 100))
@example(lives={"caLife": "8784h", "leafLife": "5m", "caOverlap": "1s"})
@example(lives={"caLife": "8760h", "leafLife": "4m", "caOverlap": "1h"})
@example(lives={"caLife": "60m", "leafLife": "3000s", "caOverlap": "3m"})
@given(lives=fixed_dictionaries(dict.fromkeys(OPTIONS, from_regex(r"[1-9][0-9]{0,4}[hms]", fullmatch=True))))
def test_the_chart_takes_the_durations_that_the_process_takes(lives: dict[str, str]) -> None:
    """No other ones: neither a crash loop after `helm install`, nor a value that only the process knows."""
    try:
        taken: dict[str, str] | None = options(rendered({"certificates": lives}))
    except HelmRejected:
        taken = None
    try:
        from_args(in_cluster=True, cert_secret="a/b", names=("n.a.svc",), **{option: lives[name] for name, option in OPTIONS.items()})
    except SettingsError:
        assert taken is None
    else:
        assert taken is not None
        assert {name: taken[f"--{option.replace('_', '-')}"] for name, option in OPTIONS.items()} == lives
