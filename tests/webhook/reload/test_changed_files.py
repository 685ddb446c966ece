"""Policy files that change: read once they rest, told once when they are wrong, and never holding the process."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from documents import files
from documents.files import Stamp
from policies.document import InputError
from sources.sources import LoadedSources, SourceLoader, Sources, SourcesError
from telemetry import log
from telemetry.metrics import Metrics
from tests.testcluster.calls import PATIENCE
from webhook.admission import handlers
from webhook.reload import changed_files
from webhook.reload.changed_files import ChangedFiles, beside, pauseless_collection

BODY = (Path(__file__).parent.parent.parent / "reviews" / "pods-create-train-llama.json").read_bytes()
POLICY = """\
apiVersion: berth.dev/v1alpha1
kind: ClusterGPUPolicy
metadata: {name: NAME}
spec: {default: {acceleratorTaints: Tolerate}}
"""


def put(folder: Path, name: str, text: str | None = None) -> None:
    (folder / f"{name}.yaml").write_text(text or POLICY.replace("NAME", name))


def looks(folder: Path, *changes: tuple[str, str | None] | None) -> list[LoadedSources | str | None]:
    """What is found at the start and at each look; before a look its change is made. ``asyncio.run`` would format it."""
    found: list[LoadedSources | str | None] = []

    async def follow() -> None:
        followed = ChangedFiles(Sources(policies=(str(folder),)))
        found.append(await followed.first())
        for change in changes:
            if change:
                put(folder, *change)
            try:
                found.append(await followed.changed())
            except SourcesError as error:
                found.append(str(error))

    asyncio.run(follow())
    return found


def names(found: LoadedSources | str | None) -> list[str] | str | None:
    return [c.policy.name for c in found.snapshot.policies] if isinstance(found, LoadedSources) else found


def test_nothing_new_is_nothing(tmp_path: Path) -> None:
    """Files are not read again because time passed."""
    put(tmp_path, "a")
    assert [names(found) for found in looks(tmp_path, None, None)] == [["a"], None, None]


def test_a_change_counts_when_it_rests(tmp_path: Path) -> None:
    """The look that sees it first waits for the next; then it is read once."""
    put(tmp_path, "a")
    assert [names(found) for found in looks(tmp_path, ("b", None), None, None)] == [["a"], None, ["a", "b"], None]


def test_files_that_go_on_arriving_are_waited_for(tmp_path: Path) -> None:
    """A folder that is being copied is never read by half."""
    put(tmp_path, "a")
    found = looks(tmp_path, ("b", None), ("c", None), ("d", None), None)
    assert [names(one) for one in found] == [["a"], None, None, None, ["a", "b", "c", "d"]]


def test_a_wrong_set_is_told_once(tmp_path: Path) -> None:
    """Not at each look; the next good one is read."""
    put(tmp_path, "a")
    found = looks(tmp_path, ("b", "kind: Nothing"), None, None, ("b", None), None)
    assert [isinstance(one, str) for one in found] == [False, False, True, False, False, False]
    assert names(found[-1]) == ["a", "b"]


@pytest.mark.parametrize(
    ("place", "error"),
    [
        ("a.yaml", OSError(errno.EIO, "Input/output error")),
        ("b.yaml", MemoryError()),
        ("catalog.yaml", OSError(errno.EMFILE, "Too many open files")),
    ],
    ids=["a file as before", "a new file", "the shipped catalog"],
)
def test_a_file_that_could_not_be_read_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, error: Exception) -> None:
    """A moment without file descriptors, or of a network mount, loses no change of policy: it is told, and the file need not change."""
    put(tmp_path, "a")
    read, broken = files._bytes, [True]

    def fails_once(file: str) -> bytes:
        if broken[0] and (tmp_path / "b.yaml").exists() and file.endswith(place):
            broken[0] = False
            raise error
        return read(file)

    monkeypatch.setattr(files, "_bytes", fails_once)
    found = looks(tmp_path, ("b", None), None, None)
    assert [names(one) for one in found[:2]] == [["a"], None]
    assert isinstance(found[2], str)
    assert place in found[2]
    assert names(found[3]) == ["a", "b"]


def test_a_set_that_stays_wrong_is_read_ever_more_rarely(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After 1, 2, 4 checks and so on, at last every 60: reading 10,000 policies takes a second of CPU. A change is read at once."""
    put(tmp_path, "a")
    reads = 0

    def load(loader: SourceLoader) -> LoadedSources:
        nonlocal reads
        reads += 1
        raise SourcesError([InputError(file="b.yaml", message="is wrong")])

    async def follow() -> list[int]:
        followed = ChangedFiles(Sources(policies=(str(tmp_path / "a.yaml"),)))
        await followed.first()
        monkeypatch.setattr(SourceLoader, "load", load)
        put(tmp_path, "a", POLICY.replace("NAME", "other"))
        at = []
        for check in range(300):
            before, told = reads, False
            try:
                await followed.changed()
            except SourcesError:
                told = True
            assert told == (check == 1)
            at += [check] * (reads > before)
        monkeypatch.undo()
        put(tmp_path, "a", POLICY.replace("NAME", "good"))
        assert await followed.changed() is None
        assert names(await followed.changed()) == ["good"]
        return at

    assert asyncio.run(follow()) == [1, 2, 4, 8, 16, 32, 64, 124, 184, 244]


def test_a_failed_check_of_the_files_is_made_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where not even their names could be read, a state that says so ends with the next reading."""
    put(tmp_path, "a")

    async def follow() -> list[list[str] | str | None]:
        followed = ChangedFiles(Sources(policies=(str(tmp_path),)))
        await followed.first()

        def fails(paths: Sequence[str]) -> Stamp:
            raise RuntimeError("can't start new thread")

        with monkeypatch.context() as patched:
            patched.setattr(changed_files, "stamp", fails)
            with pytest.raises(RuntimeError):
                await followed.changed()
        return [names(await followed.changed()), names(await followed.changed())]

    assert asyncio.run(follow()) == [["a"], None]


def test_a_file_that_disappears_is_a_change(tmp_path: Path) -> None:
    """An empty folder is an error, so a set that is taken away by mistake leaves the last good one."""
    put(tmp_path, "a")

    async def follow() -> str:
        followed = ChangedFiles(Sources(policies=(str(tmp_path),)))
        await followed.first()
        (tmp_path / "a.yaml").unlink()
        assert await followed.changed() is None
        with pytest.raises(SourcesError) as raised:
            await followed.changed()
        return str(raised.value)

    assert "has no .yaml, .yml or .json file" in asyncio.run(follow())


def test_work_beside_the_loop_hands_on_its_error() -> None:
    """As if it had been done here."""

    async def fail() -> None:
        await beside(lambda: [][1])

    with pytest.raises(IndexError):
        asyncio.run(fail())


def test_work_that_never_ends_holds_nobody(tmp_path: Path) -> None:
    """The loop can be closed while a thread waits for a pipe; what comes out of it later goes nowhere."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    async def give_up() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(beside(pipe.read_bytes), 0.1)

    asyncio.run(give_up())
    pipe.write_bytes(b"late")
    for thread in threading.enumerate():
        if thread.daemon:
            thread.join(PATIENCE)


def test_what_can_be_read_but_once_is_not_followed(tmp_path: Path) -> None:
    """A pipe gave its policies at the start: to read it again would find none. It is told."""
    put(tmp_path, "a")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    async def follow() -> tuple[list[str] | str | None, tuple[str, ...], LoadedSources | None]:
        followed = ChangedFiles(Sources(policies=(str(tmp_path / "a.yaml"), str(pipe))))
        threading.Thread(target=pipe.write_text, args=(POLICY.replace("NAME", "b"),), daemon=True).start()
        first = await followed.first()
        put(tmp_path, "a", POLICY.replace("NAME", "c"))
        await followed.changed()
        return names(first), first.warnings, await followed.changed()

    first, warnings, later = asyncio.run(follow())
    assert (first, later) == (["a", "b"], None)
    assert any("can be read only once, so changes of policies are not detected" in warning for warning in warnings)


def left_to_collect(folder: Path, text: str) -> int:
    """Objects that only the garbage collector finds, once a set has been read whose one file is ``text``."""

    async def follow() -> int:
        followed = ChangedFiles(Sources(policies=(str(folder),)))
        (await followed.first()).snapshot.forget()
        put(folder, "a", text)
        gc.collect()
        assert await followed.changed() is None
        try:
            loaded = await followed.changed()
        except SourcesError:
            return gc.collect()
        assert loaded is not None
        handlers.handle_review("mutate", BODY, loaded.snapshot, Metrics("test"))
        loaded.snapshot.forget()
        del loaded
        return gc.collect()

    return asyncio.run(follow())


@pytest.mark.parametrize(
    "text", [POLICY.replace("NAME", "b"), "kind: [", POLICY.replace("Tolerate", "Maybe")], ids=["new", "broken", "wrong"]
)
def test_what_is_no_longer_in_force_leaves_nothing_to_collect(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a set that is replaced nor one that is rejected: what is in a cycle when objects are frozen stays for ever."""
    monkeypatch.setattr(gc, "freeze", lambda: None)
    monkeypatch.setattr(log, "_sink", lambda line: None)
    put(tmp_path, "a")
    gc.disable()
    try:
        assert left_to_collect(tmp_path, text) == 0
    finally:
        gc.enable()


def test_what_is_read_beside_calls_is_never_collected_whole() -> None:
    """No full collection comes while it is made, afterwards it counts as permanent, and the collector is as it was."""
    before, permanent = gc.get_threshold(), gc.get_freeze_count()
    full: list[str] = []

    def heard(phase: str, info: dict[str, int]) -> None:
        if info["generation"] == 2:
            full.append(phase)

    gc.callbacks.append(heard)
    try:
        with pauseless_collection():
            made = [[number] for number in range(500_000)]
    finally:
        gc.callbacks.remove(heard)
    assert full == []
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() >= permanent + len(made)
    gc.unfreeze()
