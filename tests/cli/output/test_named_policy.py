"""Which policy is meant by a name, and what is said where none or several are."""

from __future__ import annotations

import pytest

from cli.output.named_policy import chosen
from policies.document import InputError

KNOWN = {"training": 1, "team-a/training": 2, "team-a/notebooks": 3, "team-b/batch": 4, "team-c/batch": 5}


def message_for(name: str) -> str:
    with pytest.raises(InputError) as caught:
        chosen(name, KNOWN, missing="there is no policy", advice="berth audit lists them")
    return str(caught.value)


@pytest.mark.parametrize(("name", "number"), [("team-a/training", 2), ("notebooks", 3), ("team-c/batch", 5)])
def test_a_policy_is_named_by_its_id_or_by_a_name_that_is_its_alone(name: str, number: int) -> None:
    """The namespace may be left out where no other policy has the name."""
    assert chosen(name, KNOWN, missing="", advice="") == number


def test_several_of_a_name_are_listed() -> None:
    """The error gives the ids to choose from, those without a namespace too."""
    assert (
        message_for("batch") == 'berth: --enforce-preview: "batch" is the name of several policies; write one of team-b/batch, team-c/batch'
    )
    assert message_for("training").endswith("write one of team-a/training, training")


def test_a_name_that_nothing_has_gets_the_nearest() -> None:
    """With or without its namespace."""
    assert (
        message_for("notebook")
        == 'berth: --enforce-preview: there is no policy "notebook"; did you mean "notebooks"?; berth audit lists them'
    )
    assert '"team-a/notebooks"' in message_for("team-a/notebook")
