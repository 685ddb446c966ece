"""What happens to shared certificates once in a year: clocks that differ, another program on the field, a write that comes too late."""

from __future__ import annotations

import asyncio
import base64
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any, cast

import pytest

from certs.rotation import NOTHING, Lives
from certs.secret import from_data
from cluster.certificates.bell import SETTLES
from cluster.certificates.follower import LOOK
from cluster.certificates.keeper import Keeper
from cluster.certificates.registrations import GROUP, KINDS, MANAGER, OFTEN, Registrations
from cluster.certificates.secret_store import SecretStore
from cluster.client.api_client import Client
from cluster.client.errors import Rejected, Reply

NAME = "zz-berth"
SECRET = "/api/v1/namespaces/berth-system/secrets/berth-certificates"
PATHS = {kind: f"{GROUP}/{plural}/{NAME}" for kind, plural in KINDS.items()}


class Api:
    """The few objects, and the clock of an API server."""

    def __init__(self, ahead: timedelta = timedelta()) -> None:
        self.ahead = ahead
        self.objects: dict[str, dict[str, Any]] = {}
        self.version = 1
        self.applied = 0
        self.late = 0
        """So many writes of the Secret come too late."""
        self.status = 0
        """What the Secret's calls get; 0: what is right."""
        self.lacks_namespace = False
        self.told: list[tuple[str, dict[str, Any]]] = []
        for kind, path in PATHS.items():
            self.objects[path] = {"kind": kind, "metadata": {"name": NAME}, "webhooks": [{"name": "a.berth.dev", "clientConfig": {}}]}

    def keeper(self) -> Keeper:
        """A replica."""
        client = cast(Client, self)
        store = SecretStore(client, "berth-system", "berth-certificates")
        return Keeper(client, store, Registrations(client, NAME, self.tell), self.tell, names=("berth.berth-system.svc",), lives=Lives())

    def tell(self, event: str, /, **fields: Any) -> None:
        self.told.append((event, fields))

    def events(self, name: str) -> list[dict[str, Any]]:
        return [fields for event, fields in self.told if event == name]

    async def call(self, method: str, path: str, *, body: Any = None, **_: Any) -> Reply:
        if self.status and path.startswith(SECRET):
            return self._reply(self.status, {"kind": "Status", "message": "no"})
        if method == "GET":
            found = self.objects.get(path)
            return self._reply(200 if found else 404, found)
        if method == "PATCH":
            self.applied += 1
            entries = {one["name"]: one["clientConfig"] for one in body["webhooks"]}
            for one in self.objects[path]["webhooks"]:
                one["clientConfig"] |= entries[one["name"]]
            owned = {"manager": MANAGER, "fieldsV1": {"f:webhooks": {"f:caBundle": {}}}}
            self.objects[path]["metadata"]["managedFields"] = [
                owned,
                {"manager": "another", "fieldsV1": {"f:webhooks": {"f:caBundle": {}}}},
            ]
            return self._reply(200, self.objects[path])
        if self.late:
            self.late -= 1
            return self._reply(409, {"kind": "Status", "message": "the object has been modified"})
        if self.lacks_namespace:
            return self._reply(404, {"kind": "Status", "message": 'namespaces "berth-system" not found'})
        self.version += 1
        self.objects[SECRET] = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.version)}}
        return self._reply(201, self.objects[SECRET])

    def _reply(self, status: int, body: Any) -> Reply:
        return Reply(status, body, date=format_datetime(datetime.now(UTC) + self.ahead, usegmt=True))

    def overwrite(self, bundle: str) -> None:
        """As another program does it."""
        for path in PATHS.values():
            for one in self.objects[path]["webhooks"]:
                one["clientConfig"]["caBundle"] = bundle

    def bundles(self) -> set[str]:
        return {one["clientConfig"].get("caBundle", "") for path in PATHS.values() for one in self.objects[path]["webhooks"]}


def test_the_clock_of_the_api_server_counts() -> None:
    """A replica whose clock is a day behind makes what the API server takes for valid now; and says so once."""
    api = Api(ahead=timedelta(days=1))
    keeper = api.keeper()
    for _ in range(3):
        asyncio.run(keeper.look())
    leaf = keeper.material.leaf
    assert leaf is not None
    assert timedelta(hours=22) < leaf.certificate.not_valid_before_utc - datetime.now(UTC) < timedelta(hours=24)
    assert [event["seconds"] // 60 for event in api.events("clock_differs")] in ([1439], [1440])


def test_a_write_that_comes_too_late_changes_nothing() -> None:
    """The other replica's certificates are read then, and served."""
    api = Api()
    first, second = api.keeper(), api.keeper()
    api.late = 1
    assert asyncio.run(second.look())
    assert second.material == NOTHING
    asyncio.run(first.look())
    asyncio.run(second.look())
    assert second.material.fingerprints == first.material.fingerprints
    assert second.material.leaf is not None
    assert first.material.leaf is not None
    assert second.material.leaf.certificate == first.material.leaf.certificate


def test_a_ca_is_published_and_then_trusted() -> None:
    """Once each: what is as it should be is not written again."""
    api = Api()
    keeper = api.keeper()
    for _ in range(4):
        asyncio.run(keeper.look())
    assert api.applied == 2
    assert api.bundles() == {base64.b64encode(keeper.material.bundle).decode()}
    assert keeper.trusted is True
    stored, wrong = from_data({key: base64.b64decode(text) for key, text in api.objects[SECRET]["data"].items()})
    assert wrong == ()
    assert stored.authorities[0].published is not None


def test_two_programs_do_not_overwrite_each_other_for_ever() -> None:
    """After some corrections Berth waits, and names the other one."""
    api = Api()
    keeper = api.keeper()
    for _ in range(30):
        asyncio.run(keeper.look())
        api.overwrite("")
    assert api.applied <= 2 * (OFTEN + 1)
    told = [event["error"] for event in api.events("ca_bundle_contested")]
    assert told == ["another program keeps overwriting its caBundle (another); stop that program"] * 2
    assert keeper.trusted is False


@pytest.mark.parametrize(("lost", "reason"), [(None, "it was deleted"), ("tls.crt", "some of them were missing")])
def test_a_secret_that_is_written_again_is_logged(lost: str | None, reason: str) -> None:
    """Whoever deletes the Secret, or a part of it, finds in the log that a replica wrote the same certificates again."""
    api = Api()
    keeper = api.keeper()
    while asyncio.run(keeper.look()):
        pass
    before = api.objects[SECRET]["data"]
    api.told.clear()
    if lost is None:
        del api.objects[SECRET]
    else:
        api.objects[SECRET]["data"] = {key: text for key, text in before.items() if key != lost}
    asyncio.run(keeper.look())
    assert api.objects[SECRET]["data"] == before
    notes = [event["note"] for event in api.events("certificates")]
    assert notes == [f"wrote the same certificates to the Secret berth-system/berth-certificates again: {reason}"]


def test_a_secret_of_somebody_else_is_not_written_over() -> None:
    """Whoever names it by mistake is told what to type."""
    api = Api()
    theirs = {"tls.crt": base64.b64encode(b"theirs").decode(), "tls.key": ""}
    api.objects[SECRET] = {"kind": "Secret", "metadata": {"name": "berth-certificates", "resourceVersion": "7"}, "data": theirs}
    keeper = api.keeper()
    asyncio.run(keeper.looked())
    assert api.objects[SECRET]["data"] == theirs
    assert keeper.pair is None
    assert "use --cert-source theirs" in keeper.error
    api.objects[SECRET]["data"] = {"tls.crt": "", "tls.key": ""}
    asyncio.run(keeper.looked())
    assert keeper.pair is not None, "one that is empty is there to be filled"


def test_what_cert_manager_injects_is_left_alone() -> None:
    """Its annotation on the configuration says so."""
    api = Api()
    for path in PATHS.values():
        api.objects[path]["metadata"]["annotations"] = {"cert-manager.io/inject-ca-from": "a/b"}
    keeper = api.keeper()
    for _ in range(3):
        asyncio.run(keeper.look())
    assert api.applied == 0


def test_a_right_that_is_missing_is_named() -> None:
    """What is known goes on being served."""
    api = Api()
    keeper = api.keeper()
    asyncio.run(keeper.look())
    before = keeper.material
    api.status = 403
    asyncio.run(keeper.looked())
    assert keeper.material is before
    assert "type: kubectl apply -f deploy/rbac.yaml" in keeper.error
    api.status = 500
    with pytest.raises(Rejected, match="500"):
        asyncio.run(keeper.look())


def test_a_namespace_that_does_not_exist_is_named() -> None:
    """The 404 to a new Secret is an error that a person sees, and no other replica's write; the looks get rarer."""
    api = Api()
    api.lacks_namespace = True
    keeper = api.keeper()
    pauses = [keeper.pause(soon=asyncio.run(keeper.looked())) for _ in range(8)]
    assert 'namespaces "berth-system" not found' in keeper.error
    assert len(api.events("certificates_failed")) == 1
    assert pauses == [1, 2, 4, 8, *[LOOK] * 4]
    api.lacks_namespace = False
    assert keeper.pause(soon=asyncio.run(keeper.looked())) == LOOK, "once the failures are over"


def test_a_look_that_must_be_followed_by_another_one_is_not_repeated_at_full_speed() -> None:
    """While each write comes too late, the pauses double."""
    api = Api()
    api.late = 12
    keeper = api.keeper()
    pauses = [keeper.pause(soon=asyncio.run(keeper.looked())) for _ in range(12)]
    assert pauses[:3] == [SETTLES, 2 * SETTLES, 4 * SETTLES]
    assert sum(pauses) > 40
    assert pauses[-1] == LOOK


def test_a_date_without_a_zone_is_in_gmt() -> None:
    """Whatever a proxy makes of the Date header of the API server, its clock is read."""
    api = Api(ahead=timedelta(hours=2))
    keeper = api.keeper()
    reply = api._reply

    def without_zone(status: int, body: Any) -> Reply:
        good = reply(status, body)
        return Reply(good.status, good.body, date=good.date.replace("GMT", "-0000"))

    api._reply = without_zone  # type: ignore[method-assign]
    asyncio.run(keeper.look())
    assert timedelta(minutes=119) < keeper.now() - datetime.now(UTC) < timedelta(minutes=121)
