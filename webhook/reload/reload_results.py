"""The results of reloading policies, objects and certificates, for ``/readyz`` and ``/metrics``."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from policies.state.objects import Key, ObjectEntry
from telemetry.exposition import family
from telemetry.watch_metrics import Watching, nothing
from webhook.admission.app import AdmissionState
from webhook.reload.registration_check import Registered


@dataclass(slots=True, kw_only=True)
class ReloadResults:
    """The last result of each watcher, read by the second port. Times are Unix seconds."""

    admission: AdmissionState
    certificate_expires: float = 0
    certificate_rejected_at: float = 0
    """When the files on disk were found wrong; 0: they are what is served."""
    certificate_waiting: Callable[[], str] = lambda: ""
    """Returns what callers wait for before they can verify what is served; "" if nothing."""
    verifiers_ahead: Callable[[], float] = lambda: 0.0
    """Returns by how many seconds the clock of those who verify the certificate is ahead of this node's."""
    files_checked_at: dict[str, float] = field(default_factory=dict)
    """Files that are followed (``policies``, ``certificate``) -> when the last check of them ended."""
    loaded_at: float = 0
    """When the policies in force were read."""
    rejected_at: float = 0
    """When a newer set was rejected; 0: the policies in force are the newest."""
    watching: Callable[[], Iterator[Watching]] = nothing
    """The kinds that are followed in a cluster; none where policies are files."""
    leading: Callable[[], bool] = lambda: False
    """Returns whether this replica writes statuses."""
    registered: Registered = field(default_factory=Registered)
    """The result of ``registration_check``: whether the API server calls for all that is judged, as far as
    known."""
    entries: Mapping[Key, ObjectEntry] = field(default_factory=dict)
    """Berth's objects in the cluster, as far as they are known."""

    def files_checked(self, files: str) -> None:
        """Record that a check of files ended, with whatever result: it may never end where a mount hangs."""
        self.files_checked_at[files] = time.time()


def collect_file_checks(checked_at: Mapping[str, float]) -> Iterator[Metric]:
    """Yield the metric of followed files, of ``ReloadResults.files_checked_at``; without a sample where no files are followed."""
    text = "When the last check of files for changes ended, in seconds since 1970."
    samples = (([files], at) for files, at in checked_at.items())
    yield family(GaugeMetricFamily, "berth_files_last_check_timestamp_seconds", text, ["files"], samples)
