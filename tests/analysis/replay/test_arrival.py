"""The pod of an audit event as Berth's webhook met it."""

from __future__ import annotations

from typing import Any

from analysis.replay.arrival import as_met

Raw = dict[str, Any]
DEFAULTED = [
    {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for name in ("not-ready", "unreachable")
]
OWN = {"key": "own", "operator": "Exists"}


def pod(**spec: Any) -> Raw:
    return {"metadata": {}, "spec": {"containers": [{"name": "main"}], **spec}}


def test_what_every_pod_is_given_is_there() -> None:
    """Unless the author tolerates it already, in whatever words; the given pod is not changed."""
    plain = pod()
    assert as_met(plain, None, (), ())["spec"]["tolerations"] == DEFAULTED
    assert plain == pod()
    assert as_met(pod(tolerations=[OWN]), None, (), ())["spec"]["tolerations"] == [OWN, *DEFAULTED]
    for everything in ({"operator": "Exists"}, {"key": "", "operator": "Exists", "effect": "NoExecute"}):
        assert as_met(pod(tolerations=[everything]), None, (), ())["spec"]["tolerations"] == [everything]
    own = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
    assert as_met(pod(tolerations=[own]), None, (), ())["spec"]["tolerations"] == [own, DEFAULTED[1]]


def test_webhooks_that_were_called_earlier_have_changed_it() -> None:
    """A patch that does not fit is left out: of what it was made for nothing is known."""
    labelled = [{"op": "add", "path": "/metadata/labels", "value": {"queue": "a"}}]
    wrong = [{"op": "add", "path": "/spec/containers/7/name", "value": "x"}, "odd", {"op": "add"}]
    met = as_met(pod(), None, [wrong, labelled], ())
    assert met["metadata"]["labels"] == {"queue": "a"}
    assert met["spec"]["containers"] == [{"name": "main"}]


def test_the_stored_pod_tells_what_plugins_have_added() -> None:
    """Tolerations, selectors and amounts that neither the author nor a webhook wrote: those of RuntimeClass and LimitRanger."""
    ours = {"key": "nvidia.com/gpu", "operator": "Exists"}
    runtime = {"key": "runtime", "operator": "Exists"}
    patch = [{"op": "add", "path": "/spec/tolerations/-", "value": ours}]
    limited = {"name": "main", "resources": {"requests": {"cpu": "1", "nvidia.com/gpu": "1"}}}
    stored = pod(tolerations=[OWN, runtime, *DEFAULTED, ours], nodeSelector={"runtime": "yes"}) | {"kind": "Pod"}
    stored["spec"]["containers"] = [{"name": "injected"}, limited]
    met = as_met(pod(tolerations=[OWN]), stored, (), patch)
    assert met["spec"]["tolerations"] == [OWN, runtime, *DEFAULTED]
    assert met["spec"]["nodeSelector"] == {"runtime": "yes"}
    assert met["spec"]["containers"] == [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]


def test_what_is_shaped_like_no_pod_stays_as_it_is() -> None:
    """It is told where it is judged."""
    shapes: list[Raw] = [{}, {"spec": None}, {"spec": []}, {"spec": "x"}]
    for odd in shapes:
        assert as_met(odd, {"spec": {"tolerations": "x", "containers": 1}}, (), ()) == odd
    assert as_met(pod(tolerations="x", containers=[1]), {"spec": 5}, (), ())["spec"]["containers"] == [1]
