"""What is found of each object: which conditions there are, and what stands beside them."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.conditions import compute_conditions, in_steps
from policies.state.compilation import MOST_OWN
from policies.state.updater import Updater
from tests.analysis.conditions.found import condition, found, key, message_of, namespace, new_updater, own, policy, template


def accepted(finding: Any) -> tuple[str, str, str]:
    one = condition(finding, "Accepted")
    assert one is not None
    return one.status, one.reason, one.message


def changed(world: Updater, *objects: dict[str, Any]) -> dict[str, Any]:
    lived = world.apply({key(one): one for one in objects})
    return {k[2]: finding for k, finding in compute_conditions(lived.snapshot, lived.entries, {}).items()}


def test_a_sound_policy_has_three_conditions_and_says_what_it_does_where() -> None:
    """The others are there only while there is something to say."""
    (finding,) = found(
        policy("p", require={"families": {"in": ["hopper"]}, "gpusPerPod": {"max": 8}}, default={"gracePeriod": "30m"})
    ).values()
    assert [(c.type, c.status, c.reason) for c in finding.conditions] == [
        ("Accepted", "True", "Understood"),
        ("Conflicted", "False", "NoConflict"),
        ("Ready", "True", "InForce"),
    ]
    assert finding.what == "require families in [hopper], gpusPerPod max 8; default gracePeriod 30m"
    assert finding.where == "all namespaces"
    assert (finding.generation, finding.last_good) == (1, None)


def test_every_error_is_told_and_that_nothing_acts() -> None:
    """Of an object that never was understood."""
    status, reason, message = accepted(found(policy("p", require={"families": {"in": ["hoper"]}, "capacity": ["spott"]}))["p"])
    assert (status, reason) == ("False", "Invalid")
    assert 'did you mean "hopper"?' in message
    assert "spec.require.capacity[0]" in message
    assert message.endswith("2 errors; it has no effect.")


def test_the_last_good_form_goes_on_and_is_kept() -> None:
    """Until the mistake is mended."""
    world = new_updater()
    good = policy("p", require={"capacity": ["spot"]})
    changed(world, good, namespace("ml"))
    bad = {**good, "metadata": {**good["metadata"], "generation": 2}, "spec": {"mode": "Enforce", "require": {"capacity": ["spott"]}}}
    finding = changed(world, bad)["p"]
    assert accepted(finding)[2].endswith("1 error; generation 1 stays in effect.")
    assert finding.last_good == {"generation": 1, "spec": good["spec"]}
    assert finding.generation == 2
    assert finding.what == "require capacity [spot]"
    fixed = changed(world, {**good, "metadata": {**good["metadata"], "generation": 3}})["p"]
    assert (accepted(fixed)[0], fixed.last_good) == ("True", None)


def test_a_template_that_is_not_there_is_named_with_the_nearest() -> None:
    """All else of the policy acts."""
    objects = policy("p", default={"nodeTemplate": "a10-training", "gracePeriod": "2m"}), template("a100-training")
    status, reason, message = accepted(found(*objects)["p"])
    assert (status, reason) == ("False", "TemplateNotFound")
    lacking = 'spec.default.nodeTemplate: there is no GPUNodeTemplate "a10-training"; did you mean "a100-training"?'
    assert message == f"{lacking} The rest of the policy applies."


def test_a_template_with_errors_is_told_where_it_is_named() -> None:
    """It is there, and still does not act."""
    objects = policy("p", allow={"nodeTemplates": ["t"]}), template("t", capacity=["spott"])
    both = found(*objects)
    assert accepted(both["p"])[2].startswith('spec.allow.nodeTemplates[0]: the GPUNodeTemplate "t" is invalid')
    assert accepted(both["t"])[1] == "Invalid"


def test_a_template_says_what_it_is_and_who_uses_it() -> None:
    """And has no condition that speaks of policies."""
    finding = found(template("t", capacity=["on-demand"]), policy("p", default={"nodeTemplate": "t"}), policy("q"))["t"]
    assert [c.type for c in finding.conditions] == ["Accepted", "Ready"]
    assert finding.what == "gpus families in [ampere]; capacity [on-demand]; labels karpenter.sh/nodepool=gpu"
    assert finding.where == "default of 1 policy"


@pytest.mark.parametrize(
    ("objects", "reason", "stalled"),
    [
        ((policy("p", require={"capacity": ["spott"]}),), "Invalid", True),
        ((policy("p", default={"nodeTemplate": "t"}),), "TemplateNotFound", False),
        ((policy("p", default={"nodeTemplate": "t"}), template("t", capacity=["spott"])), "TemplateNotFound", False),
        ((*(own(f"a{i:02}", "ml") for i in range(MOST_OWN)), own("p", "ml")), "TooManyPolicies", False),
    ],
    ids=["errors of its own", "no template", "a template with errors", "too many"],
)
def test_what_is_not_accepted_is_not_ready(objects: tuple[dict[str, Any], ...], reason: str, *, stalled: bool) -> None:
    """For the same reason; Stalled only where no other object can mend it."""
    finding = found(*objects)["p"]
    told = accepted(finding)[1:]
    assert told[0] == reason
    conditions = {c.type: (c.status, c.reason, c.message) for c in finding.conditions}
    assert conditions["Ready"] == ("False", *told)
    assert conditions.get("Stalled") == (("True", *told) if stalled else None)


def test_a_policy_in_conflict_is_ready() -> None:
    """It acts all the same."""
    for finding in found(policy("a", require={"capacity": ["spot"]}), policy("b", require={"capacity": ["on-demand"]})).values():
        one = condition(finding, "Ready")
        assert message_of(finding, "Conflicted")
        assert one is not None
        assert one.status == "True"


@pytest.mark.parametrize("errors", [30, 90])
def test_messages_are_bounded(errors: int) -> None:
    """Hundreds of errors are one message like any other, with the count of the rest."""
    message = accepted(found(policy("p", require={"models": {"in": [f"X{'y' * 40}{i}" for i in range(errors)]}}))["p"])[2]
    assert len(message) <= 2_000
    assert f"{errors} errors; it has no effect." in message
    assert " more. " in message


def test_capped_modes_are_said() -> None:
    """The status has the mode that acts, and Ready says why it is not that of the spec; a policy that is not capped has neither."""
    for most, wanted in (("Audit", "Audit"), ("Warn", "Warn"), ("Enforce", "Enforce")):
        one = found(policy("p", require={"capacity": ["spot"]}), max_mode=most)["p"]
        ready = condition(one, "Ready")
        assert ready is not None
        assert (one.mode, ready.status, ready.reason) == (wanted, "True", "InForce" if most == "Enforce" else "ModeCapped")
        capped = f"{most}: the server's --max-mode (maxMode of the chart) caps mode Enforce"
        assert ready.message == ("" if most == "Enforce" else capped)
    assert found(policy("p", mode="Audit"), max_mode="Warn")["p"].mode == "Audit"


def test_an_object_of_which_nothing_acts_has_no_mode() -> None:
    """A template, and a policy with errors that was never understood."""
    both = found(template("t"), policy("p", require={"capacity": ["spott"]}))
    assert [both["t"].mode, both["p"].mode] == [None, None]


def test_the_order_of_objects_does_not_show() -> None:
    """The same findings from any order, or statuses would be written for ever."""
    objects = [
        policy("a", default={"capacity": ["spot"]}),
        policy("b", default={"capacity": ["on-demand"]}),
        policy("c", default={"capacity": ["reserved"]}),
        policy("r", require={"gracePeriod": {"max": "1h"}, "families": {"in": ["hopper"]}}),
        policy("s", require={"families": {"in": ["ampere"]}}),
        own("t", "ml", default={"gracePeriod": "3h", "tolerate": [{"key": "x"}]}),
    ]
    assert found(*objects) == found(*reversed(objects))


def test_policies_without_trouble_cost_little_each() -> None:
    """Steps go by policies, not by policies and namespaces."""

    def steps(number: int) -> int:
        spaces = [namespace(f"n{i}", team=str(i)) for i in range(number)]
        some = [
            policy(f"p{i}", match={"namespaceSelector": {"matchLabels": {"team": str(i)}}}, require={"gpusPerPod": {"max": 4}})
            for i in range(number)
        ]
        lived = new_updater().apply({key(one): one for one in (*spaces, *some)})
        return sum(1 for _ in in_steps(lived.snapshot, lived.entries, {}))

    assert steps(200) < 2.5 * steps(100)


def test_a_conflict_stands_in_one_condition() -> None:
    """The gravest reason, every sentence."""
    finding = found(
        policy("a", require={"capacity": ["spot"]}, default={"gracePeriod": "1m", "models": {"in": ["T4"]}}),
        policy("b", require={"capacity": ["on-demand"]}, default={"models": {"in": ["L4"]}}),
    )["a"]
    one = condition(finding, "Conflicted")
    assert one is not None
    assert one.reason == "RequirementsExclude"
    assert "capacity [on-demand]" in one.message
    assert "spec.default.models differs" in one.message
    assert message_of(finding, "Conflicted") == one.message
