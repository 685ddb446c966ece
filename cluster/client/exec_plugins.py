"""Credentials of a kubeconfig by an exec plugin: https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins

The official loader only logs that a plugin failed, and goes on without credentials; one that hangs lives on when it is given up.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Mapping
from typing import Any

from kubernetes.aio.config.kube_config import FileOrData, KubeConfigLoader, KubeConfigMerger

from cluster.client.errors import SHOWN, AccessError

ENDS = 1.0
"""Seconds in which the output of a plugin that was killed ends."""


async def load_kube_config(path: str, context: str | None, configuration: Any) -> PluginLoader:
    """Load a kubeconfig, or several as in KUBECONFIG, into a configuration, and return its loader.

    Raises AccessError where a plugin gives no credentials, and what the loader raises.
    """
    loader = PluginLoader(config_dict=KubeConfigMerger(path).config, active_context=context, config_base_path=None)
    await loader.load_and_set(configuration)
    return loader


class PluginLoader(KubeConfigLoader):  # type: ignore[misc]
    """The official loader, with plugins that end."""

    async def load_from_exec_plugin(self) -> bool:
        """Overrides the method of the official loader. Raises AccessError."""
        plugin: dict[str, Any] = self._user["exec"].value
        status = await _status(plugin)
        if isinstance(status.get("token"), str) and status["token"]:
            self.token = f"Bearer {status['token']}"
        elif status.get("clientCertificateData") and status.get("clientKeyData"):
            self.cert_file, self.key_file = (self._file(status, name) for name in ("clientCertificateData", "clientKeyData"))
        else:
            raise _failed(plugin, "printed a status without them")
        return True

    def _file(self, status: Mapping[str, Any], name: str) -> str:
        base = self._get_base_path(self._cluster.path)
        data = FileOrData(
            status, None, data_key_name=name, file_base_path=base, base64_file_content=False, temp_file_path=self._temp_file_path
        )
        return str(data.as_file())


async def _status(plugin: dict[str, Any]) -> dict[str, Any]:
    """Return the ``status`` of the ExecCredential that the plugin prints. Raises AccessError."""
    output = await _output(plugin)
    try:
        credential = json.loads(output)
    except ValueError:
        raise _failed(plugin, "printed no JSON") from None
    version, status = plugin.get("apiVersion"), credential.get("status") if isinstance(credential, dict) else None
    if not isinstance(status, dict):
        raise _failed(plugin, "printed no ExecCredential with a status")
    if credential.get("apiVersion") != version:
        raise _failed(plugin, f"printed apiVersion {credential.get('apiVersion')}; the kubeconfig has {version}")
    return status


async def _output(plugin: dict[str, Any]) -> bytes:
    """Run the plugin in a session of its own and return what it prints. If it is given up, it is killed with its children."""
    environment = dict(os.environ) | {str(entry["name"]): str(entry["value"]) for entry in plugin.get("env") or ()}
    info = {"apiVersion": plugin.get("apiVersion"), "kind": "ExecCredential", "spec": {"interactive": False}}
    environment["KUBERNETES_EXEC_INFO"] = json.dumps(info)
    pipe = asyncio.subprocess.PIPE
    words = map(str, (plugin.get("command") or "", *(plugin.get("args") or ())))
    try:
        process = await asyncio.create_subprocess_exec(
            *words, env=environment, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe, start_new_session=True
        )
    except (OSError, ValueError) as error:
        raise _failed(plugin, f"can't be run: {getattr(error, 'strerror', None) or error}") from None
    try:
        output, errors = await process.communicate()
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ENDS):
                await process.communicate()
        process._transport.close()  # type: ignore[attr-defined]  # where a child that has left the session holds its output
        raise
    if process.returncode:
        text = " ".join(errors.decode(errors="replace").split())[-SHOWN:]
        raise _failed(plugin, f"ended with exit code {process.returncode}{f': {text}' if text else ''}")
    return output


def _failed(plugin: dict[str, Any], reason: str) -> AccessError:
    hint = " ".join(str(plugin.get("installHint") or "").split())[:SHOWN]
    return AccessError(
        f"the exec plugin {plugin.get('command')} gives no token and no client certificate: it {reason}{f'; {hint}' if hint else ''}"
    )
