"""Which names of a cluster somebody may read, as the API server tells them (SelfSubjectAccessReview): the console has no part in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from tests.support.console.browser import Browser, Seen
from tests.support.console.shared_cluster import Names, Someone, may_list

ADMISSION = re.compile(r"\((?:required by|default of) [^()]*\)|, required by [^<]*<")
"""The end of a sentence of admission, which names the policies that speak to the author of a pod, whether or not they may list them."""
OF_A_NAMESPACE = (
    ("", "pods"),
    ("berth.dev", "gpupolicies"),
    ("", "events"),
    ("openreports.io", "reports"),
    ("wgpolicyk8s.io", "policyreports"),
)


def _main(page: Seen) -> str:
    """What a page shows, without the time at which the cluster was read."""
    return page.plain.partition("<main")[2].partition("</main>")[0]


class VisibleNames:
    """Of one person."""

    def __init__(self, who: Someone, names: Names) -> None:
        self._who, self._names = who, names
        self.forbidden = frozenset(self._forbidden())

    def leaks(self, browser: Browser, address: str, form: Mapping[str, str] | None = None) -> set[str]:
        """The names that the page of an address, or of a form that is sent there, tells them and that they may not read. A name in the
        address or the form itself, which they knew, is told where the page would be another one for a name that nobody has."""

        def asked(name: str, other: str) -> Seen:
            to = address.replace(name, other) if name else address
            if form is None:
                return browser.get(to)
            return browser.post(to, {key: value.replace(name, other) if name else value for key, value in form.items()})

        page = asked("", "")
        assert page.status in (200, 400, 404), (address, page.status)
        text = ADMISSION.sub("", page.plain)
        known = {name for name in self.forbidden if name in address or name in "".join((form or {}).values())}
        told = {name for name in self.forbidden - known if name in text}
        for name in known:
            other = f"{name[:-10]}{'0' * 10}"
            instead = asked(name, other)
            if (instead.status, _main(instead).replace(other, name)) != (page.status, _main(page)):
                told.add(name)
        return told

    def _forbidden(self) -> Iterator[str]:
        who, names = self._who, self._names
        pods = {one for one in names.namespaces if may_list(who, "", "pods", one)}
        policies = {one for one in names.namespaces if may_list(who, "berth.dev", "gpupolicies", one)}
        for namespace in names.namespaces:
            if not any(may_list(who, *kind, namespace) for kind in OF_A_NAMESPACE) and not may_list(who, "", "namespaces"):
                yield namespace
        events = {one for one in names.namespaces if may_list(who, "", "events", one)}
        yield from (name for namespace, name in names.pods if namespace not in pods)
        yield from (name for namespace, name in names.workloads if namespace not in pods | events)  # an Event tells its workload
        yield from (word for namespace, word in names.words if namespace not in events)
        yield from (name for namespace, name in names.own_policies if namespace not in policies)
        if not may_list(who, "berth.dev", "clustergpupolicies"):
            yield from names.cluster_policies
        if not may_list(who, "berth.dev", "gpunodetemplates"):
            yield from names.node_templates
        if not may_list(who, "", "nodes"):
            yield from set(names.nodes) - {node for namespace, node in names.running if namespace in pods}  # a pod tells its node
            if not may_list(who, "karpenter.sh", "nodepools"):
                yield from names.node_pools  # a node tells its pool
