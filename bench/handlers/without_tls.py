"""``berth serve`` without TLS on the port of the calls, to tell what TLS costs: ``python -m bench.handlers.without_tls serve ...``."""

from __future__ import annotations

import sys
from typing import Any

import webhook.serve
from cli.main import main
from server.server import Server


def plain(app: Any, context: object, *rest: Any, **more: Any) -> Server:
    """The server of the calls, as that of health."""
    return Server(app, None, *rest, **more)


if __name__ == "__main__":
    vars(webhook.serve)["Server"] = plain
    sys.exit(main())
