"""How the console is reached: what does not go together is said, with what to type."""

from __future__ import annotations

import pytest

from cli.main import parser
from console.settings import Settings, settings
from webhook.settings import SettingsError


def chosen(*words: str) -> Settings:
    return settings(parser(["console"]).parse_args(["console", *words]))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--listen", "0.0.0.0:8480"), "only a loopback address is allowed; write --listen 127.0.0.1:8480"),
        (("--in-cluster", "--listen", ":8480"), "give --tls-cert FILE and --tls-key FILE, or --self-signed DIR"),
        (("--in-cluster", "--listen", "gpus.example:8480"), "give --tls-cert FILE"),
        (("--in-cluster", "--self-signed", "d", "--insecure-http"), "leave it out with --tls-cert or --self-signed"),
        (("--in-cluster", "--tls-cert", "f"), "give either --tls-cert FILE and --tls-key FILE"),
        (("--in-cluster", "--tls-cert", "f", "--tls-key", "k", "--self-signed", "d"), "or --self-signed DIR"),
        (("--in-cluster", "--facts", "f"), "leave out --kubeconfig, --context, --facts and --files"),
        (("--session", "1h"), "--session is about people who sign in: give --in-cluster too"),
        (("--audience", "a"), "--audience is about people who sign in"),
        (("--in-cluster", "--session", "59s"), "is not of 1m to 24h"),
        (("--in-cluster", "--session", "25h"), "is not of 1m to 24h"),
        (("--in-cluster", "--session", "soon"), "--session must be a duration"),
        (("--in-cluster", "--url", "http://gpus.example"), "is not https://HOST"),
        (("--in-cluster", "--url", "https://gpus.example/berth"), "the console needs its own host name, not a path under another one"),
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
