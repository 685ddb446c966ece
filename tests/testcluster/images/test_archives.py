"""Images for the test cluster: what is said where none can be built, and what the pause image does."""

from __future__ import annotations

import signal
from contextlib import suppress
from pathlib import Path

import pytest

from deploy.image.archive import unpack
from tests.testcluster.calls import PATIENCE
from tests.testcluster.images import archives, bases, store
from tests.testcluster.images.containers import Root, started
from tests.testcluster.images.store import NoImage


def test_what_is_missing_is_told_in_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The programs, and the packages that have them; whoever asks skips with it."""
    monkeypatch.setattr(store, "PATH", str(tmp_path))
    monkeypatch.setattr(archives, "CACHE", tmp_path)
    for image in (archives.berth, archives.pause):
        with pytest.raises(
            NoImage, match=r"^no image is built without buildah and \w+: apt-get install buildah mmdebstrap runc gcc libc6-dev$"
        ):
            image()


def test_another_user_is_told_to_be_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Root file systems have files of several owners, and containers are started by root."""
    monkeypatch.setattr("os.geteuid", lambda: 65532)
    with pytest.raises(NoImage, match=r"run the tests as root$"):
        store.needs("sh")


def test_an_image_is_kept_by_what_goes_into_it() -> None:
    """Its sources and the recipes of its bases, bytecode and tests left out."""
    names = {str(path.relative_to(archives.ROOT)) for path in archives.context()}
    assert {"requirements.txt", "cli/main.py", "policies/library/berth-default.yaml", "deploy/image/finish.py"} <= names
    assert [name for name in names if name.startswith("tests/") or name.endswith(".pyc")] == []
    assert bases.RUNS.key != bases.BUILDS.key
    assert archives.key() == archives.key()


def test_the_pause_image_waits_until_it_is_told_to_end(tmp_path: Path) -> None:
    """One static program on nothing."""
    try:
        archive = archives.pause()
        store.needs("runc")
    except NoImage as error:
        pytest.skip(f"this test runs the pause image. {error}")
    image = unpack(archive, tmp_path / "root")
    root = Root(folder=tmp_path / "root", config={"Env": ["PATH=/"], "WorkingDir": "/", **image.config["config"]})
    for mount in ("proc", "dev", "tmp"):
        (root.folder / mount).mkdir()
    with started(root) as process:
        while process.poll() is None and not _is_up(process.pid):
            pass
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0


def _is_up(runc: int) -> bool:
    """The pause program is a child of one of runc's threads; others of them come and go. It is up once it catches SIGCHLD, the last that it
    asks for: the kernel drops a signal that the first process of a PID namespace does not catch yet."""
    with suppress(FileNotFoundError, ProcessLookupError):  # the second: of a thread that ends between the opening and the reading
        children = [child for task in Path(f"/proc/{runc}/task").iterdir() for child in (task / "children").read_text().split()]
        return any(Path(f"/proc/{child}/cmdline").read_bytes() == b"/pause\0" and _catches(child, signal.SIGCHLD) for child in children)
    return False


def _catches(process: str, number: signal.Signals) -> bool:
    """SigCgt of proc(5): a mask in hexadecimal digits, bit 0 for signal 1."""
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines())
    return bool(int(fields["SigCgt"], 16) >> (number - 1) & 1)
