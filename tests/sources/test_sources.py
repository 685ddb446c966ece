"""Reading a snapshot's sources: everything that is wrong at once, each with its file or option."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from documents.files import read_items
from policies.facts.cluster_facts import ClusterFacts
from policies.offers.constraints import Compiler
from sources.sources import SourceLoader, Sources, SourcesError, load_sources, options

POLICY = "apiVersion: berth.dev/v1alpha1\nkind: ClusterGPUPolicy\nmetadata: {name: mine}\nspec: {default: {acceleratorTaints: Tolerate}}\n"


def errors(sources: Sources) -> list[str]:
    with pytest.raises(SourcesError) as raised:
        load_sources(sources)
    assert str(raised.value).splitlines() == [str(error) for error in raised.value.errors]
    return [str(error) for error in raised.value.errors]


def test_without_policies_the_shipped_default_acts() -> None:
    """No hidden behaviour: it is an object in a file."""
    assert [compiled.id for compiled in load_sources(Sources()).snapshot.policies] == ["ClusterGPUPolicy/berth-default"]


def test_named_policies_replace_the_default(tmp_path: Path) -> None:
    """What is named is all that acts."""
    (tmp_path / "mine.yaml").write_text(POLICY)
    loaded = load_sources(Sources(policies=(str(tmp_path),), platforms=("gke",)))
    assert [compiled.id for compiled in loaded.snapshot.policies] == ["ClusterGPUPolicy/mine"]
    assert loaded.snapshot.placed


def test_every_wrong_option_is_told_at_once() -> None:
    """Four mistakes, four lines, each with what was probably meant."""
    lines = errors(Sources(platforms=("karpenter-awz",), mig_strategy="mixd", queues=("queue",), max_mode="enforce"))
    assert [line.split(": ")[1] for line in lines] == ["--mig-strategy", "--queues", "--max-mode", "--platforms"]
    assert 'did you mean "karpenter-aws"?' in lines[3]


def test_a_policy_file_that_is_not_there_is_named() -> None:
    """Each file by its name."""
    lines = errors(Sources(policies=("nowhere.yaml",), facts=("neither.yaml",)))
    assert [line.split(": ")[1] for line in lines] == ["nowhere.yaml", "neither.yaml"]


def test_facts_are_read_from_lists_and_documents(tmp_path: Path) -> None:
    """A dump by kubectl and a hand-written document give the same facts; other kinds are left alone."""
    (tmp_path / "a.yaml").write_text(
        "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Namespace, metadata: {name: a, labels: {team: x}}}\n"
        "- {apiVersion: v1, kind: Secret, metadata: {name: s}}\n---\n"
        "apiVersion: v1\nkind: Node\nmetadata: {name: n1, labels: {gpu: t4}}\n"
    )
    items, wrong = read_items([str(tmp_path)])
    assert wrong == []
    facts = ClusterFacts.from_objects(item.value for item in items)
    assert facts.namespaces == {"a": {"team": "x"}}
    assert facts.nodes == {"n1": {"gpu": "t4"}}


def test_facts_that_are_no_objects_are_told(tmp_path: Path) -> None:
    """A list inside a List and a bare text have their path in the message; the rest is still read."""
    file = tmp_path / "facts.yaml"
    file.write_text("kind: List\nitems:\n- text\n- {kind: Namespace, metadata: {name: a}}\n")
    items, wrong = read_items([str(file)])
    assert [item.value["metadata"]["name"] for item in items] == ["a"]
    assert len(wrong) == 1
    assert "items[0]" in str(wrong[0])


def test_policies_among_the_facts_are_in_force_unless_others_are_named(tmp_path: Path) -> None:
    """A server that reads files takes only facts from them."""
    dump, others = tmp_path / "dump.yaml", tmp_path / "others.yaml"
    dump.write_text(f"{POLICY}---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: a}}\n")
    others.write_text(POLICY.replace("mine", "others"))
    sources = Sources(facts=(str(dump),))
    assert [compiled.policy.name for compiled in load_sources(sources).snapshot.policies] == ["mine"]
    named = load_sources(replace(sources, policies=(str(others),))).snapshot
    assert [compiled.policy.name for compiled in named.policies] == ["others"]
    served = SourceLoader(replace(sources, dumped_policies=False)).load().snapshot
    assert [compiled.policy.name for compiled in served.policies] == ["berth-default"]
    assert list(served.cluster.namespaces) == ["a"]


def test_a_catalog_is_laid_over_ours(tmp_path: Path) -> None:
    """A misspelling that only this cluster knows."""
    file = tmp_path / "mine.yaml"
    file.write_text("misspellings: [{wrong: nvidia.com/gpuu, right: nvidia.com/gpu, source: us, mark: verified}]\n")
    assert load_sources(Sources(catalog=str(file))).snapshot.catalog.misspellings["nvidia.com/gpuu"] == "nvidia.com/gpu"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("gpuz: []\n", 'did you mean "gpus"', id="unknown-section"),
        pytest.param("- gpus\n", "must be a map of sections", id="list"),
        pytest.param("a: [\n", "mine.yaml", id="no-yaml"),
    ],
)
def test_a_wrong_catalog_file_is_named(text: str, message: str, tmp_path: Path) -> None:
    """The mistake is in the file that was given, not in ours."""
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    lines = errors(Sources(catalog=str(file), mig_strategy="wrong"))
    assert lines[0].startswith("berth: --mig-strategy: ")
    assert lines[1].startswith(f"berth: {file}")
    assert message in lines[1]


def test_a_second_load_compiles_what_has_changed_alone(tmp_path: Path) -> None:
    """The other policies are the very objects that they were; what is gone from the files is gone, facts too."""
    one, two, facts = tmp_path / "one.yaml", tmp_path / "two.yaml", tmp_path / "facts.yaml"
    one.write_text(POLICY.replace("mine", "one"))
    two.write_text(POLICY.replace("mine", "two"))
    facts.write_text("apiVersion: v1\nkind: Namespace\nmetadata: {name: a, labels: {team: x}}\n")
    loader = SourceLoader(Sources(policies=(str(one), str(two)), facts=(str(facts),), platforms=("gke",)))
    first = loader.load()
    two.write_text(POLICY.replace("mine", "three"))
    facts.write_text("apiVersion: v1\nkind: Namespace\nmetadata: {name: b}\n")
    second = loader.load().update
    assert [compiled.policy.name for compiled in second.snapshot.policies] == ["one", "three"]
    assert second.snapshot.policies[0] is first.snapshot.policies[0]
    assert (second.added, second.modified, second.removed) == (("ClusterGPUPolicy/three",), (), ("ClusterGPUPolicy/two",))
    assert second.snapshot.cluster.namespaces == {"b": {}}
    assert not loader.load().update.changed


def test_platforms_of_files_are_as_their_nodes_tell_now(tmp_path: Path) -> None:
    """Files are the whole truth: a platform whose nodes are taken out of them is not in force any more."""
    (tmp_path / "mine.yaml").write_text(POLICY)
    facts = tmp_path / "facts.yaml"
    loader = SourceLoader(Sources(policies=(str(tmp_path / "mine.yaml"),), facts=(str(facts),), platforms=("auto",)))
    found = []
    gke = "cloud.google.com/gke-nodepool: a, cloud.google.com/gke-accelerator: nvidia-l4"
    aws = "karpenter.k8s.aws/instance-family: g4dn, karpenter.k8s.aws/instance-gpu-name: t4"
    for labels in (gke, aws):
        facts.write_text(f"apiVersion: v1\nkind: Node\nmetadata: {{name: n, labels: {{{labels}}}}}\n")
        found.append(list(loader.load().snapshot.tables))
    assert found == [["gke"], ["karpenter-aws"]]


def test_another_catalog_compiles_everything(tmp_path: Path) -> None:
    """The catalog may change with the policies."""
    (tmp_path / "mine.yaml").write_text(POLICY)
    catalog = tmp_path / "catalog.yaml"
    catalog.write_text("otherDrivers: [{driver: nic.acme.example}]\n")
    loader = SourceLoader(Sources(policies=(str(tmp_path / "mine.yaml"),), catalog=str(catalog), platforms=("gke",)))
    first = loader.load().snapshot
    assert loader.load().snapshot is first
    catalog.write_text("otherDrivers: [{driver: nic.other.example}]\n")
    second = loader.load().snapshot
    assert second.policies[0] is not first.policies[0]
    assert not second.catalog.is_accelerator_driver("nic.other.example")


def test_service_accounts_are_believed_in_namespaces_of_the_platform() -> None:
    """Those of kube-system always are; elsewhere anybody who makes the namespace could make an account of the name."""

    def makers(*namespaces: str) -> set[str]:
        return {user.split(":")[2] for user in options(Sources(platform_namespaces=namespaces))[0].pod_makers if user.count(":") == 3}

    assert makers() == {"kube-system"}
    assert makers("lws-system", "training") == {"kube-system", "lws-system"}


def test_an_exception_leaves_nothing_half_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A set whose compilation failed by surprise is compiled whole at the next reading, not taken for known."""
    (tmp_path / "mine.yaml").write_text(POLICY)
    loader = SourceLoader(Sources(policies=(str(tmp_path),)))
    loader.load()
    (tmp_path / "more.yaml").write_text(POLICY.replace("mine", "more"))

    def fails(*_: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(Compiler, "policy", fails)
        with pytest.raises(MemoryError):
            loader.load()
    assert [compiled.policy.name for compiled in loader.load().snapshot.policies] == ["mine", "more"]
