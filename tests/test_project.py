"""The project's own files: locks that install anywhere, what is packaged, the changelog's form, ten points to contribute."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.module_imports import LAYERS, imported
from tests.test_layers import MOST_FILES

ROOT = Path(__file__).parent.parent
LOCKS = (
    "requirements.txt", "requirements-dev.txt", "tests/fuzz/requirements.txt", "tests/testcluster/requirements.txt",
    "deploy/release/requirements.txt", "deploy/image/build.txt", "deploy/image/sbom.txt", "deploy/image/audit.txt",
    "docs/site/requirements.txt",
)  # fmt: skip
MAKES = (
    "run", "check", "test", "generate", "docs", "cluster", "prove", "bench", "image", "sbom", "audit", "wheel", "plugin",
    "lint", "types", "clean",
)  # fmt: skip
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
REQUIREMENT = re.compile(r"^([A-Za-z0-9._-]+)==([^ \\]+)", re.MULTILINE)


def locked(name: str) -> dict[str, str]:
    return {package.lower(): version for package, version in REQUIREMENT.findall((ROOT / name).read_text())}


@pytest.mark.parametrize("name", LOCKS)
def test_every_locked_package_has_hashes(name: str) -> None:
    """Each package is pinned, with at least one hash."""
    entries = re.split(r"^(?=[A-Za-z0-9])", (ROOT / name).read_text(), flags=re.MULTILINE)[1:]
    assert len(entries) == len(locked(name))
    assert [entry for entry in entries if "--hash=sha256:" not in entry] == []


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_names_no_address_and_no_machine(name: str) -> None:
    """Neither a registry nor a folder of whoever made it: pip's own settings decide where files come from."""
    text = (ROOT / name).read_text()
    assert re.findall(r"://|file:|--index|--extra-index|--find-links|--trusted-host|(?<!\w)/\w+", text) == []


def test_the_locks_agree() -> None:
    """What is tested is what runs."""
    dev = locked("requirements-dev.txt")
    assert {name: dev.get(name) for name in locked("requirements.txt")} == locked("requirements.txt")


@pytest.mark.parametrize(("name", "wanted"), [(LOCKS[0], ["dependencies"]), (LOCKS[1], ["dependencies", "dev"])])
def test_a_lock_has_all_that_the_project_asks_for(name: str, wanted: list[str]) -> None:
    """A dependency added to pyproject.toml without a new lock is noticed here."""
    groups = {"dependencies": PROJECT["project"]["dependencies"], **PROJECT["project"]["optional-dependencies"]}
    asked = {re.split(r"[<>=]", text)[0].lower() for group in wanted for text in groups[group]}
    assert asked - set(locked(name)) == set()


def test_what_serves_needs_few_packages() -> None:
    """The server's image holds these and nothing for tests."""
    direct = {re.split(r"[<>=]", text)[0] for text in PROJECT["project"]["dependencies"]}
    serving, others = {"httptools", "starlette", "uvicorn", "uvloop"}, {"aiohttp", "kubernetes", "prometheus-client"}
    assert direct == {*serving, *others, "cryptography", "jsonpatch", "orjson", "PyYAML"}


def test_every_folder_of_code_is_a_package() -> None:
    """setuptools finds the packages below the folders that pyproject.toml names: without __init__.py the wheel would lack one."""
    folders = {path.parent for name in LAYERS for path in (ROOT / name).rglob("*.py")}
    assert [folder for folder in folders if not (folder / "__init__.py").is_file()] == []


def test_contributing_has_ten_points() -> None:
    """A title and ten numbered points, which name the commands and the form of a commit."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    assert [name for name in ("`make check`", "`make generate`", "`make docs`", "`area: what changes`") if name not in text] == []
    lines = [line for line in text.splitlines() if line and not line.startswith("   ")]
    assert lines[0].startswith("# ")
    assert [line.split(".")[0] for line in lines[1:]] == [str(number) for number in range(1, 11)]


def test_the_changelog_keeps_its_form() -> None:
    """Unreleased comes first, versions have dates and known sections, and an entry is one line with a link."""
    text = (ROOT / "CHANGELOG.md").read_text()
    versions = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert versions[0] == "[Unreleased]"
    assert [v for v in versions[1:] if not re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", v)] == []
    sections = set(re.findall(r"^### (.*)$", text, re.MULTILINE))
    assert sections <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    entries = re.findall(r"^- .*(?:\n +.*)*", text, re.MULTILINE)
    assert [entry for entry in entries if len(entry) > 140 or "](" not in entry] == []


def test_the_licence_is_whole() -> None:
    """Apache-2.0, from its head to its appendix, as pyproject.toml says."""
    text = (ROOT / "LICENSE").read_text()
    assert PROJECT["project"]["license"] == "Apache-2.0"
    assert all(part in text for part in ("Version 2.0, January 2004", "END OF TERMS AND CONDITIONS", "APPENDIX"))


@pytest.mark.parametrize("target", MAKES)
def test_make_has_the_targets_that_the_readme_names(target: str) -> None:
    """Each is there, and none is a file by accident."""
    makefile = (ROOT / "Makefile").read_text()
    assert re.search(rf"^{target}:", makefile, re.MULTILINE)
    assert re.search(rf"^\.PHONY:.*\b{target}\b", makefile, re.MULTILINE)


def test_a_build_machine_runs_make_test() -> None:
    """.ci/run is executable and ends in make test, unless another target is named."""
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & 0o111
    assert script.read_text().splitlines()[-1] == 'exec make "${1:-test}"'


def test_the_bench_and_the_tests_share_scaffolding_alone() -> None:
    """The bench takes of the tests what is in tests/support and tests/testcluster, and only its own tests, in tests/bench, import it."""
    allowed = {"bench": ("tests.support.", "tests.testcluster."), "tests": ()}
    inside = [path for folder in allowed for path in (ROOT / folder).rglob("*.py") if not path.is_relative_to(ROOT / "tests" / "bench")]
    naming = [path for path in inside if path.is_relative_to(ROOT / "bench") or "bench" in path.read_text()]
    crossing = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in naming
        for line, name in imported(path)
        for own, other in (("bench", "tests"), ("tests", "bench"))
        if path.is_relative_to(ROOT / own) and name.partition(".")[0] == other and not name.startswith(allowed[own])
    ]
    assert len(inside) > 100
    assert crossing == []


@pytest.mark.parametrize("folder", ["bench", "tests/e2e", "tests/support", "tests/testcluster"])
def test_a_room_has_at_most_a_dozen_modules(folder: str) -> None:
    """So that its listing is read at a glance; tests beside the source have as many as the source."""
    rooms = Counter(path.parent for path in (ROOT / folder).rglob("*.py") if path.name != "__init__.py")
    assert {str(room.relative_to(ROOT)): number for room, number in rooms.items() if number > MOST_FILES} == {}
