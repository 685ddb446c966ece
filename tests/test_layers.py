"""Who may import whom, and how large files and rooms may be: read from the source, imports inside functions included."""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.support.module_imports import LAYERS, ROOT, Graph, files, imported, imported_when_run, modules, tree

FLOORS = (
    {"kube"}, {"catalog"}, {"policies"}, {"certs", "documents", "registration"}, {"analysis"}, {"telemetry"}, {"server"}, {"cluster"},
    {"sources"}, {"webhook"}, {"console"}, {"cli"},
)  # fmt: skip
"""The packages from the lowest floor up; each imports itself and the floors below."""
NARROWER = {"certs": {"certs"}, "server": {"server", "telemetry"}}
"""What a package imports that needs less than the floors below."""
MOST_LINES = 400
MOST_FILES = 12
"""besides ``__init__``"""
CLOCKS = {"now", "utcnow", "today"}
"""methods that ask for the time"""
PURE = ("analysis", "catalog", "kube", "policies")
IMPURE = {
    "asyncio", "fcntl", "http", "io", "logging", "multiprocessing", "os", "pathlib", "random", "secrets", "select",
    "shutil", "signal", "socket", "ssl", "subprocess", "sys", "tempfile", "threading", "time", "urllib", "uuid",
}  # fmt: skip
"""What ``PURE`` packages may not touch: clocks, files, the environment, chance, sockets, processes and logs."""


def offences(layer: str, allowed: set[str]) -> list[str]:
    """Imports of our own layers, or of ``kubernetes``, that ``layer`` may not make."""
    ours = {*LAYERS, "kubernetes", "tests", "bench"}
    return [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in files(layer)
        for line, name in imported(path)
        if name.partition(".")[0] in ours - allowed
    ]


def circles(arrows: Graph) -> list[str]:
    """One of the circles that each module is in, as ``a -> b -> a``; each circle once."""
    found: dict[frozenset[str], str] = {}
    done: set[str] = set()

    def follow(way: list[str]) -> None:
        for after in sorted(arrows.get(way[-1], ())):
            if after in way:
                circle = way[way.index(after) :]
                found.setdefault(frozenset(circle), " -> ".join([*circle, after]))
            elif after not in done:
                follow([*way, after])
        done.add(way[-1])

    for module in sorted(arrows):
        if module not in done:
            follow([module])
    return list(found.values())


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_imports_only_what_is_below_it(layer: str) -> None:
    """No step calls back up, and only cluster/ knows the Kubernetes client."""
    (floor,) = (number for number, packages in enumerate(FLOORS) if layer in packages)
    below = {layer}.union(*FLOORS[:floor])
    assert offences(layer, NARROWER.get(layer, below) | ({"kubernetes"} if layer == "cluster" else set())) == []


def test_the_kubernetes_client_is_imported_where_it_is_needed() -> None:
    """Only functions that read a kubeconfig import it: that takes 19 MB of memory, and a process in a pod reads no kubeconfig."""
    late = ROOT / "cluster" / "client" / "exec_plugins.py"
    eager = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in files("cluster")
        for node in tree(path).body
        if isinstance(node, ast.Import | ast.ImportFrom)
        and (late.stem in ast.unparse(node) or ("kubernetes" in ast.unparse(node).split(".")[0] and path != late))
    ]
    assert eager == []


@pytest.mark.parametrize("layer", ["catalog", "kube", "policies"])
def test_a_decision_needs_only_the_standard_library(layer: str) -> None:
    """No third-party package is imported: text is parsed outside."""
    foreign = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in files(layer)
        for line, name in imported(path)
        if name.partition(".")[0] not in {*sys.stdlib_module_names, *LAYERS}
    ]
    assert foreign == []


@pytest.mark.parametrize("layer", PURE)
def test_a_decision_is_pure(layer: str) -> None:
    """It imports no clock, file, environment, chance, socket or log."""
    impure = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in files(layer)
        for line, name in imported(path)
        if name.partition(".")[0] in IMPURE
    ]
    assert impure == []


@pytest.mark.parametrize("layer", PURE)
def test_a_decision_opens_and_prints_nothing(layer: str) -> None:
    """It calls neither open, print nor input, and asks no clock for the time."""
    called = [
        f"{path.relative_to(ROOT)}:{node.lineno} calls {ast.unparse(node.func)}"
        for path in files(layer)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call)
        and (getattr(node.func, "id", "") in {"open", "print", "input", "eval", "exec"} or getattr(node.func, "attr", "") in CLOCKS)
    ]
    assert called == []


def test_no_modules_import_each_other() -> None:
    """What is below can be read, tested and changed without what is above it; imports inside functions and for types count."""
    arrows = modules().imports
    assert sum(map(len, arrows.values())) > 500, "the test reads imports"
    assert circles(arrows) == []


def test_no_packages_import_each_other() -> None:
    """The same is true of the packages, and of the packages inside them."""
    arrows: dict[str, set[str]] = {}
    for importer, imports in modules().imports.items():
        arrows.setdefault(package(importer), set()).update(map(package, imports))
    assert len(arrows) > 60, "the test sees packages inside packages"
    assert circles({name: imports - {name} for name, imports in arrows.items()}) == []


def package(module: str) -> str:
    """Return the package of a module: ``policies.rules`` of all below it, but a module that stands in ``policies`` itself."""
    return ".".join(module.split(".")[:2])


def test_the_server_knows_nothing_of_admission() -> None:
    """HTTP, TLS and their limits could serve anything."""
    rooms = ("webhook.admission", "webhook.reload", "policies", "registration", "cluster", "documents")
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in files("server")
        for line, name in imported(path)
        if name.startswith(tuple(f"{room}." for room in rooms))
    ]
    assert wrong == []


def test_berth_and_make_cluster_import_what_their_lock_installs() -> None:
    """Nothing that only the lock of the tests installs, functions' imports included; ``make cluster`` takes nothing of tests/support."""
    arrows = modules(layers=(*LAYERS, "tests/testcluster"))
    needed = {name for name in arrows.files if name.partition(".")[0] in LAYERS}
    ahead = {"tests.testcluster.__main__"}
    while ahead:
        needed |= ahead
        ahead = {name for module in ahead for name in arrows.imports[module]} - needed
    assert "tests.testcluster.programs" in needed
    locked = re.findall(r"^([\w.-]+)==", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
    packages = packages_distributions().items()
    installed = {name for name, found in packages if {re.sub(r"[-_.]+", "-", package).lower() for package in found} & {*locked}}
    imports = [(module, name) for module in sorted(needed) for name in imported_when_run(arrows.files[module])]
    allowed = {*sys.stdlib_module_names, *LAYERS, *installed}
    foreign = [pair for pair in imports if pair[1].partition(".")[0] not in allowed and not pair[1].startswith("tests.testcluster")]
    assert foreign == []


def test_a_room_has_at_most_a_dozen_files() -> None:
    """So that a listing shows what is there."""
    rooms = Counter(path.parent for path in modules().files.values() if path.name != "__init__.py")
    assert {str(room.relative_to(ROOT)): number for room, number in rooms.items() if number > MOST_FILES} == {}


def test_a_file_is_read_at_one_sitting() -> None:
    """At most 400 lines."""
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in modules().files.values()}
    assert {path: length for path, length in lengths.items() if length > MOST_LINES} == {}


def test_the_reader_sees_imports_of_every_form(tmp_path: Path) -> None:
    """The test above would notice an import inside a function, and one of a submodule."""
    file = tmp_path / "x.py"
    file.write_text("import os.path\ndef f():\n    from webhook import app\n")
    assert list(imported(file)) == [(1, "os.path"), (3, "webhook.app")]


def test_circles_are_found(tmp_path: Path) -> None:
    """The test above would notice one of two and one of three modules, and one by imports for types."""
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"e", "a"}, "e": {"d"}, "f": {"a"}}) == ["a -> b -> c -> a", "d -> e -> d"]
    for name, text in {
        "a": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from room import b\n",
        "b": "import room.a\n",
    }.items():
        (tmp_path / "room").mkdir(exist_ok=True)
        (tmp_path / "room" / f"{name}.py").write_text(text)
    assert circles(modules(tmp_path, ("room",)).imports) == ["room.a -> room.b -> room.a"]
