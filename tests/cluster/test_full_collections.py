"""Full collections are postponed while anybody needs it, and come back afterwards."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path

from cluster import full_collections
from cluster.full_collections import NEVER
from cluster.watch.kinds import KINDS
from kube.tree import Raw
from tests.support.cluster.collecting_store import CollectingStore, following, run, until
from tests.support.cluster.fake_api import FakeApi, serving


def test_whoever_ends_first_leaves_the_others_what_they_need() -> None:
    """Uses that overlap, one of which ends in the middle of the other, end with what was there before both."""
    usual, first, second = gc.get_threshold(), full_collections.postponed(), full_collections.postponed()
    with second:
        with first:
            assert gc.get_threshold() == (*usual[:2], NEVER)
        assert gc.get_threshold() == (*usual[:2], NEVER)
    assert gc.get_threshold() == usual
    first, second = full_collections.postponed(), full_collections.postponed()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert gc.get_threshold() == (*usual[:2], NEVER)
    second.__exit__(None, None, None)
    assert gc.get_threshold() == usual


class Seeing(CollectingStore):
    """Sees how rare full collections are while a list is handed over."""

    rare: bool = False

    async def replace(self, kind: str, objects: list[Raw]) -> None:
        self.rare = gc.get_threshold()[2] == NEVER
        await super().replace(kind, objects)


def test_no_full_collection_comes_while_a_kind_is_listed(tmp_path: Path) -> None:
    """A list of many objects never pauses calls for all objects that last."""

    async def listed() -> None:
        usual, kept = gc.get_threshold(), Seeing()
        async with serving(FakeApi(KINDS[0]), tmp_path) as client, following(client, KINDS[:1], kept) as ([reflector], _):
            await until(lambda: reflector.synced, "the list")
            assert kept.rare
            await asyncio.sleep(0)
            assert gc.get_threshold() == usual

    run(listed())
