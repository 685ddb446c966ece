"""The server as a process: start, readiness, policies that change, signals, and one line with exit code 2 when it cannot start."""

from __future__ import annotations

import http.client
import os
import shutil
import signal
import socket
import ssl
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from certs.authority import issue, make_ca
from cli.main import main
from tests.support import certificate_files
from tests.support.calls.server_process import COMMAND, JSON, ROOT, Running, logged, running, serving, started, until
from tests.testcluster.calls import PATIENCE, answer_of

REVIEW = (ROOT / "tests" / "reviews" / "pods-create-train-llama.json").read_bytes()
DEFAULT = ROOT / "policies" / "library" / "berth-default.yaml"
DENYING = """\
apiVersion: berth.dev/v1alpha1
kind: ClusterGPUPolicy
metadata: {name: none}
spec: {mode: Enforce, require: {gpusPerPod: {max: 1}}}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server with the default policy."""
    with serving(tmp_path_factory.mktemp("server"), "--platforms", "karpenter-aws") as it:
        yield it


def test_a_verified_client_gets_an_answer(server: Running) -> None:
    """Over TLS with the CA of the folder, a recorded review is allowed; the answer names no server software."""
    answer = server.post("/mutate?timeout=5s", REVIEW)
    assert (answer.status, answer.response["allowed"]) == (200, True)
    assert "server" not in answer.headers


def test_a_connection_serves_many_reviews(server: Running) -> None:
    """The API server keeps its connections: so do we, also after an answer that is an error."""
    client = server.connection()
    client.connect()
    socket_before = client.sock
    for body in (REVIEW, b"[]", REVIEW):
        client.request("POST", "/validate", body, JSON)
        answer_of(client)
    assert client.sock is socket_before
    client.close()


def test_the_protocol_is_http_1_1_over_modern_tls(server: Running) -> None:
    """A client that offers HTTP/2 is told HTTP/1.1; TLS is 1.2 or later."""
    context = ssl.create_default_context(cafile=str(server.ca))
    context.set_alpn_protocols(["h2", "http/1.1"])
    with socket.create_connection(("127.0.0.1", server.port)) as raw, context.wrap_socket(raw, server_hostname="localhost") as tls:
        assert (tls.selected_alpn_protocol(), tls.version()) == ("http/1.1", "TLSv1.3")


def test_a_client_without_the_ca_is_not_fooled(server: Running) -> None:
    """The certificate is ours alone: the system's authorities do not know it."""
    client = http.client.HTTPSConnection("127.0.0.1", server.port, context=ssl.create_default_context(), timeout=PATIENCE)
    with pytest.raises(ssl.SSLCertVerificationError):
        client.connect()


def test_the_second_port_says_what_acts(server: Running) -> None:
    """Alive, ready with the policies and the certificate named, and metrics; nothing of the calls is served there."""
    assert server.health("/livez").body == b"alive\n"
    ready = server.health("/readyz")
    assert ready.status == 200
    assert b"[+] policies: 1 active, max mode Enforce" in ready.body
    assert b"[+] certificate: valid until 20" in ready.body
    assert b"berth_requests_total" in server.health("/metrics").body
    assert server.health("/mutate").status == 404


def test_the_first_port_is_for_calls_alone(server: Running) -> None:
    """What a caller of the webhooks can reach tells nothing about the process."""
    assert [server.post(path, b"", method="GET").status for path in ("/livez", "/readyz", "/metrics")] == [404, 404, 404]


def test_until_the_policies_are_in_nothing_is_allowed(tmp_path: Path) -> None:
    """Not ready, and a call gets 503 with Retry-After on a connection that closes; once they are in, it is judged."""
    pipe = tmp_path / "policies.yaml"
    os.mkfifo(pipe)  # to read it takes until somebody writes
    with started(tmp_path, "--policies", str(pipe)) as (process, log):
        event = until(lambda: next((e for e in logged(log) if e["event"] == "listening"), None), "the ports")
        server = running(process, log, event)
        ready = until(lambda: server.health("/readyz"), "an answer")
        assert (ready.status, b"[-] policies: not loaded yet" in ready.body) == (503, True)
        assert server.health("/livez").status == 200
        for path in ("/mutate", "/validate", "/advise"):
            early = server.post(path, REVIEW)
            assert (early.status, early.headers["retry-after"], early.headers["connection"]) == (503, "1", "close")
        pipe.write_text(DENYING)
        server.event("serving")
        assert server.post("/mutate", REVIEW).response["allowed"] is False
        assert server.health("/readyz").status == 200


def test_a_server_that_waits_for_policies_can_be_stopped(tmp_path: Path) -> None:
    """A file that never answers does not keep the process."""
    pipe = tmp_path / "policies.yaml"
    os.mkfifo(pipe)
    with started(tmp_path, "--policies", str(pipe)) as (process, log):
        until(lambda: [e for e in logged(log) if e["event"] == "listening"], "the ports")
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0


def test_policies_are_followed(tmp_path: Path) -> None:
    """A changed file decides without a restart; a wrong one is denied with every error while the last good set acts."""
    folder = tmp_path / "policies"
    folder.mkdir()
    shutil.copy(DEFAULT, folder)
    with serving(tmp_path, "--policies", str(folder)) as server:
        assert server.post("/mutate", REVIEW).response["allowed"] is True
        (folder / "more.yaml").write_text(DENYING)
        loaded = server.event("policies_loaded", 2)
        assert (loaded["policies"], loaded["added"], loaded["removed"]) == (2, ["ClusterGPUPolicy/none"], [])
        assert server.post("/mutate", REVIEW).response["allowed"] is False
        (folder / "more.yaml").write_text(DENYING.replace("max: 1", "max: one").replace("Enforce", "Enforcing"))
        errors = server.event("policies_rejected")["errors"]
        assert len([error for error in errors if "more.yaml, spec." in error]) == len(errors) == 2
        assert server.post("/mutate", REVIEW).response["allowed"] is False
        assert b"the last valid set is active" in server.health("/readyz").body
        assert b"berth_snapshot_last_reload_successful 0.0" in server.health("/metrics").body
        (folder / "more.yaml").unlink()
        assert server.event("policies_loaded", 3)["policies"] == 1
        assert server.post("/mutate", REVIEW).response["allowed"] is True
        assert b"denied" not in server.health("/readyz").body


def test_a_configmap_that_is_swapped_is_followed(tmp_path: Path) -> None:
    """A kubelet writes a folder beside and turns one link: the new files are read."""
    for version, text in (("..1", DEFAULT.read_text()), ("..2", DENYING)):
        (tmp_path / version).mkdir()
        (tmp_path / version / "p.yaml").write_text(text)
    (tmp_path / "..data").symlink_to("..1")
    (tmp_path / "p.yaml").symlink_to("..data/p.yaml")
    with serving(tmp_path, "--policies", str(tmp_path / "p.yaml")) as server:
        (tmp_path / "..new").symlink_to("..2")
        (tmp_path / "..new").rename(tmp_path / "..data")
        server.event("policies_loaded", 2)
        assert server.post("/mutate", REVIEW).response["allowed"] is False


def test_a_certificate_is_followed(tmp_path: Path) -> None:
    """New files are served without a restart; a key that does not belong is denied, and the last good pair goes on."""
    certificate_files.serving_files(tmp_path, ["127.0.0.1"])
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"

    def served(server: Running) -> str:
        return ssl.get_server_certificate(("127.0.0.1", server.port), ca_certs=str(tmp_path / "ca.crt"))

    with serving(tmp_path, "--tls-cert", str(certificate), "--tls-key", str(key)) as server:
        first = served(server)
        certificate_files.renew(tmp_path, ["127.0.0.1"])
        until(lambda: served(server) != first, "the new certificate")
        second = served(server)
        key.write_bytes((tmp_path / "ca.key").read_bytes())
        assert "does not belong" in server.event("certificate_rejected")["error"]
        assert served(server) == second
        ready = server.health("/readyz")
        assert (ready.status, b"the certificate on disk was rejected" in ready.body) == (200, True)
        assert b"berth_certificate_last_reload_successful 0.0" in server.health("/metrics").body
        certificate_files.renew(tmp_path, ["127.0.0.1"])
        until(lambda: served(server) != second, "the next good one")
        assert b"berth_certificate_last_reload_successful 1.0" in server.health("/metrics").body


def test_policies_that_hang_hold_up_no_certificate(tmp_path: Path) -> None:
    """While a file of policies does not answer, a new certificate is served and calls are judged by the last good set."""
    policy, tls = tmp_path / "policy.yaml", tmp_path / "tls"
    shutil.copy(DEFAULT, policy)
    certificate_files.serving_files(tls, ["127.0.0.1"])
    files = ["--tls-cert", str(tls / "tls.crt"), "--tls-key", str(tls / "tls.key")]
    with serving(tmp_path, "--policies", str(policy), *files) as server:
        made = len(server.events("certificate"))
        policy.unlink()
        os.mkfifo(policy)
        writer = os.open(policy, os.O_WRONLY)  # returns once the server reads: from here on it waits for us
        certificate_files.renew(tls, ["127.0.0.1"])
        server.event("certificate", made + 1)
        assert server.post("/mutate", REVIEW).response["allowed"] is True
        os.close(writer)


def test_sigterm_is_a_lame_duck_first(tmp_path: Path) -> None:
    """Not ready any more, every answer closes its connection, and then the process ends with 0."""
    with serving(tmp_path, "--lame-duck", "60") as server:
        idle = server.connection()
        idle.connect()
        server.process.send_signal(signal.SIGTERM)
        server.event("stopping")
        ready = server.health("/readyz")
        assert (ready.status, b"[-] stopping" in ready.body) == (503, True)
        answer = server.post("/mutate", REVIEW)
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        assert server.stop(signal.SIGTERM) == 0  # the second one ends the wait
        assert b"Traceback" not in server.log.read_bytes()
        idle.close()


def test_sighup_changes_nothing(server: Running) -> None:
    """It asks for a reload, which goes on all the time."""
    server.process.send_signal(signal.SIGHUP)
    server.event("reload")
    assert server.post("/mutate", REVIEW).status == 200


def test_ctrl_c_stops_at_once(tmp_path: Path) -> None:
    """Nobody at a terminal waits for endpoints to be withdrawn."""
    with serving(tmp_path, "--lame-duck", "60") as server:
        client = server.connection()
        client.connect()
        assert server.stop(signal.SIGINT) == 0
        assert b"Traceback" not in server.log.read_bytes()
        client.close()


def denied(*options: str) -> str:
    """What ``berth serve`` says when it cannot start: lines for a person, and exit code 2."""
    done = subprocess.run([*COMMAND, *options], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    return "".join(line for line in done.stderr.splitlines(keepends=True) if not line.startswith("{"))


@pytest.mark.parametrize("option", ["--listen", "--health"])
def test_a_port_in_use_is_one_line(option: str, tmp_path: Path) -> None:
    """The address, the reason and what to type; no certificate was made."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        message = denied("--self-signed", str(tmp_path), "--listen", "127.0.0.1:0", option, f"127.0.0.1:{port}")
    assert message == f"berth: cannot listen on 127.0.0.1 port {port}: Address already in use; give another {option} HOST:PORT\n"
    assert list(tmp_path.iterdir()) == []


def pair(folder: Path, *, life_ended: bool = False) -> tuple[Path, Path]:
    """A certificate and its key as files."""
    now = datetime.now(UTC) if not life_ended else datetime(2020, 1, 1, tzinfo=UTC)
    made = issue(make_ca(now), ["localhost"], now)
    (folder / "tls.crt").write_bytes(made.certificate_pem)
    (folder / "tls.key").write_bytes(made.key_pem)
    return folder / "tls.crt", folder / "tls.key"


def denied_pair(certificate: Path, key: Path) -> str:
    message = denied("--tls-cert", str(certificate), "--tls-key", str(key), "--listen", "127.0.0.1:0")
    assert message.count("\n") == 1
    return message


def test_a_key_of_another_certificate_is_one_line(tmp_path: Path) -> None:
    """The key's file is named."""
    certificate, key = pair(tmp_path)
    key.write_bytes(make_ca(datetime.now(UTC)).key_pem)
    assert denied_pair(certificate, key).startswith(f"berth: {key}: this key does not belong")


def test_an_unreadable_key_is_one_line(tmp_path: Path) -> None:
    """A folder in place of the key: no user can read that."""
    certificate, key = pair(tmp_path)
    key.unlink()
    key.mkdir()
    assert denied_pair(certificate, key).startswith(f"berth: {key}: cannot be read")


def test_an_expired_certificate_is_one_line(tmp_path: Path) -> None:
    """Every caller would deny it: the day it ended, and what to do."""
    message = denied_pair(*pair(tmp_path, life_ended=True))
    assert "expired on 2020-01-08" in message


def test_a_wrong_policy_lists_every_error(tmp_path: Path) -> None:
    """All that is wrong in all files, each with its place; the server does not start."""
    (tmp_path / "a.yaml").write_text(DENYING.replace("max: 1", "max: one"))
    (tmp_path / "b.yaml").write_text(DENYING.replace("none", "b").replace("Enforce", "Enforced").replace("gpusPer", "gpuPer"))
    message = denied("--self-signed", str(tmp_path / "tls"), "--policies", str(tmp_path), "--listen", "127.0.0.1:0")
    assert message.count("\n") == 3
    assert message.count("a.yaml") == 1
    assert message.count("b.yaml") == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param([], "or --self-signed DIR", id="no-tls"),
        pytest.param(["--self-signed", "x", "--listen", "8443"], "is not HOST:PORT", id="bad-address"),
        pytest.param(["--self-signed", "x", "--health", "8080"], '--health "8080" is not HOST:PORT', id="bad-health-address"),
        pytest.param(["--self-signed", "x", "--listen", "no.such.host.invalid:1"], "cannot listen on no.such.host.invalid", id="host"),
        pytest.param(["--self-signed", "x", "--keep-alive", "60"], "The API server keeps idle connections for 90 s", id="keep-alive"),
    ],
)
def test_wrong_options_are_one_line(options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is served, nothing is written, and the line says what to change."""
    assert main(["serve", "--health", "127.0.0.1:0", *options]) == 2
    out, line = capsys.readouterr()
    assert out == ""
    assert message in line
    assert line.count("\n") == 1
    assert not (ROOT / "x").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param(["--policies", "nowhere"], "nowhere: there is no such file", id="no-policies"),
        pytest.param(["--platforms", "gkee"], 'did you mean "gke"?', id="platform"),
    ],
)
def test_wrong_sources_are_one_line(options: list[str], message: str, tmp_path: Path) -> None:
    """What can't be read or is not known, found when the policies are."""
    assert message in denied("--self-signed", str(tmp_path), "--listen", "127.0.0.1:0", *options)
