"""The programs of a control plane, built from Go modules into the cache (``bench.go_build``), or taken from KUBEBUILDER_ASSETS.

Three modules, for their versions of k8s.io differ: the control plane with kubectl, kwok (which plays the kubelets) and Karpenter with
its own kwok cloud provider (the real provisioner on simulated machines). Each has a go.mod with ``tool`` lines and no code.

    python -m tests.testcluster.programs      builds all that are not there, telling how far it is: about six minutes, once
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from bench import go_build
from bench.go_build import BuildFailed, NoGo, Progress

HERE = Path(__file__).parent
ASSETS = "KUBEBUILDER_ASSETS"
"""Names a folder of ready programs, as controller-runtime's envtest takes them: etcd, kube-apiserver, kubectl."""


class NoProgram(Exception):
    """A program that is asked for is not to be had; the message is one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One program, and what it is built from."""

    name: str
    module: str
    """a folder beside this file"""
    package: str

    @property
    def folder(self) -> Path:
        return HERE / self.module


PROGRAMS = (
    Program(name="etcd", module="controlplane", package="go.etcd.io/etcd/server/v3"),
    Program(name="kube-apiserver", module="controlplane", package="k8s.io/kubernetes/cmd/kube-apiserver"),
    Program(name="kube-controller-manager", module="controlplane", package="k8s.io/kubernetes/cmd/kube-controller-manager"),
    Program(name="kube-scheduler", module="controlplane", package="k8s.io/kubernetes/cmd/kube-scheduler"),
    Program(name="kubectl", module="controlplane", package="k8s.io/kubernetes/cmd/kubectl"),
    Program(name="kwok", module="kwok", package="sigs.k8s.io/kwok/cmd/kwok"),
    Program(name="karpenter", module="karpenter", package="sigs.k8s.io/karpenter/kwok"),
)
BY_NAME = {program.name: program for program in PROGRAMS}
VERSIONS = {
    "Kubernetes": "k8s.io/kubernetes",
    "etcd": "go.etcd.io/etcd/server/v3",
    "kwok": "sigs.k8s.io/kwok",
    "Karpenter": "sigs.k8s.io/karpenter",
}
"""what a table of results names -> the module whose version it is"""


def path(name: str, told: Progress | None = None) -> Path:
    """The program, built first where it has to be. Raises NoProgram, and BuildFailed with what the compiler said."""
    if (ready := _asset(name)) is not None:
        return ready
    program = BY_NAME[name]
    try:
        return go_build.built(program.folder, program.package, name, ldflags=_version_flags(program), told=told)
    except NoGo as error:
        raise NoProgram(f"there is no {name}: it is built with Go, and {error}") from None


def manifests(module: str, *folders: str) -> Path:
    """A folder with these folders of kwok's or Karpenter's module (``sigs.k8s.io/<module>``): their CRDs and stages."""
    try:
        return go_build.files(HERE / module, f"sigs.k8s.io/{module}", folders)
    except NoGo as error:
        raise NoProgram(f"the manifests of {module} are fetched with Go, and {error}") from None


def versions() -> dict[str, str]:
    """As the go.mod files pin them, in the order of VERSIONS."""
    text = "\n".join((folder / "go.mod").read_text() for folder in sorted({program.folder for program in PROGRAMS}))
    return {name: _version(text, module) for name, module in VERSIONS.items()}


def _version(text: str, module: str) -> str:
    found = re.search(rf"^(?:require)?\s*{re.escape(module)} (v\S+)", text, re.MULTILINE)
    assert found is not None, f"no go.mod requires {module}"
    return found.group(1)


def _asset(name: str) -> Path | None:
    """From KUBEBUILDER_ASSETS; None where it is not set or lacks the program, which is then built."""
    if not (folder := os.environ.get(ASSETS)):
        return None
    if not Path(folder).is_dir():
        raise NoProgram(f"{ASSETS} is {folder}, which is no folder: unset it, or name one that has etcd, kube-apiserver and kubectl")
    ready = Path(folder) / name
    return ready if ready.exists() else None


def _version_flags(program: Program) -> str:
    """Without them kube-apiserver says that it is v0.0.0, and kubectl warns about it."""
    if program.module != "controlplane" or program.name == "etcd":
        return ""
    version = _version((program.folder / "go.mod").read_text(), "k8s.io/kubernetes")
    major, minor, _ = version.removeprefix("v").split(".")
    values = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    return " ".join(f"-X k8s.io/component-base/version.{key}={value}" for key, value in values.items())


def main() -> int:
    """Builds what is not there. 0 also without Go: tests then say what they miss."""
    try:
        missing = [program for program in PROGRAMS if not _there(program)]
        if missing:
            print(f"building {', '.join(program.name for program in missing)}, once: some six minutes on two cores", flush=True)
        for number, program in enumerate(missing, 1):
            prefix = f"{program.name} ({number} of {len(missing)})"
            path(program.name, told=lambda said, prefix=prefix: print(f"{prefix}: {said}", flush=True))  # type: ignore[misc]
    except (NoGo, NoProgram) as error:
        print(f"no control plane for tests: {error}", file=sys.stderr)
    except BuildFailed as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _there(program: Program) -> bool:
    ready = _asset(program.name)
    return ready is not None or go_build.kept(program.folder, program.name, ldflags=_version_flags(program)).exists()


if __name__ == "__main__":
    sys.exit(main())
