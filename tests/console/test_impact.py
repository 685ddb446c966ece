"""The screen "Impact": the table, and what is behind a number."""

from __future__ import annotations

import html
import re

from console.world.scope import EVERYTHING, NOTHING, ListableNamespaces, Scope
from tests.support.console.asked import asked
from tests.support.console.worlds import world
from tests.support.recorded import eks


def test_the_table_has_every_policy_and_namespace() -> None:
    """Each policy that is in force has a row, each namespace with GPU pods a column."""
    found = world(eks.objects())
    text = html.unescape(asked(found, "/impact").text)
    assert [one for one in found.policies if one not in text] == []
    assert {pod.stored.namespace for pod in found.ledger.pods.values()} <= set(re.findall(r'<th scope="col" class="n">([^<]+)</th>', text))


def test_the_numbers_are_those_of_the_audit() -> None:
    """What is behind a policy counts the pods that the ledger counts for it."""
    found = world(eks.objects())
    for policy, totals in found.ledger.totals().items():
        text = asked(found, "/impact/cell", policy=policy).text
        assert f"f {totals.pods} matching pod" in text
        assert (totals.would_change + totals.not_as_enforced > 0) == ("would be changed if" in text or "without the edits of" in text)


def test_a_policy_that_may_not_be_listed_is_not_named() -> None:
    """Neither in the table nor behind a number; nor is a namespace whose pods may not be listed."""
    found = world(eks.objects())
    alone = Scope(who="ada", pods=ListableNamespaces(names=frozenset({"web"})))
    text = asked(found, "/impact", alone).text
    assert not [one for one in (*found.policies, "research", "shop") if one in text]
    assert asked(found, "/impact/cell", alone, policy=found.policies[0]).status == 404
    assert asked(found, "/impact/cell", EVERYTHING, policy=found.policies[0], namespace="web").status == 200
    assert asked(found, "/impact/cell", NOTHING, policy=found.policies[0], namespace="web").status == 404
