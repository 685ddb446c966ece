"""The dashboards of deploy/monitoring as files: `make generate` writes them (``tests.generated``)."""

from __future__ import annotations

import json
from typing import Any

from tests.deploy.monitoring import overview, replica_health

DASHBOARDS = (overview.DASHBOARD, replica_health.DASHBOARD)


def files() -> dict[str, str]:
    """File name -> JSON."""
    return {f"{one.uid}.json": json.dumps(one.json(), indent=2, ensure_ascii=False) + "\n" for one in DASHBOARDS}


def panels() -> list[tuple[str, dict[str, Any]]]:
    """(uid of the dashboard, panel) of all that ask for something."""
    loaded = [json.loads(text) for text in files().values()]
    return [(board["uid"], panel) for board in loaded for panel in board["panels"] if panel["type"] != "row"]
