"""The CustomResourceDefinition of one of Berth's kinds: all objects of the kind are deleted along with it."""

from __future__ import annotations

from cluster.client.api_client import Client
from cluster.client.errors import Failure, Unreachable
from cluster.watch.kinds import Watched


class HeldDeletions(Failure):
    """The CustomResourceDefinition of the kind is gone: objects deleted with it are not removed from the
    store."""


async def check_definition(client: Client, watched: Watched) -> None:
    """Check that the definition of one of Berth's kinds exists.

    Raises Held if it is being deleted, or gone. If the server can't be reached, deletions are accepted.
    """
    path = watched.definition
    assert path is not None, "one of Berth's kinds"
    try:
        reply = await client.call("GET", path)
    except Unreachable:
        return
    metadata = reply.body.get("metadata") if isinstance(reply.body, dict) else None
    is_deleted = reply.ok and isinstance(metadata, dict) and metadata.get("deletionTimestamp") is not None
    if reply.status == 404 or is_deleted:
        raise HeldDeletions(gone(watched))


def gone(watched: Watched) -> str:
    """Return the sentence about a definition that was there before."""
    return (
        f"the API server no longer has the CustomResourceDefinition {watched.resource}: the last valid objects stay active; "
        "type: berth crds | kubectl apply -f -"
    )
