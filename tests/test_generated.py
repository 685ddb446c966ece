"""Generated files are what their sources make, to the byte; ``make generate`` writes those that are not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests import generated
from tests.testcluster.fixtures import needs_programs


@pytest.fixture(scope="module")
def from_source() -> Mapping[str, str]:
    """Return what the source makes, on a terminal of an odd width."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "37")
        return generated.from_source()


def test_files_of_the_source_are_up_to_date(from_source: Mapping[str, str]) -> None:
    """However wide the terminal is in which they were made."""
    assert generated.outdated(from_source) == [], "run: make generate"


def test_plain_manifests_are_what_helm_renders(request: pytest.FixtureRequest) -> None:
    """deploy/install.yaml and deploy/rbac.yaml are the chart with its defaults."""
    needs_programs(request.config, ["helm"])
    assert generated.outdated(generated.from_chart()) == [], "run: make generate"


def test_an_old_plain_manifest_is_told_without_helm(
    from_source: Mapping[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the digest of the chart in its head, so that ``make check`` builds nothing."""
    monkeypatch.setattr(generated, "from_source", lambda: from_source)
    assert generated.main(check=True) == 0
    monkeypatch.setattr(generated, "chart_digest", lambda: "sha256 0123456789abcdef")
    assert generated.main(check=True) == 1
    stale = [f"deploy/{name}.yaml is out of date; run: make generate" for name in ("install", "rbac")]
    assert capsys.readouterr().out.splitlines() == stale


def test_what_is_out_of_date_is_written(tmp_path: Path) -> None:
    """A file that is missing, one that was edited, and one whose source is gone; what is written again changes nothing."""
    files = {"deploy/crds/kept.yaml": "kept", "deploy/crds/edited.yaml": "new", "docs/missing.md": "new"}
    (tmp_path / "deploy" / "crds").mkdir(parents=True)
    for name in ("kept", "edited", "gone"):
        (tmp_path / "deploy" / "crds" / f"{name}.yaml").write_text(name)
    changed = ["deploy/crds/edited.yaml", "docs/missing.md", "deploy/crds/gone.yaml"]
    assert generated.outdated(files, tmp_path) == changed
    assert generated.write(files, tmp_path) == changed
    assert {str(path.relative_to(tmp_path)): path.read_text() for path in tmp_path.rglob("*.*")} == files
    assert generated.write(files, tmp_path) == []
