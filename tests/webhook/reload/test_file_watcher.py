"""The watcher of policy files: whatever a reading ends with, the replica says so until a reading was good."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from documents import files
from documents.files import Stamp, stamp
from server.limits import Limits
from sources.sources import SourceLoader, Sources
from telemetry import log
from telemetry.metrics import Metrics
from tests.testcluster.calls import PATIENCE
from tests.webhook.reload.test_changed_files import put
from webhook.admission.app import AdmissionState
from webhook.health import checks
from webhook.reload import changed_files
from webhook.reload.file_watcher import PolicyFileWatcher
from webhook.reload.reload_results import ReloadResults, collect_file_checks


def state(results: ReloadResults) -> tuple[float, bool]:
    """``berth_snapshot_last_reload_successful``, and whether /readyz tells of a rejected change."""
    text = results.admission.metrics.exposition("text/plain")[0].decode()
    value = next(line.split()[1] for line in text.splitlines() if line.startswith("berth_snapshot_last_reload_successful "))
    return float(value), "was rejected" in str(next(checks(results, results.rejected_at + 1)))


@pytest.mark.parametrize("failure", ["of a file", "of the shipped catalog", "unforeseen"])
def test_a_failed_reading_is_told_until_one_is_good(failure: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The metric is 0 and /readyz says so, also where an exception comes that nobody foresaw; then the set that acts is the new one."""
    monkeypatch.setattr(log, "_sink", lambda line: None)
    put(tmp_path, "a")
    results = ReloadResults(admission=AdmissionState(limits=Limits(), metrics=Metrics("0")))

    def fails(*_: object) -> bytes:
        raise OSError(5, "Input/output error") if failure != "unforeseen" else RuntimeError("can't start new thread")

    async def follow() -> None:
        watcher = PolicyFileWatcher(Sources(policies=(str(tmp_path),)), results)
        await watcher.first()
        put(tmp_path, "b")
        await watcher.look()
        assert state(results) == (1, False)
        with monkeypatch.context() as patched:
            if failure == "unforeseen":
                patched.setattr(SourceLoader, "load", fails)
                with pytest.raises(RuntimeError):
                    await watcher.look()
            else:
                place, read = "a.yaml" if failure == "of a file" else "catalog.yaml", files._bytes
                patched.setattr(files, "_bytes", lambda file: fails() if file.endswith(place) else read(file))
                await watcher.look()
        assert state(results) == (0, True)
        await watcher.look()
        assert state(results) == (1, False)

    asyncio.run(follow())
    assert results.admission.snapshot is not None
    assert [one.policy.name for one in results.admission.snapshot.policies] == ["a", "b"]


def test_a_mount_that_hangs_is_told_until_it_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check of its files does not end: /readyz says since when and stays ready, and the metric has the time of the last one."""
    put(tmp_path, "a")
    results = ReloadResults(admission=AdmissionState(limits=Limits(), metrics=Metrics("0")), certificate_expires=4e9)
    answers = threading.Event()

    def hangs(paths: Sequence[str]) -> Stamp:
        answers.wait(PATIENCE)
        return stamp(paths)

    def files_lines(seconds: float) -> list[str]:
        now = results.files_checked_at["policies"] + seconds
        return [str(check) for check in checks(results, now) if check.name == "files"]

    async def follow() -> None:
        watcher = PolicyFileWatcher(Sources(policies=(str(tmp_path),)), results)
        await watcher.first()
        last = results.files_checked_at["policies"]
        monkeypatch.setattr(changed_files, "stamp", hangs)
        look = asyncio.create_task(watcher.look())
        await asyncio.sleep(0.05)
        assert results.files_checked_at["policies"] == last
        assert files_lines(20) == []
        assert files_lines(60)[0].startswith("[!] files: policies last checked 60 s ago: a file or mount does not respond")
        answers.set()
        await look
        assert results.files_checked_at["policies"] > last

    asyncio.run(follow())
    (family,) = collect_file_checks(results.files_checked_at)
    assert [(sample.labels, sample.value) for sample in family.samples] == [({"files": "policies"}, results.files_checked_at["policies"])]
