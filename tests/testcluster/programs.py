"""The programs of a control plane, built from Go modules into the cache (``tests.testcluster.go_build``), or taken from KUBEBUILDER_ASSETS.

One module has the control plane with kubectl, kwok (which plays the kubelets), Karpenter with its own kwok cloud provider (the real
provisioner on simulated machines), Helm, Prometheus, kubelet and kube-proxy: at the same version of k8s.io what they share is compiled
once, which halves the build. Others have containerd, older releases of the control plane, and what tests check Berth with (JUDGES).

    python -m tests.testcluster.programs [prove]              builds what tests need and is not there, telling how far it is: about twenty
                                                              minutes, once; with ``prove`` the older releases and metrics-server too
    python -m tests.testcluster.programs --beside COMMAND     runs a command, and builds meanwhile; a test waits for what it needs
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tests.testcluster import go_build, thirdparty
from tests.testcluster.go_build import BuildFailed, NoGo, Progress
from tests.testcluster.images import archives
from tests.testcluster.kubelets import possible

MODULES = Path(__file__).parent / "modules"
"""Go modules: each builds programs of one release"""
ASSETS = "KUBEBUILDER_ASSETS"
"""Names a folder of ready programs, as controller-runtime's envtest takes them: etcd, kube-apiserver, kubectl."""
BUILDING = "BERTH_BUILDING"
"""Set where programs are built while tests run."""
BESIDE_SECONDS = 60
"""between two words of progress among the lines of the tests"""
CURRENT = "controlplane"
"""The module of the control plane that tests run on, and of what runs beside it"""
OLDER = ("kubernetes-1.36", "kubernetes-1.35")
"""Modules of older releases, on which ``tests/e2e/versions`` runs in ``make prove``"""
OF_A_RELEASE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
"""What an older release has of its own"""


class NoProgram(Exception):
    """A program that is asked for is not to be had; the message is one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One program, and what it is built from."""

    name: str
    module: str
    """a folder beside this file"""
    package: str
    tags: str = ""
    """build tags with commas between"""

    @property
    def folder(self) -> Path:
        return MODULES / self.module


PROGRAMS = (
    Program(name="etcd", module=CURRENT, package="go.etcd.io/etcd/server/v3"),
    Program(name="kube-apiserver", module=CURRENT, package="k8s.io/kubernetes/cmd/kube-apiserver"),
    Program(name="kube-controller-manager", module=CURRENT, package="k8s.io/kubernetes/cmd/kube-controller-manager"),
    Program(name="kube-scheduler", module=CURRENT, package="k8s.io/kubernetes/cmd/kube-scheduler"),
    Program(name="kubectl", module=CURRENT, package="k8s.io/kubernetes/cmd/kubectl"),
    Program(name="kwok", module=CURRENT, package="sigs.k8s.io/kwok/cmd/kwok"),
    Program(name="karpenter", module=CURRENT, package="sigs.k8s.io/karpenter/kwok"),
    Program(name="helm", module=CURRENT, package="helm.sh/helm/v4/cmd/helm"),
)
CONTAINERD = "github.com/containerd/containerd/v2/cmd"
ON_A_NODE = (
    Program(name="containerd", module="containerd", package=f"{CONTAINERD}/containerd", tags="no_btrfs"),
    Program(name="containerd-shim-runc-v2", module="containerd", package=f"{CONTAINERD}/containerd-shim-runc-v2", tags="no_btrfs"),
    Program(name="ctr", module="containerd", package=f"{CONTAINERD}/ctr", tags="no_btrfs"),
    Program(name="kubelet", module=CURRENT, package="k8s.io/kubernetes/cmd/kubelet"),
    Program(name="kube-proxy", module=CURRENT, package="k8s.io/kubernetes/cmd/kube-proxy"),
    Program(name="deviceplugin", module="deviceplugin", package="."),
)
"""what runs real containers: of use to root alone, so built by whoever can use it"""
OF_METRICS = (Program(name="promtool", module=CURRENT, package="github.com/prometheus/prometheus/cmd/promtool", tags="remove_all_sd"),)
"""what reads the rules and dashboards of deploy/monitoring; without the clouds' service discovery, which is half of the build"""
OF_LONG_TESTS = (
    Program(name="prometheus", module=CURRENT, package="github.com/prometheus/prometheus/cmd/prometheus", tags="remove_all_sd"),
    Program(name="metrics-server", module="metrics-server", package="sigs.k8s.io/metrics-server/cmd/metrics-server"),
)
"""what only ``make prove`` has a use for"""
JUDGES = (
    Program(name="callers", module="callers", package="."),
    Program(name="cel", module="cel", package="."),
    Program(name="kstatus", module="kstatus", package="."),
    Program(name="kube", module="kube", package="."),
    Program(name="validate-krew-manifest", module="krew", package="sigs.k8s.io/krew/cmd/validate-krew-manifest"),
)
"""what tests check Berth with. Four have code of their own, at the versions of k8s.io of CURRENT, so that it is compiled once."""
KREW = Program(name="krew", module="krew", package="sigs.k8s.io/krew/cmd/krew")
BY_NAME = {program.name: program for program in (*PROGRAMS, *OF_METRICS, *JUDGES, *ON_A_NODE, *OF_LONG_TESTS, KREW)}
VERSIONS = {
    "Kubernetes": "k8s.io/kubernetes",
    "etcd": "go.etcd.io/etcd/server/v3",
    "kwok": "sigs.k8s.io/kwok",
    "Karpenter": "sigs.k8s.io/karpenter",
    "Helm": "helm.sh/helm/v4",
}
"""what a table of results names -> the module whose version it is"""


def path(name: str, progress: Progress | None = None, *, release: str = CURRENT) -> Path:
    """The program, built first where it has to be; of an older release what there is of it (OF_A_RELEASE). Raises NoProgram, and
    BuildFailed with what the compiler said."""
    return _built(of_release(release, name), progress)


def build(programs: Iterable[Program], progress: Progress) -> None:
    """Build the programs that are not there, one after another. Raises NoProgram and BuildFailed."""
    missing = [program for program in programs if not _there(program)]
    if missing:
        progress(f"building {', '.join(program.name for program in missing)}, once: some twenty minutes on two cores")
    for number, program in enumerate(missing, 1):
        prefix = f"{program.name}{f' of {program.module}' if program.module in OLDER else ''} ({number} of {len(missing)})"
        _built(program, lambda text, prefix=prefix: progress(f"{prefix}: {text}"))  # type: ignore[misc]


def _built(program: Program, progress: Progress | None) -> Path:
    if (ready := _asset(program)) is not None:
        return ready
    try:
        flags = _version_flags(program)
        return go_build.built(program.folder, program.package, program.name, tags=program.tags, ldflags=flags, progress=progress)
    except NoGo as error:
        raise NoProgram(f"there is no {program.name}: it is built with Go, and {error}") from None


def of_release(release: str, name: str) -> Program:
    """The program as a release has it."""
    return replace(BY_NAME[name], module=release) if name in OF_A_RELEASE else BY_NAME[name]


def manifests(module: str, *folders: str) -> Path:
    """A folder with these folders of kwok's or Karpenter's module (``sigs.k8s.io/<module>``): their CRDs and stages."""
    try:
        return go_build.files(MODULES / CURRENT, f"sigs.k8s.io/{module}", folders)
    except NoGo as error:
        raise NoProgram(f"the manifests of {module} are fetched with Go, and {error}") from None


def versions() -> dict[str, str]:
    """As the go.mod files pin them, in the order of VERSIONS."""
    text = (MODULES / CURRENT / "go.mod").read_text()
    return {name: _version(text, module) for name, module in VERSIONS.items()}


def containerd_version() -> str:
    """As v2.4.2."""
    return _version((MODULES / "containerd" / "go.mod").read_text(), "github.com/containerd/containerd/v2")


def kubernetes(release: str) -> str:
    """Its version, as v1.36.3."""
    return _version((MODULES / release / "go.mod").read_text(), VERSIONS["Kubernetes"])


def _version(text: str, module: str) -> str:
    found = re.search(rf"^(?:require)?\s*{re.escape(module)} (v\S+)", text, re.MULTILINE)
    assert found is not None, f"no go.mod requires {module}"
    return found.group(1)


def _asset(program: Program) -> Path | None:
    """From KUBEBUILDER_ASSETS; None where it is not set or lacks the program, which is then built, as those of older releases are."""
    if program.module in OLDER or not (folder := os.environ.get(ASSETS)):
        return None
    if not Path(folder).is_dir():
        raise NoProgram(f"{ASSETS} is {folder}, which is no folder: unset it, or name one that has etcd, kube-apiserver and kubectl")
    ready = Path(folder) / program.name
    return ready if ready.exists() else None


def _version_flags(program: Program) -> str:
    """Without them kube-apiserver says that it is v0.0.0, and kubectl warns about it."""
    if not program.package.startswith("k8s.io/kubernetes/"):
        return ""
    version = kubernetes(program.module)
    major, minor, _ = version.removeprefix("v").split(".")
    values = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    return " ".join(f"-X k8s.io/component-base/version.{key}={value}" for key, value in values.items())


def beside(command: Sequence[str]) -> int:
    """Run a command while what tests need is built, by a process that gives way to it. Its exit code; 1 where a build has failed.

    Once the command has ended nobody waits for the rest. ``BUILDING`` tells it that tests had better start with what needs no program.
    """
    to_build = any(not _there(program) for program in _of_tests())
    builder = subprocess.Popen(
        [sys.executable, "-P", "-m", "tests.testcluster.programs", "beside"], start_new_session=True, preexec_fn=lambda: os.nice(10)
    )
    try:
        code = subprocess.run(command, env={**os.environ, BUILDING: "1" if to_build else ""}, check=False).returncode
        return code or int(builder.poll() == 1)
    finally:
        if builder.poll() is None:
            os.killpg(builder.pid, signal.SIGTERM)
        builder.wait()


def main(words: Sequence[str]) -> int:
    """Build what tests need. 0 also without Go: tests then say what they miss."""
    for number in (signal.SIGINT, signal.SIGTERM):  # SIGINT too: a shell starts its background jobs deaf to it
        signal.signal(number, signal.default_int_handler)
    if words[:1] == ["--beside"]:
        return beside(words[1:])
    if words == ["beside"]:
        go_build.TELL_SECONDS = BESIDE_SECONDS
    try:
        build(_of_tests(prove=words == ["prove"]), say)
        thirdparty.build_all(say)
    except (NoGo, NoProgram) as error:
        print(f"no control plane for tests: {error}", file=sys.stderr)
    except BuildFailed as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return archives.main()


def _of_tests(*, prove: bool = False) -> list[Program]:
    """In the order in which tests that need little come to need them."""
    older = [of_release(release, name) for release in OLDER for name in OF_A_RELEASE]
    long = [*older, *OF_LONG_TESTS, KREW] if prove else []
    return [*PROGRAMS, *OF_METRICS, *JUDGES, *long, *(() if possible.missing() else ON_A_NODE)]


def say(text: str) -> None:
    """Print a line at once, into a file too."""
    print(text, flush=True)


def kept(name: str, *, release: str = CURRENT) -> Path:
    """Where the program is once it is built. Raises NoGo."""
    program = of_release(release, name)
    return go_build.kept(program.folder, program.name, tags=program.tags, ldflags=_version_flags(program))


def _there(program: Program) -> bool:
    try:
        return _asset(program) is not None or kept(program.name, release=program.module).exists()
    except NoGo:
        return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
