"""The shared options: how lists are written, and what they become."""

from __future__ import annotations

import argparse
import re

import pytest

from cli.options import add_cluster_options, add_snapshot_options, as_of_a_cluster, snapshot_from, sources_from
from documents.files import read_catalog
from policies.document import InputError
from policies.policy import PolicySet
from policies.state.updater import AUTO
from sources.sources import Sources, SourcesError, of_a_cluster


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_snapshot_options(parser)
    return parser.parse_args(words)


def test_nothing_given_is_the_default() -> None:
    """Without options: the shipped policy, no facts, no platform, mixed, Enforce."""
    assert sources_from(parsed()) == Sources()


def test_paths_are_given_by_repeating_the_option() -> None:
    """--policies a --policies b is two paths, in that order."""
    assert sources_from(parsed("--policies", "a", "--policies", "b")).policies == ("a", "b")


def test_the_former_name_of_from_is_accepted() -> None:
    """--facts PATH is --from PATH, in any order with it, and help does not show it."""
    assert sources_from(parsed("--from", "a", "--facts", "b", "--from", "c")).facts == ("a", "b", "c")
    command = argparse.ArgumentParser()
    add_snapshot_options(command)
    assert "--from" in command.format_help()
    assert "--facts" not in command.format_help()


def test_names_are_split_at_commas() -> None:
    """Spaces and repeats do not matter."""
    assert sources_from(parsed("--platforms", "gke, gfd,gke,")).platforms == ("gke", "gfd")


def test_a_call_does_not_change_the_next_ones_defaults() -> None:
    """Lists of an earlier parse are not shared."""
    parser = argparse.ArgumentParser()
    add_snapshot_options(parser)
    parser.parse_args(["--policies", "a"])
    assert parser.parse_args([]).policies == []


def test_a_snapshot_is_built() -> None:
    """What try and serve judge with."""
    assert list(snapshot_from(parsed("--platforms", "gke")).tables) == ["gke"]


def test_of_a_cluster_nodes_tell_what_is_not_given() -> None:
    """Platforms and MIG strategy are detected as by the servers; what is given stands, and the options as parsed don't change."""
    args = parsed("--platforms", "gke")
    assert sources_from(as_of_a_cluster(args)) == Sources(platforms=("gke",), mig_strategy=AUTO, follows_server=frozenset({"queues"}))
    assert sources_from(as_of_a_cluster(parsed())) == of_a_cluster(Sources())
    assert sources_from(args) == Sources(platforms=("gke",))


@pytest.mark.parametrize(("pods_of_all", "more"), [(False, ()), (True, ("namespace", "prices"))])
def test_a_cluster_is_named_in_one_way(*, pods_of_all: bool, more: tuple[str, ...]) -> None:
    """Commands that look at all pods also take one namespace, and prices."""
    parser = argparse.ArgumentParser()
    add_cluster_options(parser, pods_of_all=pods_of_all)
    assert vars(parser.parse_args([])) == dict.fromkeys(("kubeconfig", "context", *more))


def test_wrong_values_are_bad_input() -> None:
    """An unknown mode, whatever its letter case, has the right one in its message."""
    with pytest.raises(SourcesError, match='did you mean "Audit"'):
        snapshot_from(parsed("--max-mode", "audit"))


def test_warnings_about_policies_are_said(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """What is odd without being wrong goes to stderr, and the snapshot is built."""
    monkeypatch.setattr("sources.sources.read_policies", lambda *_: (PolicySet(), [], [InputError(file="x.yaml", message="odd")]))
    snapshot_from(parsed())
    assert capsys.readouterr().err == "berth: warning: x.yaml: odd\n"


def test_help_names_every_platform() -> None:
    """Those of the shipped catalog; the text is written by hand, because help reads no file."""
    command = argparse.ArgumentParser()
    add_snapshot_options(command)
    (option,) = (action for action in command._actions if "--platforms" in action.option_strings)
    assert [name for name in read_catalog().platforms if not re.search(rf"(?<![\w-]){name}(?![\w-])", str(option.help))] == []
