"""The files of deploy/ that are made from others: what the chart takes from the catalog, the definitions and the library, the schema of
its values, and the plain manifests that are rendered from it.

    python -P -m tests.deploy.generated      writes them (make chart)
"""

from __future__ import annotations

import sys

from cli import crds, webhooks
from cli.given import webhooks_scope
from cluster.survey.custom_workloads import resources
from documents.files import read_catalog
from registration.configurations import Service, first, manifests
from registration.entries import Chosen
from tests.deploy import values_schema
from tests.deploy.monitoring import dashboards
from tests.deploy.rendering import rendered_text
from tests.testcluster.addons.helm import CHART
from tests.testcluster.programs import NoProgram

DEPLOY = CHART.parent
LIBRARY = DEPLOY.parent / "policies" / "library"
NAMESPACE = """\
apiVersion: v1
kind: Namespace
metadata:
  name: berth-system
  labels:
    pod-security.kubernetes.io/enforce: restricted
"""
DASHBOARDS = ("monitoring/dashboards", "chart/files/monitoring/dashboards")
"""For those who take them without the chart, and for the chart"""
INSTALL_HEAD = """\
# Berth with the defaults of its chart, for clusters without Helm. Made by `make chart` from deploy/chart, not by hand.
# kubectl apply --server-side -f deploy/install.yaml installs and upgrades it. To remove it, so that no GPU pod waits meanwhile:
#
#   kubectl delete mutatingwebhookconfiguration,validatingwebhookconfiguration zz-berth
#   kubectl delete -f deploy/install.yaml
#
# which takes the definitions along, and so every policy.
"""
RIGHTS_HEAD = """\
# Custom workloads that the catalog knows: what owns pods, the templates of what has none, and what these rest on. Made by `make chart`.
"""
RBAC_HEAD = """\
# Berth's accounts and rights alone, beside deploy/crds/, for a Berth outside of the cluster. Made by `make chart` from deploy/chart.
# Deleting this file's objects takes the namespace berth-system and all in it along.
"""


def sources() -> dict[str, str]:
    """Path under deploy/ -> text, of the chart's own files."""
    return {
        **{f"chart/files/crds/{name}": text for name, text in crds.files().items()},
        **{f"chart/files/library/{file.name}": file.read_text() for file in sorted(LIBRARY.glob("*.yaml"))},
        **{f"chart/files/{name}": (DEPLOY / name).read_text() for name in ("guarded-names.yaml", "gpu-use-without-request.yaml")},
        "chart/files/custom-workloads.yaml": _rights(),
        "chart/files/monitoring/rules.yaml": (DEPLOY / "monitoring" / "rules.yaml").read_text(),
        **{f"{folder}/{name}": text for folder in DASHBOARDS for name, text in dashboards.files().items()},
        "chart/files/webhooks.yaml": _webhooks(Chosen()),
        "chart/files/webhooks-without-claims.yaml": _webhooks(Chosen(claims="Off")),
        "chart/files/webhooks-queues.yaml": _webhooks(Chosen(queues=True)),
        "chart/files/webhooks-queues-without-claims.yaml": _webhooks(Chosen(claims="Off", queues=True)),
        "chart/values.schema.json": values_schema.text_of(values_schema.schema((CHART / "values.yaml").read_text())),
    }


def plain() -> dict[str, str]:
    """Path under deploy/ -> text, of what Helm renders. Raises NoProgram."""
    files = ("serviceaccount", "rbac", "audit-rights")
    rights = [f"--show-only=templates/{name}.yaml" for name in files]
    return {
        "install.yaml": f"{INSTALL_HEAD}---\n{NAMESPACE}{_stripped(rendered_text(['--skip-tests']))}",
        "rbac.yaml": f"{RBAC_HEAD}---\n{NAMESPACE}{_stripped(rendered_text(rights))}",
    }


def _rights() -> str:
    """Rules for the custom workloads that `berth audit --serve` follows."""
    groups = resources(read_catalog([])).items()
    rules = [f"- apiGroups: [{group}]\n  resources: [{', '.join(plurals)}]\n  verbs: [get, list, watch]\n" for group, plurals in groups]
    return RIGHTS_HEAD + "".join(rules)


def _webhooks(chosen: Chosen) -> str:
    """What `berth webhooks` prints."""
    catalog = read_catalog([])
    made = [*manifests(catalog, Service(), None, chosen), *filter(None, [first(catalog, Service(), None, chosen)])]
    return webhooks.document(made, without_ca=True, head=webhooks_scope.head(catalog, chosen, None))


def _stripped(text: str) -> str:
    """Without the empty lines that a template leaves at the end of an object."""
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines() if line.strip())


def write(found: dict[str, str]) -> None:
    for name, text in found.items():
        (DEPLOY / name).parent.mkdir(parents=True, exist_ok=True)
        (DEPLOY / name).write_text(text, encoding="utf-8")


def main() -> int:
    """The chart's own files first, for the others are rendered from them."""
    write(sources())
    try:
        write(plain())
    except NoProgram as error:
        print(f"deploy/install.yaml and deploy/rbac.yaml stay as they are: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
