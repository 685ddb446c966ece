"""`berth webhooks` prints what a cluster needs to call Berth, or says what is wrong with its options."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from certs.authority import issue, make_ca
from cli.main import main
from cli.webhooks import certificates
from policies.document import InputError
from registration.configurations import Service, manifests
from tests.support.generators.random_worlds import catalog

Raw = dict[str, Any]
DEPLOYED = Path(__file__).parent.parent.parent / "deploy" / "chart" / "files" / "webhooks-claims-fail.yaml"
NOW = datetime.now(UTC)


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["webhooks", *words]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def client_configs(text: str) -> list[Raw]:
    return [webhook["clientConfig"] for manifest in yaml.safe_load_all(text) for webhook in manifest["webhooks"]]


def denied(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The line that says why; nothing is printed beside it."""
    assert main(["webhooks", *words]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    return err.removesuffix("\n")


def test_the_checked_in_manifests_are_those_of_the_catalog(capsys: pytest.CaptureFixture[str]) -> None:
    """deploy/chart/files/webhooks-claims-fail.yaml, which the chart adapts, is the default output, to the byte."""
    assert DEPLOYED.read_text() == printed(capsys), "the catalog changed; run: make generate"


def test_what_is_printed_is_what_is_meant(capsys: pytest.CaptureFixture[str]) -> None:
    """Read back, the YAML is both manifests; conditions are blocks of lines that fit a screen."""
    text = printed(capsys)
    assert list(yaml.safe_load_all(text)) == list(manifests(catalog(), Service()))
    assert max(map(len, text.splitlines())) < 160
    assert "    expression: |-\n      object.?spec" in text


def test_the_head_says_how_to_apply_it(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """And, where there is no CA in it, what to do about that."""
    (tmp_path / "ca.crt").write_bytes(make_ca(NOW).certificate_pem)
    bare, with_ca = printed(capsys), printed(capsys, "--ca", str(tmp_path / "ca.crt"))
    assert "kubectl apply -f" in bare.partition("---")[0]
    assert "kubectl apply -f" in with_ca.partition("---")[0]
    assert "--ca FILE" in bare.partition("---")[0]
    assert "--ca FILE" not in with_ca.partition("---")[0]


def test_queues_have_a_configuration_that_is_called_first(capsys: pytest.CaptureFixture[str]) -> None:
    """Beside the two, and all three say so, for a server to see."""
    found = list(yaml.safe_load_all(printed(capsys, "--queues")))
    assert [(one["kind"], one["metadata"]["name"]) for one in found] == [
        ("MutatingWebhookConfiguration", "zz-berth"),
        ("ValidatingWebhookConfiguration", "zz-berth"),
        ("MutatingWebhookConfiguration", "berth-queues"),
    ]
    assert {one["metadata"]["annotations"]["berth.dev/queues"] for one in found} == {"true"}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("gpu/berth", {"namespace": "gpu", "name": "berth", "port": 443}),
        ("gpu-1/b-2:8443", {"namespace": "gpu-1", "name": "b-2", "port": 8443}),
        ("1x/a:65535", {"namespace": "1x", "name": "a", "port": 65535}),
    ],
)
def test_a_service(capsys: pytest.CaptureFixture[str], text: str, wanted: Raw) -> None:
    """NAMESPACE/NAME, with its port if that is not 443."""
    services = [config["service"] for config in client_configs(printed(capsys, "--service", text))]
    assert [{**service, "path": None} for service in services] == [{**wanted, "path": None}] * 8


@pytest.mark.parametrize("url", ["https://10.0.0.7:8443", "https://berth.example.com", "https://[fd00::1]:8443", "https://localhost:1/"])
def test_a_url(capsys: pytest.CaptureFixture[str], url: str) -> None:
    """Host and port as given, one path for each kind of call."""
    found = [config["url"] for config in client_configs(printed(capsys, "--url", url))]
    assert set(found) == {f"{url.rstrip('/')}/{path}" for path in ("mutate", "mutate/ignore", "validate", "validate/ignore", "advise")}


def test_a_ca_is_in_every_webhook(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """All certificates of the file (old and new, while they rotate), and nothing else that is in it."""
    both = make_ca(NOW).certificate_pem + make_ca(NOW).certificate_pem
    (tmp_path / "ca.crt").write_bytes(b"subject=CN = berth\n" + both + b"\n# end\n")
    bundles = {config["caBundle"] for config in client_configs(printed(capsys, "--ca", str(tmp_path / "ca.crt")))}
    assert bundles == {base64.b64encode(both).decode()}


def excluded(text: str) -> list[str]:
    """Namespaces whose pods are not judged: the same for every webhook."""
    selectors = [webhook["namespaceSelector"] for manifest in yaml.safe_load_all(text) for webhook in manifest["webhooks"]]
    assert all(selector == selectors[0] for selector in selectors)
    values: list[str] = selectors[0]["matchExpressions"][0]["values"]
    return values


def test_only_namespaces_that_exist_are_left_out(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Those of kube-apiserver, Berth's own, what a flag or one's own catalog names. The head says what to type for more."""
    three = ["kube-system", "kube-public", "kube-node-lease"]
    bare = printed(capsys)
    assert excluded(bare) == [*three, "berth-system"]
    assert "--exclude-namespace gpu-operator" in " ".join(bare.partition("---")[0].replace("#", "").split())
    assert excluded(printed(capsys, "--url", "https://a")) == three
    assert excluded(printed(capsys, "--service", "gpu/b", "--exclude-namespace", "x", "--exclude-namespace", "y")) == [
        *three,
        "x",
        "y",
        "gpu",
    ]
    (tmp_path / "own.yaml").write_text("excludedNamespaces: [{name: harbour}, {name: karpenter}]")
    assert excluded(printed(capsys, "--catalog", str(tmp_path / "own.yaml"))) == [*three, "harbour", "berth-system"]


def test_a_name_of_ones_own_is_matched(capsys: pytest.CaptureFixture[str]) -> None:
    """--resource-name, in every condition about pods; one that the catalog has anyway changes nothing."""
    text = printed(capsys, "--resource-name", "acme.example/card", "--resource-name", "nvidia.com/gpu")
    assert "Resource names beside those of the catalog: acme.example/card." in text.partition("---")[0]
    with_names = [w for m in yaml.safe_load_all(text) for w in m["webhooks"] if "acme.example/card" in str(w["matchConditions"])]
    assert len(with_names) == 4
    assert list(yaml.safe_load_all(printed(capsys, "--resource-name", "nvidia.com/gpu"))) == list(yaml.safe_load_all(printed(capsys)))


@pytest.mark.parametrize(("claims", "policies"), [("Fail", {"Fail"}), ("Ignore", {"Ignore"}), ("Off", set())])
def test_how_claims_are_treated(capsys: pytest.CaptureFixture[str], claims: str, policies: set[str]) -> None:
    """--claims is the failurePolicy of every entry about claims, or leaves them out."""
    webhooks = [w for m in yaml.safe_load_all(printed(capsys, "--claims", claims)) for w in m["webhooks"]]
    assert {w["failurePolicy"] for w in webhooks if "claims" in w["name"]} == policies
    assert ("resourceClaims" in str(webhooks)) == (claims != "Off")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--claims", "off"), '--claims: "off" is not a valid value; write Fail, Ignore or Off'),
        (("--claims", ""), '--claims: "" is not a valid value; write Fail, Ignore or Off'),
        (("--resource-name", "gpu"), '--resource-name: "gpu" is not an extended resource; write DOMAIN/NAME as in pods, for example'),
        (("--resource-name", "kubernetes.io/x"), '--resource-name: "kubernetes.io/x" is not an extended resource'),
        (("--resource-name", "a/b\n"), "--resource-name: "),
        (("--resource-name", "a.b/" + "x" * 64), "--resource-name: "),
        (("--exclude-namespace", "A"), '--exclude-namespace: "A" is not a valid name of a namespace; see kubectl get namespaces'),
        (("--exclude-namespace", ""), '--exclude-namespace: "" is not a valid name of a namespace'),
        (("--exclude-namespace", "x" * 64), "--exclude-namespace: "),
        (("--context", "prod"), "--context: needs a kubeconfig; add --kubeconfig FILE"),
        (("--in-cluster", "--kubeconfig", "x"), "--in-cluster: and --kubeconfig exclude each other; use one of them"),
        (("--kubeconfig", "/dev/null/x"), "cluster: there is no kubeconfig /dev/null/x; give --kubeconfig FILE"),
    ],
)
def test_a_flag_that_is_wrong(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], line: str) -> None:
    """One line says what to write."""
    assert denied(capsys, *words).startswith(f"berth: {line}")


def test_an_overlay_is_matched_too(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """--catalog: names of one's own are in the conditions."""
    (tmp_path / "own.yaml").write_text("resources: [{name: example.com/npu, vendor: nvidia, kind: other}]")
    assert "'example.com/npu'" in printed(capsys, "--catalog", str(tmp_path / "own.yaml"))


@pytest.mark.parametrize("text", ["berth", "a/b/c", "/b", "a/", "a/b:", "a/b:x", "a/b:0", "a/b:65536", "A/b", "a/1b", "a_b/c", "", "a/b\n"])
def test_a_service_that_is_none(capsys: pytest.CaptureFixture[str], text: str) -> None:
    """The form is shown."""
    assert denied(capsys, "--service", text).endswith("is not a Service; write NAMESPACE/NAME or NAMESPACE/NAME:PORT")


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://berth:8443", "does not begin with https://"),
        ("berth:8443", "does not begin with https://"),
        ("", "does not begin with https://"),
        ("https://", "has no valid host and port"),
        ("https://:8443", "has no valid host and port"),
        ("https://a:0", "has no valid host and port"),
        ("https://a:99999", "is not a URL (Port out of range"),
        ("https://a:b", "is not a URL (Port"),
        ("https://me:secret@a", "has no valid host and port"),
        ("https://a b", "has no valid host and port"),
        ("https://a/mutate", "has more than a host and a port"),
        ("https://a?x=1", "has more than a host and a port"),
        ("https://a#x", "has more than a host and a port"),
        ("https://[::1", "is not a URL"),
    ],
)
def test_a_url_that_will_not_do(capsys: pytest.CaptureFixture[str], url: str, why: str) -> None:
    """The API server would deny it, or call something else."""
    line = denied(capsys, "--url", url)
    assert why in line
    assert line.startswith("berth: --url: ")
    assert line.endswith("write https://HOST:PORT")


def test_only_one_place(capsys: pytest.CaptureFixture[str]) -> None:
    """A Service and a URL contradict each other."""
    with pytest.raises(SystemExit) as exit_:
        main(["webhooks", "--service", "a/b", "--url", "https://a"])
    assert exit_.value.code == 2
    assert "not allowed with" in capsys.readouterr().err


def test_a_ca_that_cannot_be_used(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Not there, a folder, no PEM, broken PEM, or with a private key beside it, which a manifest must not hold."""
    pair = issue(make_ca(NOW), ["berth"], NOW)
    (tmp_path / "text").write_text("hello")
    (tmp_path / "broken").write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    (tmp_path / "both").write_bytes(pair.certificate_pem + pair.key_pem)
    (tmp_path / "key").write_bytes(pair.key_pem)
    for name, why in [
        ("missing", "cannot be read: No such file or directory"),
        (".", "cannot be read: Is a directory"),
        ("text", "it contains no PEM certificate"),
        ("broken", "the certificate in it is damaged"),
        ("both", "contains a private key"),
        ("key", "contains a private key"),
    ]:
        line = denied(capsys, "--ca", str(tmp_path / name))
        assert line.startswith(f"berth: {tmp_path / name}: {why}")
        assert line.count(str(tmp_path)) == 1


def test_the_file_beside_the_ca_is_not_taken_for_it(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """tls.crt would do until its renewal, within the week: the line names the file that is meant."""
    ca = make_ca(NOW)
    leaf = issue(ca, ["berth"], NOW)
    (tmp_path / "tls.crt").write_bytes(leaf.certificate_pem * 2)
    line = denied(capsys, "--ca", str(tmp_path / "tls.crt"))
    assert line.startswith(f"berth: {tmp_path / 'tls.crt'}: contains no CA")
    assert "ca.crt" in line
    (tmp_path / "chain.crt").write_bytes(leaf.certificate_pem + ca.certificate_pem)
    assert "caBundle" in printed(capsys, "--ca", str(tmp_path / "chain.crt"))


def test_a_ca_that_expired(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Every call would fail; beside its successor it does no harm."""
    old, new = make_ca(NOW - timedelta(days=366)), make_ca(NOW)
    (tmp_path / "ca.crt").write_bytes(old.certificate_pem)
    assert f": its CA expired on {NOW - timedelta(days=1):%Y-%m-%d}" in denied(capsys, "--ca", str(tmp_path / "ca.crt"))
    (tmp_path / "ca.crt").write_bytes(old.certificate_pem + new.certificate_pem)
    assert "caBundle" in printed(capsys, "--ca", str(tmp_path / "ca.crt"))


@pytest.mark.parametrize(
    ("issuer", "constraints", "taken"),
    [
        ("berth", x509.BasicConstraints(ca=False, path_length=None), True),
        ("berth", None, True),
        ("root", x509.BasicConstraints(ca=True, path_length=None), True),
        ("root", x509.BasicConstraints(ca=False, path_length=None), False),
        ("root", None, False),
    ],
    ids=["self-signed leaf", "self-signed, says nothing", "intermediate CA", "leaf", "issued, says nothing"],
)
def test_what_can_be_trusted(tmp_path: Path, issuer: str, constraints: x509.BasicConstraints | None, *, taken: bool) -> None:
    """What Go accepts as a root that stays one: a CA, or whatever is its own issuer."""
    key = ec.generate_private_key(ec.SECP256R1())
    names = [x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]) for name in ("berth", issuer)]
    builder = x509.CertificateBuilder(subject_name=names[0], issuer_name=names[1], public_key=key.public_key(), serial_number=1)
    builder = builder.not_valid_before(NOW).not_valid_after(NOW + timedelta(days=1))
    if constraints is not None:
        builder = builder.add_extension(constraints, critical=True)
    pem = builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)
    (tmp_path / "c.crt").write_bytes(pem)
    if taken:
        assert certificates(str(tmp_path / "c.crt"), NOW) == pem
    else:
        with pytest.raises(InputError, match="contains no CA"):
            certificates(str(tmp_path / "c.crt"), NOW)


def test_a_catalog_that_cannot_be_used(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Its own errors, and a pattern that no condition can compare with."""
    file = tmp_path / "own.yaml"
    file.write_text("resources: [{pattern: '.+/gpu', vendor: nvidia, kind: other}]")
    assert denied(capsys, "--catalog", str(file)).startswith(
        f"berth: {file}: resources: the pattern .+/gpu may begin with anything; begin it with a domain"
    )
    file.write_text("gpu: []")
    assert "unknown section" in denied(capsys, "--catalog", str(file))
