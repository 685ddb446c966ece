"""The files that are made from others: the definitions, the reference, the manual page, the drawing of the rooms, docs/performance.md, what
the chart takes from the catalog and the library, the schema of its values, and the plain manifests that are rendered from it.

    python -P -m tests.generated [--check]      writes those that are out of date (make generate), or names them (make check)

The pictures of pages and terminals need a browser and a cluster: ``python -m tests.pictures`` writes them.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from cli import VERSION, crds, webhooks
from cli.about import manual
from cli.about.tree import commands
from cli.given import webhooks_scope
from cli.output import yaml_writer
from cluster.survey.custom_workloads import resources
from documents.files import read_catalog
from policies.objects.reference import reference_markdown
from registration import backstop
from registration.configurations import Service, first, manifests
from registration.entries import CLAIMS, Chosen
from tests.deploy import values_schema
from tests.deploy.monitoring import dashboards
from tests.deploy.rendering import rendered_text
from tests.docs import architecture, performance
from tests.testcluster import programs
from tests.testcluster.addons.berth import LIBRARY, ROOT
from tests.testcluster.addons.helm import CHART
from tests.testcluster.programs import NoProgram

DEPLOY = ROOT / "deploy"
WHOLE = ("deploy/crds", "deploy/chart/files")
"""Folders that hold generated files alone"""
NAMESPACE = """\
apiVersion: v1
kind: Namespace
metadata:
  name: berth-system
  labels:
    pod-security.kubernetes.io/enforce: restricted
"""
DASHBOARDS = ("deploy/monitoring/dashboards", "deploy/chart/files/monitoring/dashboards")
"""For those who take them without the chart, and for the chart"""
INSTALL_HEAD = """\
# Berth with the defaults of its chart, for clusters without Helm.
# Made by `make generate` from deploy/chart ({chart}).
# kubectl apply --server-side -f deploy/install.yaml installs and upgrades it. To remove it, so that no GPU pod waits meanwhile:
#
#   kubectl delete mutatingwebhookconfiguration,validatingwebhookconfiguration zz-berth
#   kubectl delete -f deploy/install.yaml
#
# which takes the definitions along, and so every policy.
"""
RIGHTS_HEAD = """\
# Custom workloads that the catalog knows: what owns pods, the templates of what has none, and what these rest on. Made by `make generate`.
"""
RBAC_HEAD = """\
# Berth's accounts and rights alone, beside deploy/crds/, for a Berth outside of the cluster.
# Made by `make generate` from deploy/chart ({chart}).
# Deleting this file's objects takes the namespace berth-system and all in it along.
"""
Files = Mapping[str, str]
"""Path from the root of the checkout -> text"""


def from_source() -> Files:
    """Return the files that Berth's own code makes."""
    definitions = crds.files()
    return {
        **{f"{folder}/{name}": text for folder in ("deploy/crds", "deploy/chart/files/crds") for name, text in definitions.items()},
        "docs/reference.md": reference_markdown(),
        "docs/berth.1": manual.page(commands(), _released()),
        "docs/architecture.svg": architecture.picture(),
        "docs/performance.md": performance.page(),
        **{f"deploy/chart/files/library/{file.name}": file.read_text() for file in sorted(LIBRARY.glob("*.yaml"))},
        **{f"deploy/chart/files/{name}": (DEPLOY / name).read_text() for name in ("guarded-names.yaml", "gpu-use-without-request.yaml")},
        **{f"{folder}/backstop.yaml": _backstop() for folder in ("deploy", "deploy/chart/files")},
        "deploy/chart/files/custom-workloads.yaml": _rights(),
        "deploy/chart/files/monitoring/rules.yaml": (DEPLOY / "monitoring" / "rules.yaml").read_text(),
        **{f"{folder}/{name}": text for folder in DASHBOARDS for name, text in dashboards.files().items()},
        **{
            f"deploy/chart/files/webhooks{'-queues' if queues else ''}-claims-{claims.lower()}.yaml": _webhooks(
                Chosen(claims=claims, queues=queues)
            )
            for queues in (False, True)
            for claims in CLAIMS
        },
        "deploy/chart/values.schema.json": values_schema.text_of(values_schema.schema((CHART / "values.yaml").read_text())),
    }


def from_chart() -> Files:
    """Return the files that Helm renders from the chart as it is on the disk. Raises NoProgram."""
    chart = chart_digest()
    templates = ("serviceaccount", "rbac", "audit-rights")
    rights = rendered_text([f"--show-only=templates/{name}.yaml" for name in templates])
    return {
        "deploy/install.yaml": f"{INSTALL_HEAD.format(chart=chart)}---\n{NAMESPACE}{_stripped(rendered_text(['--skip-tests']))}",
        "deploy/rbac.yaml": f"{RBAC_HEAD.format(chart=chart)}---\n{NAMESPACE}{_stripped(rights)}",
    }


def chart_digest() -> str:
    """Return the digest of the chart's files, by which an old plain manifest is told without Helm."""
    digest = hashlib.sha256()
    for file in sorted(path for path in CHART.rglob("*") if path.is_file()):
        digest.update(f"{file.relative_to(CHART)}\0".encode() + file.read_bytes() + b"\0")
    return f"sha256 {digest.hexdigest()[:16]}"


def _released() -> str:
    """Return the date of this version in the changelog; until it has one, of the newest that has one."""
    dates: dict[str, str] = dict(re.findall(r"^## \[(.+)\] - (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE))
    return dates.get(VERSION, next(iter(dates.values())))


def _rights() -> str:
    """Rules for the custom workloads that `berth audit --serve` follows."""
    groups = resources(read_catalog([])).items()
    rules = [f"- apiGroups: [{group}]\n  resources: [{', '.join(plurals)}]\n  verbs: [get, list, watch]\n" for group, plurals in groups]
    return RIGHTS_HEAD + "".join(rules)


def _backstop() -> str:
    return backstop.HEAD + "---\n".join(yaml_writer.text(manifest) for manifest in backstop.manifests(read_catalog([])))


def _webhooks(chosen: Chosen) -> str:
    """What `berth webhooks` prints."""
    catalog = read_catalog([])
    configurations = [*manifests(catalog, Service(), None, chosen), *filter(None, [first(catalog, Service(), None, chosen)])]
    return webhooks.document(configurations, without_ca=True, head=webhooks_scope.head(catalog, chosen, None))


def _stripped(text: str) -> str:
    """Without the empty lines that a template leaves at the end of an object."""
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines() if line.strip())


def outdated(files: Files, root: Path = ROOT) -> list[str]:
    """Return the paths of files that differ on the disk, and of those whose source is gone."""
    paths = (root / name for name in files)
    differing = [path for path in paths if not path.exists() or path.read_text(encoding="utf-8") != files[str(path.relative_to(root))]]
    return [str(path.relative_to(root)) for path in (*differing, *_left_over(files, root))]


def write(files: Files, root: Path = ROOT) -> list[str]:
    """Write the files that are out of date, delete those whose source is gone, and return the paths of both."""
    changed = outdated(files, root)
    for name in changed:
        if name in files:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(files[name], encoding="utf-8")
        else:
            (root / name).unlink()
    return changed


def _left_over(files: Files, root: Path) -> list[Path]:
    """Return what else is in the folders of WHOLE that these files are in."""
    folders = [folder for folder in WHOLE if any(name.startswith(f"{folder}/") for name in files)]
    paths = (path for folder in folders for path in (root / folder).rglob("*") if path.is_file())
    return [path for path in paths if str(path.relative_to(root)) not in files]


def main(*, check: bool) -> int:
    """Write the files, or name those that are out of date. Those that Helm renders come last: their templates read the others."""
    if check:
        plain = ("deploy/install.yaml", "deploy/rbac.yaml")
        names = [*outdated(from_source()), *(name for name in plain if chart_digest() not in (ROOT / name).read_text(encoding="utf-8"))]
        for name in names:
            print(f"{name} is out of date; run: make generate")
        return 1 if names else 0
    try:
        names = write(from_source())
        programs.path("helm", lambda text: print(f"helm: {text}", flush=True))
        names += write(from_chart())
    except NoProgram as error:
        print(f"deploy/install.yaml and deploy/rbac.yaml stay as they are: {error}", file=sys.stderr)
        return 1
    print(f"wrote {', '.join(names)}" if names else "nothing was out of date")
    return 0


if __name__ == "__main__":
    sys.exit(main(check=sys.argv[1:] == ["--check"]))
