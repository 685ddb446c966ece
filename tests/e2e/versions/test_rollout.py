"""Two releases behind one address: they answer alike, take over from each other in one pod, and change places under load."""

from __future__ import annotations

import copy
import http.client
import json
import re
import ssl
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jsonpatch
import pytest
import yaml

from tests.e2e.certificates.shared import Creations, creating, registered
from tests.e2e.versions.side_by_side import Pair, lead
from tests.support.calls.server_process import JSON, ROOT
from tests.support.counts import only_in_prove
from tests.testcluster.addons.berth import LIBRARY, Berth, create_namespace
from tests.testcluster.calls import PATIENCE
from tests.testcluster.controlplane.api import Raw

REVIEWS = sorted((ROOT / "tests" / "reviews").glob("*.json"))
GPU_POD = ROOT / "tests" / "reviews" / "pods-create-finetune.json"
CHANGED = {
    "deployments-create-vllm-server",
    "pods-create-amd-bench",
    "pods-create-finetune",
    "pods-create-train-llama",
    "pods-create-vllm-server",
}
"""Reviews that this release answers otherwise on purpose: its catalog knows parts of GPUs (amd.com, g6f, gr6f), and keeps
pods for whole ones from them; and its defaults choose slices only where some are known."""
PHASES = {"deployments": ("advise",), "pods": ("mutate", "validate")}
ROLLS = 10
LAME_DUCK = ("--lame-duck", "2")
MORE = 50
"""creations before the next step: some of the load on each kind of installation, however fast the machine"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Both:
    """A replica of each release, ready."""

    pair: Pair
    older: Berth
    newer: Berth

    def asked(self, replica: Berth, phase: str, review: Raw) -> Raw:
        """The response of a replica."""
        context = ssl.create_default_context(cadata=self.pair.installation.material().bundle.decode())
        parts = urlsplit(replica.url)
        connection = http.client.HTTPSConnection(str(parts.hostname), parts.port, timeout=PATIENCE, context=context)
        try:
            connection.request("POST", f"/{phase}", json.dumps(review), JSON)
            with connection.getresponse() as answer:
                text = answer.read()
                assert answer.status == 200, text
        finally:
            connection.close()
        response: Raw = json.loads(text)["response"]
        return response


@pytest.fixture(scope="module")
def both(pair: Pair) -> Iterator[Both]:
    """With the policies of the library, and the namespaces of the recorded reviews."""
    pair.apply(*(value for file in sorted(LIBRARY.glob("*.yaml")) for value in yaml.safe_load_all(file.read_text())))
    cluster = pair.installation.cluster
    for name in sorted({json.loads(file.read_text())["request"]["namespace"] for file in REVIEWS} - {"default"}):
        create_namespace(cluster, name)
    found = Both(pair=pair, older=pair.older("rollout-older"), newer=pair.newer("rollout-newer"))
    yield found
    pair.end(found.older, found.newer)


def _data(answer: dict[str, Any]) -> dict[str, Any]:
    """Return an answer with the codes of its messages in place of its sentences."""
    texts = {key: re.findall(r"BERTH-\d{3}", json.dumps(answer.get(key))) for key in ("warnings", "status", "auditAnnotations")}
    return {**answer, **texts, "code": answer.get("status", {}).get("code")}


@pytest.mark.parametrize("file", REVIEWS, ids=lambda file: file.stem)
def test_both_answer_alike(both: Both, file: Path) -> None:
    """What was recorded from an API server: the same patch, status, codes and evidence from both; sentences may be reworded."""
    review = json.loads(file.read_text())
    for phase in PHASES[review["request"]["resource"]["resource"]]:
        older, newer = both.asked(both.older, phase, review), both.asked(both.newer, phase, review)
        if file.stem in CHANGED:
            assert (older["uid"], newer["uid"]) == (review["request"]["uid"],) * 2
        else:
            assert _data(older) == _data(newer), phase


@pytest.mark.parametrize("newer_first", [False, True], ids=["older writes", "newer writes"])
def test_a_pod_that_one_has_written_is_judged_by_the_other(both: Both, *, newer_first: bool) -> None:
    """Asked again after another webhook, the other one adds nothing to it, leaves the record of who wrote what, and admits it."""
    writer, judge = (both.newer, both.older) if newer_first else (both.older, both.newer)
    review = json.loads(GPU_POD.read_text())
    written = both.asked(writer, "mutate", review)
    pod = jsonpatch.apply_patch(review["request"]["object"], json.loads(b64decode(written["patch"])))
    assert json.loads(pod["metadata"]["annotations"]["berth.dev/applied"])
    again = copy.deepcopy(review)
    again["request"]["object"] = pod
    answer = both.asked(judge, "mutate", again)
    assert (answer["allowed"], answer.get("patch")) == (True, None)
    assert both.asked(judge, "validate", again)["allowed"]


@only_in_prove
def test_rolling_forward_and_back_fails_no_creation(pair: Pair) -> None:
    """A replica is added once it is ready, and taken from the address before it is ended, as endpoints are; each release serves alone in
    between, and for a while both do. ``make test`` has both releases answer and judge, above, and rolls out this one
    (``tests/e2e/installation/test_installing.py``)."""
    installation = pair.installation
    namespace = create_namespace(installation.cluster, "rolls")
    one = pair.older("roll-start", *LAME_DUCK)
    with registered(installation, one) as proxy:
        installation.cluster.wait_for(lambda: installation.created(namespace).ok, "pods to be created")
        with creating(installation, namespace) as creations:
            for number in range(ROLLS):
                for direction, start in (("forward", pair.newer), ("back", pair.older)):
                    other = start(f"roll-{direction}-{number}", *LAME_DUCK)
                    lead(proxy, one, other)
                    _more(creations)
                    lead(proxy, other)
                    pair.end(one)
                    _more(creations)
                    one = other
        assert creations.failed == []
        assert all(reply.body["spec"]["tolerations"] for reply in creations.replies)
    pair.end(one)


def _more(creations: Creations) -> None:
    before = len(creations.replies)
    creations.installation.cluster.wait_for(lambda: len(creations.replies) >= before + MORE, "more pods to be created")
