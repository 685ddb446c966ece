"""Clients that handshake until standard input ends: ``python -m tests.certs.calls PORT CA CLIENTS``; one JSON object at the end.

By turns with TLS 1.2 and 1.3, by name and by IP address (which sends no SNI). Each checks the CA, the name, and that an echo comes back.
"""

from __future__ import annotations

import json
import socket
import ssl
import sys
import threading
from collections import Counter
from itertools import cycle, islice

from tests.certs.pairs import serial_of
from tests.testcluster.calls import PATIENCE

VERSIONS = (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)
HOSTS = ("localhost", "127.0.0.1")
KINDS = [(version, host) for version in VERSIONS for host in HOSTS]


def context(ca: str, version: ssl.TLSVersion) -> ssl.SSLContext:
    made = ssl.create_default_context(cafile=ca)
    made.minimum_version = made.maximum_version = version
    return made


def connect(port: int, made: ssl.SSLContext, host: str) -> ssl.SSLSocket:
    """The established connection. Raises OSError, of which ssl.SSLError is one."""
    raw = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
    try:
        return made.wrap_socket(raw, server_hostname=host)
    except BaseException:
        raw.close()
        raise


def echo(connection: ssl.SSLSocket) -> bool:
    connection.sendall(b"ping")
    return connection.recv(4) == b"ping"


class Client:
    """One of many: what it saw, by kind of handshake and by serial, and what went wrong."""

    def __init__(self, port: int, ca: str, start: int) -> None:
        self._port = port
        self._kinds = islice(cycle([(context(ca, version), version.name, host) for version, host in KINDS]), start, None)
        self.kinds: Counter[str] = Counter()
        self.serials: Counter[str] = Counter()
        self.errors: Counter[str] = Counter()

    def run(self, stop: threading.Event) -> None:
        for made, version, host in self._kinds:
            if stop.is_set():
                return
            try:
                with connect(self._port, made, host) as connection:
                    assert echo(connection)
                    self.serials[f"{serial_of(connection):x}"] += 1
                    self.kinds[f"{version} {host}"] += 1
            except (OSError, AssertionError) as error:
                self.errors[f"{version} {host}: {error!r}"] += 1


def main(port: int, ca: str, clients: int) -> None:
    stop = threading.Event()
    running = [Client(port, ca, start) for start in range(clients)]
    threads = [threading.Thread(target=client.run, args=(stop,)) for client in running]
    for thread in threads:
        thread.start()
    sys.stdin.read()
    stop.set()
    for thread in threads:
        thread.join()
    total: dict[str, Counter[str]] = {
        name: sum((getattr(client, name) for client in running), Counter()) for name in ("kinds", "serials", "errors")
    }
    print(json.dumps(total))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
