"""How the console is reached: what does not go together is said, with what to type."""

from __future__ import annotations

import pytest

from cli.main import parser
from console.settings import ConsoleSettings, settings
from webhook.settings import SettingsError


def chosen(*words: str) -> ConsoleSettings:
    return settings(parser(["console"]).parse_args(["console", *words]))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--listen", "0.0.0.0:8480"), "listen on this machine only; write --listen 127.0.0.1:8480"),
        (("--in-cluster", "--listen", ":8480"), "set --tls-cert and --tls-key, or --self-signed DIR"),
        (("--in-cluster", "--listen", "gpus.example:8480"), "set --tls-cert"),
        (("--in-cluster", "--self-signed", "d", "--insecure-http"), "remove --tls-cert and --self-signed"),
        (("--in-cluster", "--tls-cert", "f"), "set --tls-cert FILE and --tls-key FILE"),
        (("--in-cluster", "--tls-cert", "f", "--tls-key", "k", "--self-signed", "d"), "(not both)"),
        (("--in-cluster", "--from", "f"), "remove --kubeconfig, --context, --from and --files"),
        (("--session", "1h"), "--session applies only where users sign in: add --in-cluster"),
        (("--audience", "a"), "--audience applies only where users sign in"),
        (("--in-cluster", "--session", "59s"), "is not between 1m and 24h"),
        (("--in-cluster", "--session", "25h"), "is not between 1m and 24h"),
        (("--in-cluster", "--session", "soon"), "--session must be a duration"),
        (("--in-cluster", "--url", "http://gpus.example"), "is not https://HOST"),
        (("--in-cluster", "--url", "https://gpus.example/berth"), "the console needs its own host name, not a path"),
        (("--in-cluster", "--url", "https://a@gpus.example"), "is not https://HOST"),
        (("--in-cluster", "--url", "https://gpus.example:x"), "is not https://HOST"),
    ],
)
def test_what_does_not_go_together_is_said(words: tuple[str, ...], sentence: str) -> None:
    """With what to type in its place."""
    with pytest.raises(SettingsError) as raised:
        chosen(*words)
    assert sentence in str(raised.value)


def test_what_goes_together() -> None:
    """Plain HTTP on this machine; TLS for others, or a proxy that ends it."""
    assert (chosen().signs_in, chosen().tls, chosen().host) == (False, False, "127.0.0.1")
    assert not chosen("--in-cluster", "--listen", "[::1]:0").tls
    assert not chosen("--in-cluster", "--listen", ":8480", "--insecure-http").tls
    found = chosen("--in-cluster", "--listen", ":8480", "--self-signed", "d", "--names", "a.b.svc", "--url", "https://GPUS.example:443/")
    assert (found.tls, found.session, found.url) == (True, 3600, "https://gpus.example")
    assert found.certificate_names == ("localhost", "127.0.0.1", "::1", "gpus.example", "a.b.svc")
