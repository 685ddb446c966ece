"""Quotas that a slice gets past."""

from __future__ import annotations

from tests.analysis.conditions.found import found, message_of, namespace, own, policy

WHOLE = {"requests.nvidia.com/gpu": "4"}
SLICES = {
    f"requests.nvidia.com/mig-{profile}": "4" for profile in ("1g.10gb", "2g.10gb", "1g.10gb.me", "1g.12gb", "1g.5gb")
}  # fmt: skip
MIG = {"mig": {"slice": "10gb"}}


def test_a_quota_on_whole_gpus_alone_is_told() -> None:
    """With its namespace, and the name that it lacks."""
    finding = found(policy("p", default=MIG), platforms=["gfd"], quotas={"ml": [{"pods": "9"}, WHOLE], "web": [{"pods": "9"}]})["p"]
    text = message_of(finding, "QuotaNotCovered")
    assert text.startswith(
        "MIG slices bypass the ResourceQuota of namespace ml: it limits requests.nvidia.com/gpu but not requests.nvidia.com/mig-1g.10gb"
    )
    assert not message_of(found(policy("p", default=MIG), platforms=["gfd"], quotas={"ml": [WHOLE, SLICES]})["p"], "QuotaNotCovered")


def test_only_where_the_policy_acts() -> None:
    """Another namespace's quota is not of interest, nor one while no slice is given."""
    quotas = {"ml": [WHOLE], "web": [WHOLE], "gone": [WHOLE]}
    spaces = namespace("ml", team="x"), namespace("web")
    picked = policy("p", match={"namespaceSelector": {"matchLabels": {"team": "x"}}}, default=MIG)
    all_ = found(
        picked, own("own", "web", default=MIG), policy("none", default={"gracePeriod": "2m"}), *spaces, platforms=["gfd"], quotas=quotas
    )
    assert "namespace ml:" in message_of(all_["p"], "QuotaNotCovered")
    assert "namespace web:" in message_of(all_["own"], "QuotaNotCovered")
    assert not message_of(all_["none"], "QuotaNotCovered")
