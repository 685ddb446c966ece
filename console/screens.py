"""All screens by address, with the page "History"."""

from __future__ import annotations

from console.berths.group_page import group
from console.berths.pages import berths
from console.impact import cell, impact
from console.job.pages import gather, job
from console.policies import namespace, policies, policy
from console.server.page import Page, Screen, Visit
from console.server.query import paged


def history(visit: Visit) -> Page:
    """Events, the newest first, and what reports say of workloads."""
    view, query = visit.view, visit.query
    namespace = query.name("namespace")
    found = [one for one in view.happenings() if namespace in ("", one.namespace)]
    reports = [one for one in view.reports() if namespace in ("", one.namespace)]
    results = [(report, result) for report in reports for result in report.results]
    results.sort(key=lambda one: (-one[1].pods, one[0].namespace, one[0].kind, one[0].name))
    values = {
        "events": paged(found, query, "/history"),
        "results": paged(results, query, "/history", field="reports"),
        "namespace": namespace,
        "may": view.scope.events.every or bool(view.scope.events.names),
    }
    return Page(template="history.html", title="History", values=values)


def _state(visit: Visit) -> Page:
    """The line that says as of when all is, which pages ask for again and again."""
    return Page(template="state.html", title="")


SCREENS = (
    Screen(path="/", show=impact, section="impact"),
    Screen(path="/impact", show=impact, section="impact"),
    Screen(path="/impact/cell", show=cell, section="impact"),
    Screen(path="/berths", show=berths, section="berths"),
    Screen(path="/berths/group", show=group, section="berths"),
    Screen(path="/job", show=job, gather=gather, section="job", form=True),
    Screen(path="/policies", show=policies, section="policies"),
    Screen(path="/policies/one", show=policy, section="policies"),
    Screen(path="/policies/namespace", show=namespace, section="policies"),
    Screen(path="/history", show=history, section="history"),
    Screen(path="/state", show=_state),
)
