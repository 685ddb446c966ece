"""The page of the screen."""

from __future__ import annotations

from console.server.page import Page, Visit
from console.server.paging import paged


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
