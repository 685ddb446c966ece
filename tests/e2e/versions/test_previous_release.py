"""Which release is the one before, and what is said where the history does not have it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.e2e.versions import previous_release


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of two commits."""
    git(tmp_path, "init", "--quiet")
    for number in (1, 2):
        (tmp_path / "VERSION").write_text(str(number))
        git(tmp_path, "add", "VERSION")
        git(tmp_path, "commit", "--quiet", "--message", str(number))
    monkeypatch.setattr(previous_release, "ROOT", tmp_path)
    return tmp_path


def git(folder: Path, *words: str) -> None:
    identity = ("-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "tag.gpgsign=false", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "-C", str(folder), *identity, *words], check=True)


def test_the_last_release_is_the_one_before(repository: Path, tmp_path: Path) -> None:
    """The newest tag behind the commit that is checked out: the release that is made of it is not before itself."""
    git(repository, "tag", "v0.0.1", "HEAD^")
    git(repository, "tag", "v0.0.2", "HEAD")
    assert previous_release.commit() == "v0.0.1"
    folder = previous_release.unpacked(tmp_path / "before")
    assert (folder / "VERSION").read_text() == "1"


def test_until_there_is_a_release_it_is_the_first_commit_that_could_be_installed(repository: Path, tmp_path: Path) -> None:
    """The one that brought the chart, not a later one that changed it."""
    for version in (3, 4):
        for name in ("VERSION", previous_release.INSTALLABLE):
            (repository / name).parent.mkdir(parents=True, exist_ok=True)
            (repository / name).write_text(str(version))
            git(repository, "add", name)
        git(repository, "commit", "--quiet", "--message", str(version))
    folder = previous_release.unpacked(tmp_path / "before")
    assert (folder / "VERSION").read_text() == "3"


@pytest.mark.usefixtures("repository")
def test_without_the_history_what_to_type_is_said(tmp_path: Path) -> None:
    """No tag, and no commit that could be installed."""
    with pytest.raises(previous_release.NoHistory, match=r"the release before is not .*git fetch --unshallow"):
        previous_release.unpacked(tmp_path / "before")


def test_the_only_commit_of_a_shallow_clone_is_not_the_one_before(
    repository: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Where history is cut off, everything seems to have come with one commit."""
    chart = repository / previous_release.INSTALLABLE
    chart.parent.mkdir(parents=True)
    chart.touch()
    git(repository, "add", previous_release.INSTALLABLE)
    git(repository, "commit", "--quiet", "--message", "3")
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "--quiet", "--depth=1", repository.as_uri(), str(shallow))
    monkeypatch.setattr(previous_release, "ROOT", shallow)
    with pytest.raises(previous_release.NoHistory, match="git fetch --unshallow"):
        previous_release.commit()


def test_without_git_it_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """And no other error."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(previous_release.NoHistory, match="git can't be run"):
        previous_release.commit()
