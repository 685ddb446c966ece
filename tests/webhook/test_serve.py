"""The server as a process: a real TLS client, signals, and one line with exit code 2 when it cannot start."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from certs.authority import issue, make_ca

ROOT = Path(__file__).parent.parent.parent
REVIEW = (ROOT / "tests" / "reviews" / "pods-create-train-llama.json").read_bytes()
COMMAND = [sys.executable, "-m", "cli.main", "serve", "--platforms", "karpenter-aws"]


@contextmanager
def serving(folder: Path, listen: str = "127.0.0.1:0") -> Iterator[tuple[subprocess.Popen[str], int]]:
    """``berth serve`` with its port, killed if the test did not stop it."""
    command = [*COMMAND, "--self-signed", str(folder), "--listen", listen]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            assert line.startswith("serving https://"), process.communicate()[1]
            yield process, int(line.split(" ")[1].rpartition(":")[2])
        finally:
            process.kill()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Path]]:
    """A running server's port and the CA file that its ready line names."""
    folder = tmp_path_factory.mktemp("tls")
    with serving(folder) as (_, port):
        yield port, folder / "ca.crt"


def connection(server: tuple[int, Path], host: str = "127.0.0.1") -> http.client.HTTPSConnection:
    port, ca = server
    return http.client.HTTPSConnection(host, port, context=ssl.create_default_context(cafile=str(ca)), timeout=10)


def test_a_verified_client_gets_an_answer(server: tuple[int, Path]) -> None:
    """Over TLS with the CA of the folder, a recorded review is allowed; the answer names no server software."""
    client = connection(server)
    client.request("POST", "/mutate?timeout=5s", REVIEW, {"Content-Type": "application/json"})
    answer = client.getresponse()
    assert answer.status == 200
    assert json.loads(answer.read())["response"]["allowed"] is True
    assert answer.getheader("server") is None
    client.close()


def test_a_connection_serves_many_reviews(server: tuple[int, Path]) -> None:
    """The API server keeps its connections: so do we, also after an answer that is an error."""
    client = connection(server)
    client.connect()
    socket_before = client.sock
    for body in (REVIEW, b"[]", REVIEW):
        client.request("POST", "/validate", body, {"Content-Type": "application/json"})
        client.getresponse().read()
    assert client.sock is socket_before
    client.close()


def test_the_protocol_is_http_1_1_over_modern_tls(server: tuple[int, Path]) -> None:
    """A client that offers HTTP/2 is told HTTP/1.1; TLS is 1.2 or later."""
    port, ca = server
    context = ssl.create_default_context(cafile=str(ca))
    context.set_alpn_protocols(["h2", "http/1.1"])
    with socket.create_connection(("127.0.0.1", port)) as raw, context.wrap_socket(raw, server_hostname="localhost") as tls:
        assert (tls.selected_alpn_protocol(), tls.version()) == ("http/1.1", "TLSv1.3")


def test_a_client_without_the_ca_is_not_fooled(server: tuple[int, Path]) -> None:
    """The certificate is ours alone: the system's authorities do not know it."""
    client = http.client.HTTPSConnection("127.0.0.1", server[0], context=ssl.create_default_context(), timeout=10)
    with pytest.raises(ssl.SSLCertVerificationError):
        client.connect()


def test_a_websocket_is_not_opened(server: tuple[int, Path]) -> None:
    """An upgrade is answered as the plain request it also is."""
    client = connection(server)
    client.request("GET", "/mutate", headers={"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"})
    answer = client.getresponse()
    answer.read()
    assert answer.status == 405
    client.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_cleanly(number: signal.Signals, tmp_path: Path) -> None:
    """SIGTERM and Ctrl-C end with exit code 0 and without a traceback, an idle connection notwithstanding."""
    with serving(tmp_path) as (process, port):
        client = connection((port, tmp_path / "ca.crt"))
        client.connect()
        process.send_signal(number)
        _, said = process.communicate(timeout=10)
        client.close()
    assert process.returncode == 0
    assert "Traceback" not in said


def test_a_restart_keeps_the_ca(tmp_path: Path) -> None:
    """A caller that trusts the folder's CA goes on trusting it."""
    cas = []
    for _ in range(2):
        with serving(tmp_path):
            cas.append((tmp_path / "ca.crt").read_bytes())
    assert cas[0] == cas[1]


def refused(*options: str) -> str:
    """The one line that ``berth serve`` says when it cannot start."""
    done = subprocess.run([*COMMAND, *options], cwd=ROOT, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def test_a_port_in_use_is_one_line(tmp_path: Path) -> None:
    """The address, the reason and what to type."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = refused("--self-signed", str(tmp_path), "--listen", f"127.0.0.1:{port}")
    assert line == f"berth: cannot listen on 127.0.0.1 port {port}: Address already in use; give another --listen HOST:PORT\n"
    assert list(tmp_path.iterdir()) == []


def test_a_bad_key_is_one_line(tmp_path: Path) -> None:
    """A key that does not belong to its certificate is named."""
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    now = datetime.now(UTC)
    ca = make_ca(now)
    certificate.write_bytes(issue(ca, ["localhost"], now).certificate_pem)
    key.write_bytes(ca.key_pem)
    line = refused("--tls-cert", str(certificate), "--tls-key", str(key), "--listen", "127.0.0.1:0")
    assert line.startswith(f"berth: {key}: this key does not belong")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        pytest.param([], "or --self-signed DIR", id="no-tls"),
        pytest.param(["--self-signed", "x", "--listen", "8443"], "is not HOST:PORT", id="bad-address"),
        pytest.param(["--self-signed", "x", "--policies", "nowhere"], "nowhere: there is no such file", id="no-policies"),
        pytest.param(["--self-signed", "x", "--platforms", "gkee"], 'did you mean "gke"?', id="platform"),
        pytest.param(["--self-signed", "x", "--listen", "no.such.host.invalid:1"], "cannot listen on no.such.host.invalid", id="host"),
    ],
)
def test_bad_input_is_one_line(options: list[str], said: str) -> None:
    """Nothing is served, nothing is written, and the line says what to change."""
    assert said in refused(*options)
    assert not (ROOT / "x").exists()
