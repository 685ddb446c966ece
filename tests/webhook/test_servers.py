"""A socket that listens, and room for connections."""

from __future__ import annotations

import resource
import socket
import subprocess
import sys

import pytest

from tests.webhook.server import ROOT
from webhook.limits import HEALTH_CONNECTIONS
from webhook.servers import SPARE_FILES, StartError, listen, make_room


def test_a_free_port_is_taken() -> None:
    """Port 0 is any."""
    with listen("--listen", "127.0.0.1", 0) as listener:
        assert listener.getsockname()[1] > 0


@pytest.mark.parametrize("option", ["--listen", "--health"])
def test_a_port_in_use_names_the_flag(option: str) -> None:
    """What to type is the flag that was wrong."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(StartError, match=f"Address already in use; give another {option} HOST:PORT"):
            listen(option, "127.0.0.1", port)


def test_room_is_made_where_the_system_allows_it() -> None:
    """The soft limit is raised as far as it goes, in a process of its own: handshakes that go on need files too."""
    code = (
        "import resource as r; from webhook.servers import make_room; hard = r.getrlimit(r.RLIMIT_NOFILE)[1];"
        "r.setrlimit(r.RLIMIT_NOFILE, (256, hard)); make_room(500); print(r.getrlimit(r.RLIMIT_NOFILE)[0] == hard)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


def test_room_that_the_system_does_not_give_is_an_error() -> None:
    """It says how many there can be."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard == resource.RLIM_INFINITY:
        pytest.skip("no limit here")
    with pytest.raises(StartError, match=f"give --connections {hard - HEALTH_CONNECTIONS - SPARE_FILES}, or raise the limit"):
        make_room(hard)
