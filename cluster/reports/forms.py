"""The kinds of report that a cluster may have, and the choice between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from cluster.client.errors import GIVE_RIGHTS
from cluster.reports.stored_reports import ReportKey, StoredReports
from cluster.watch.kinds import Watched

GOES_ON = "statuses, Events and `berth audit` still work"


class FollowedReports(Protocol):
    """The part of a reflector that the writer uses."""

    synced: bool
    healthy: bool
    absent: bool


class ReportForm(NamedTuple):
    """A kind of report, and what is known of its objects."""

    watched: Watched
    followed: FollowedReports
    stored: StoredReports

    @property
    def api_version(self) -> str:
        return self.watched.api_version(self.watched.versions[0])

    @property
    def usable(self) -> bool:
        """True if the cluster has the kind, and Berth may read it."""
        return self.followed.healthy and not self.followed.absent

    def path(self, key: ReportKey) -> str:
        """Return the URL path of one report."""
        return self.watched.path(self.watched.versions[0], *key)


def choice(forms: Sequence[ReportForm]) -> tuple[ReportForm | None, str]:
    """Return the first form that can be used, if there is one, and what to log of it."""
    usable = next((form for form in forms if form.usable), None)
    if usable is not None:
        return usable, f"reports are written as {usable.watched.resource}"
    if all(form.followed.absent for form in forms):
        return None, f"no report CRD is installed: install those of OpenReports (openreports.io); {GOES_ON}"
    return None, f"Berth may not read reports: {GIVE_RIGHTS}; {GOES_ON}"
