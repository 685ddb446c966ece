"""The registration that the chart renders is that of `berth webhooks`, at this release's address, with the choices of its values."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from cli.main import main
from cluster.webhook_rules import ANNOTATION
from registration.configurations import CLAIMS_CHOSEN, FIRST_NAME, NAMES_CHOSEN, Service, first, manifests
from registration.entries import ALWAYS, CLAIMS, Claims, InstallChoices
from tests.deploy.rendering import Raw, rendered
from tests.deploy.variants import VARIANTS
from tests.support.generators.random_worlds import catalog

RELEASED = {
    "mutate.pods.berth.dev",
    "mutate.claims.berth.dev",
    "validate.pods.berth.dev",
    "validate.claims.berth.dev",
    "mutate.claims-made.berth.dev",
    "validate.claims-made.berth.dev",
    "mutate.updates.berth.dev",
    "validate.updates.berth.dev",
    "advise.workloads.berth.dev",
    "advise.operators.berth.dev",
}
"""The entries of every version so far. One that is dropped or renamed can't be upgraded to: server-side apply leaves half of the old entry,
for Berth owns its caBundle."""

IDLE = {"mutate.claims.berth.dev", "validate.claims.berth.dev"}
"""Of these, those that are called only where claims are at Ignore."""


def configurations(values: Raw | None = None, **where: str) -> list[Raw]:
    """Both, of this release."""
    return rendered(values, "--show-only=templates/webhooks.yaml", **where)


def entries(found: list[Raw]) -> dict[str, Raw]:
    """By name, as they are once a replica has put their rules into effect."""
    return {entry["name"]: entry for one in map(in_effect, found) for entry in one["webhooks"]}


def in_effect(one: Raw) -> Raw:
    """Return a configuration with the rules of its annotation in its entries."""
    annotations = dict(one["metadata"]["annotations"])
    rules = json.loads(annotations.pop(ANNOTATION, "{}"))
    webhooks = [{**entry, **({"rules": rules[entry["name"]]} if entry["name"] in rules else {})} for entry in one["webhooks"]]
    return {**one, "metadata": {**one["metadata"], "annotations": annotations}, "webhooks": webhooks}


def excluded(entry: Raw) -> list[str]:
    values: list[str] = entry["namespaceSelector"]["matchExpressions"][0]["values"]
    return values


def test_by_default_it_is_what_berth_webhooks_prints() -> None:
    """But for labels, in every field."""
    found, printed = configurations(), manifests(catalog(), Service())
    wanted = entries(list(printed))
    assert {name: entry for name, entry in entries(found).items() if name in wanted} == wanted
    assert set(entries(found)) - set(wanted) == IDLE
    assert [in_effect(one)["metadata"]["annotations"] for one in found] == [one["metadata"]["annotations"] for one in printed]


def test_claims_at_ignore_are_what_berth_webhooks_prints() -> None:
    """With the annotation by which a replica checks it."""
    found, printed = (
        configurations({"registration": {"claims": "Ignore"}}),
        manifests(catalog(), Service(), None, InstallChoices(claims="Ignore")),
    )
    assert [in_effect(one)["webhooks"] for one in found] == [one["webhooks"] for one in printed]
    assert [in_effect(one)["metadata"]["annotations"] for one in found] == [one["metadata"]["annotations"] for one in printed]


def test_without_claims_an_entry_stays_that_is_never_called() -> None:
    """Its name stays, for server-side apply can't remove it; all others are what `berth webhooks --claims Off` prints."""
    found, printed = (
        configurations({"registration": {"claims": "Off"}}),
        manifests(catalog(), Service(), None, InstallChoices(claims="Off")),
    )
    wanted = entries(list(printed))
    assert {name: entry for name, entry in entries(found).items() if name in wanted} == wanted
    idle = [entry for name, entry in entries(found).items() if name not in wanted]
    assert {entry["name"] for entry in idle} == {name for name in RELEASED if ".claims" in name}
    assert all(not {"rules", "matchConditions"} & set(entry) and entry["failurePolicy"] == "Ignore" for entry in idle)
    assert {one["metadata"]["annotations"][CLAIMS_CHOSEN] for one in found} == {"Off"}


@pytest.mark.parametrize("claims", CLAIMS)
def test_with_queues_it_is_what_berth_webhooks_prints(claims: Claims) -> None:
    """Three configurations, the third of which is called before Kueue's; without claims those entries stay, and are never called."""
    found = configurations({"registration": {"queues": True, "claims": claims}})
    chosen = InstallChoices(queues=True, claims=claims)
    printed = [*manifests(catalog(), Service(), None, chosen), *filter(None, [first(catalog(), Service(), None, chosen)])]
    assert _by_name(found).keys() == _by_name(printed).keys() > {("MutatingWebhookConfiguration", FIRST_NAME)}
    for name, one in _by_name(printed).items():
        assert in_effect(_by_name(found)[name])["metadata"]["annotations"] == one["metadata"]["annotations"]
    wanted, made = entries(printed), entries(found)
    assert {name: entry for name, entry in made.items() if name in wanted} == wanted
    assert {name for name in made if name not in wanted} == {
        name for name in RELEASED if (claims == "Off" and ".claims" in name) or (claims == "Fail" and name in IDLE)
    }


def _by_name(found: list[Raw]) -> dict[tuple[str, str], Raw]:
    return {(one["kind"], one["metadata"]["name"]): one for one in found}


def test_without_queues_no_workload_is_labelled() -> None:
    """Which is the default."""
    assert len(configurations()) == 2
    assert not [name for name in entries(configurations()) if name.startswith(("label.", "validate.workloads", "validate.operators"))]


@pytest.mark.parametrize("values", [None, {"registration": {"claims": "Off"}}], ids=["default", "off"])
def test_no_entry_of_an_earlier_version_is_gone(values: Raw | None) -> None:
    """An upgrade by server-side apply would fail."""
    assert set(entries(configurations(values))) >= RELEASED


@pytest.mark.parametrize("name", VARIANTS)
def test_no_rule_is_in_effect_before_a_replica_is(name: str) -> None:
    """Rendered without rules the API server calls for nothing, whatever becomes of the replicas."""
    assert not [entry["name"] for one in VARIANTS[name].objects() for entry in one.get("webhooks", ()) if "rules" in entry]


@pytest.mark.parametrize("name", VARIANTS)
def test_no_ca_is_rendered(name: str) -> None:
    """Berth publishes it, or cert-manager: rendered, every upgrade would take it away."""
    found = VARIANTS[name].objects()
    assert all(set(entry["clientConfig"]) == {"service"} for entry in entries([one for one in found if "webhooks" in one]).values())


def test_who_injects_is_told() -> None:
    """cert-manager, by an annotation; Berth then leaves the field alone."""
    found = [one for one in VARIANTS["cert-manager"].objects() if "webhooks" in one]
    assert {one["metadata"]["annotations"]["cert-manager.io/inject-ca-from"] for one in found} == {"berth-system/berth"}
    assert all("cert-manager.io/inject-ca-from" not in one["metadata"]["annotations"] for one in configurations())


def test_it_leads_to_this_release() -> None:
    """Its Service, and its namespace in place of berth-system, whose name anybody could take."""
    found = entries(configurations({"service": {"port": 8443}}, release="gpus", namespace="platform"))
    services = {tuple(entry["clientConfig"]["service"][key] for key in ("namespace", "name", "port")) for entry in found.values()}
    assert services == {("platform", "gpus-berth", 8443)}
    assert {entry["clientConfig"]["service"]["path"] for entry in found.values()} == {
        "/mutate",
        "/validate",
        "/mutate/ignore",
        "/validate/ignore",
        "/advise",
    }
    assert {tuple(excluded(entry)) for entry in found.values()} == {(*ALWAYS, "platform")}


def test_choices_of_scope() -> None:
    """Namespaces left out by name, others chosen by label, in every entry."""
    found = entries([one for one in VARIANTS["registration"].objects() if "webhooks" in one])
    for entry in found.values():
        assert excluded(entry) == [*ALWAYS, "berth-system", "gpu-operator"]
        assert entry["namespaceSelector"]["matchExpressions"][1] == {"key": "tier", "operator": "NotIn", "values": ["test"]}
        assert entry["namespaceSelector"]["matchLabels"] == {"berth.dev/checked": "true"}


def test_annotations_are_passed_on() -> None:
    """Beside those by which a replica checks the registration."""
    found = [one["metadata"]["annotations"] for one in VARIANTS["registration"].objects() if "webhooks" in one]
    assert [one["admissions.enforcer/disabled"] for one in found] == ["true", "true"]
    assert [one[CLAIMS_CHOSEN] for one in found] == ["Fail", "Fail"]


def test_choices_of_failure_and_time() -> None:
    """Advice never waits for more than two seconds, and never denies."""
    found = entries([one for one in VARIANTS["registration"].objects() if "webhooks" in one])
    policies = {name: entry["failurePolicy"] for name, entry in found.items()}
    assert set(policies.values()) == {"Ignore"}
    assert {name: entry["timeoutSeconds"] for name, entry in found.items()} == {
        name: 2 if name.startswith("advise.") else 10 for name in found
    }
    short = entries(configurations({"registration": {"timeoutSeconds": 1}}))
    assert {entry["timeoutSeconds"] for entry in short.values()} == {1}


def test_a_registration_of_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With names that the chart can't know; address and namespace are the release's, and entries that it lacks are never called."""
    assert main(["webhooks", "--resource-name", "acme.example/gpu", "--claims", "Off", "--exclude-namespace", "gpu-operator"]) == 0
    own = capsys.readouterr().out
    found = configurations({"registration": {"manifests": own}}, release="gpus", namespace="platform")
    assert {one["metadata"]["annotations"][NAMES_CHOSEN] for one in found} == {"acme.example/gpu"}
    assert {one["metadata"]["annotations"][CLAIMS_CHOSEN] for one in found} == {"Off"}
    given = entries(list(yaml.safe_load_all(own)))
    made = entries(found)
    assert set(made) == RELEASED
    assert all(made[name]["matchConditions"] == entry["matchConditions"] for name, entry in given.items())
    assert {made[name]["clientConfig"]["service"]["name"] for name in made} == {"gpus-berth"}
    assert {"gpu-operator", "platform"} <= set(excluded(made["mutate.pods.berth.dev"]))
