"""Where the server is and as whom it is called; what is wrong is said with what to type."""

from __future__ import annotations

import asyncio
import importlib
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from certs.authority import make_ca
from cluster.client import exec_plugins
from cluster.client.access import Access, LoadedAccess, proxy_of
from cluster.client.errors import AccessError
from tests.support.cluster.fake_api import kubeconfig

SERVER = "https://10.0.0.1:6443"


def load(access: Access) -> LoadedAccess:
    return asyncio.run(access.load())


def changed(file: Path, part: str, **fields: Any) -> str:
    value = yaml.safe_load(file.read_text())
    value[f"{part}s"][0][part] |= fields
    file.write_text(yaml.safe_dump(value))
    return str(file)


def test_a_kubeconfig_gives_address_token_and_namespace(tmp_path: Path) -> None:
    """Of its current context."""
    loaded = load(Access(str(kubeconfig(tmp_path, f"{SERVER}/", "abc"))))
    assert (loaded.server, loaded.authorization, loaded.namespace) == (SERVER, "Bearer abc", "here")


def test_a_token_file_is_read_without_the_end_of_its_line(tmp_path: Path) -> None:
    """A newline in a header would be rejected."""
    (tmp_path / "token").write_text("abc\n")
    file = changed(kubeconfig(tmp_path, SERVER), "user", tokenFile="token")
    assert load(Access(file)).authorization == "Bearer abc"


def test_an_exec_plugin_is_asked(tmp_path: Path) -> None:
    """As clouds have it."""
    credential = '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "from-plugin"}}'
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": sys.executable, "args": ["-c", f"print({credential!r})"]}
    file = changed(kubeconfig(tmp_path, SERVER), "user", exec=plugin)
    assert load(Access(file)).authorization == "Bearer from-plugin"


def test_another_certificate_authority_is_another_identity_and_another_token_is_not(tmp_path: Path) -> None:
    """Connections are made anew only for certificates, by what is in their files."""
    ca = tmp_path / "ca.crt"
    identities = []
    for token, make in (("a", True), ("b", False), ("b", True)):
        if make:
            ca.write_bytes(certificate())
        identities.append(load(Access(str(kubeconfig(tmp_path, SERVER, token, ca)))).identity)
    assert identities[0] == identities[1] != identities[2]


def test_a_pod_gives_all_of_it(tmp_path: Path) -> None:
    """Address from the environment, the rest from its mounted folder."""
    loaded = load(pod(tmp_path))
    assert (loaded.server, loaded.authorization, loaded.namespace) == ("https://[fd00::1]:443", "Bearer abc", "berth-system")


@pytest.mark.parametrize(
    ("missing", "reason"),
    [
        ("token", "{folder}/token can't be read: No such file or directory"),
        ("ca.crt", "{folder}/ca.crt can't be read: No such file or directory"),
        ("environment", "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set"),
        ("text of token", "{folder}/token is empty"),
        ("text of ca.crt", "{folder}/ca.crt is empty"),
    ],
)
def test_a_pod_that_lacks_something_is_told(missing: str, reason: str, tmp_path: Path) -> None:
    """The message names the variable or file, and what to type."""
    access = pod(tmp_path)
    if missing == "environment":
        access = Access(None, mounted=tmp_path, environment={})
    elif missing.startswith("text of "):
        (tmp_path / missing.removeprefix("text of ")).write_text("\n")
    else:
        (tmp_path / missing).unlink()
    with pytest.raises(AccessError) as raised:
        load(access)
    advice = "--kubeconfig FILE outside a cluster; in one, automountServiceAccountToken: true"
    assert str(raised.value) == f"the service account of this pod can't be used: {reason.format(folder=tmp_path)}; try {advice}"


def test_the_identity_of_a_pod_goes_by_the_address_and_the_ca(tmp_path: Path) -> None:
    """Another token needs no new connections; another CA does."""
    access, identities = pod(tmp_path), []
    for file, text in (("token", b"abc"), ("token", b"def"), ("ca.crt", certificate())):
        (tmp_path / file).write_bytes(text)
        identities.append(load(access).identity)
    assert identities[0] == identities[1] != identities[2]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "x: [",
        "apiVersion: v1\nkind: Config\n",
        "clusters: 5\ncurrent-context: a",
        "a\0b",
        "clusters: [{name: c}]\ncontexts: [{}]",
    ],
)
def test_a_file_that_is_no_kubeconfig_is_told(text: str, tmp_path: Path) -> None:
    """In one sentence, whatever the form."""
    file = tmp_path / "kubeconfig"
    file.write_text(text)
    with pytest.raises(AccessError, match=f"kubeconfig {file} can't be used: .*; try kubectl --kubeconfig {file} get namespaces"):
        load(Access(str(file)))


def test_what_is_missing_in_a_kubeconfig_is_told(tmp_path: Path) -> None:
    """The file; its context; any credentials; the certificate that it names; a plugin that fails."""
    file = str(kubeconfig(tmp_path, SERVER, "abc"))
    with pytest.raises(AccessError, match="there is no kubeconfig"):
        load(Access(str(tmp_path / "nothing")))
    with pytest.raises(AccessError, match=r"context other can't be used: .*--context other get namespaces"):
        load(Access(file, "other"))
    with pytest.raises(AccessError, match="no token and no client certificate"):
        load(Access(str(kubeconfig(tmp_path, SERVER))))
    with pytest.raises(AccessError, match="File does not exist"):
        load(Access(str(kubeconfig(tmp_path, SERVER, "abc", tmp_path / "nothing.crt"))))
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": sys.executable, "args": ["-c", "raise SystemExit(3)"]}
    with pytest.raises(AccessError, match="no token and no client certificate"):
        load(Access(changed(kubeconfig(tmp_path, SERVER), "user", exec=plugin)))


def pod(folder: Path) -> Access:
    (folder / "token").write_text("abc\n")
    (folder / "ca.crt").write_bytes(certificate())
    (folder / "namespace").write_text("berth-system\n")
    return Access(None, mounted=folder, environment={"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"})


def certificate() -> bytes:
    """Of a new authority."""
    return make_ca(datetime.now(UTC)).certificate_pem


def test_the_event_loop_goes_on_while_kubernetes_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package that reads kubeconfigs takes 0.2 s to import, which a thread of its own does."""
    threads: list[int] = []

    def imported(name: str) -> object:
        threads.append(threading.get_ident())
        return exec_plugins

    monkeypatch.setattr(importlib, "import_module", imported)
    asyncio.run(Access(str(kubeconfig(tmp_path, SERVER, "abc"))).load())
    assert threads
    assert threading.get_ident() not in threads


PROXY = "http://proxy:3128"


@pytest.mark.parametrize(
    ("server", "without", "wanted"),
    [
        ("https://10.96.0.1:443", "", PROXY),
        ("https://10.96.0.1:443", "10.0.0.0/8", None),
        ("https://10.96.0.1:443", "192.168.0.0/16, 10.96.0.1", None),
        ("https://[fd00::1]:443", "fd00::/8", None),
        ("https://api.eks.example.com", ".example.com", None),
        ("https://api.eks.example.com", "example.com", None),
        ("https://api.eks.example.com", "ample.com,example.org/8", PROXY),
        ("https://api.eks.example.com:6443", "api.eks.example.com:443", PROXY),
        ("https://api.eks.example.com:6443", "API.eks.example.com:6443", None),
        ("https://api.eks.example.com", "*", None),
        ("https://127.0.0.1:6443", "", None),
        ("https://localhost:6443", "", None),
        ("http://10.0.0.1:8001", "", None),
    ],
)
def test_the_proxy_is_the_environments_but_for_what_it_excepts(
    server: str, without: str, wanted: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HTTPS_PROXY for https; NO_PROXY by host, domain, port and network; never for this machine itself."""
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTPS_PROXY", PROXY)
    if without:
        monkeypatch.setenv("NO_PROXY", without)
    assert proxy_of(server) == wanted
