"""policies.objects.parse: every message word by word, and what is kept when something is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catalog import Catalog
from documents.files import read_catalog
from documents.yaml_reader import documents
from kube.taints import Taint, TolerationPattern
from policies.document import Document
from policies.objects import parse as policy_parse
from policies.policy import Bounds, InNotIn, LongRuns, MachineFields, MigDefault, Policy, PolicySet
from tests.support.counts import count

MODELS = ("T4", "L4", "A100-40GB", "A100-80GB", "H100-80GB")


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    """The catalog with a few of its names, so that lists in messages stay as they are when it grows."""
    whole = read_catalog()
    return replace(
        whole,
        gpus=tuple(gpu for gpu in whole.gpus if gpu.model in MODELS),
        machines=tuple(machine for machine in whole.machines if machine.family in ("p4d", "p5")),
        workloads=tuple(workload for workload in whole.workloads if workload.name in ("Job", "PyTorchJob", "Notebook")),
    )


def parse(text: str, catalog: Catalog, file: str = "f.yaml") -> tuple[PolicySet, list[str], list[str]]:
    found, errors = documents(text, file)
    assert errors == []
    policy_set, mistakes, warnings = policy_parse.parse_objects(found, catalog)
    return policy_set, [str(mistake) for mistake in mistakes], [str(warning) for warning in warnings]


def written(spec: str, kind: str = "ClusterGPUPolicy") -> str:
    namespace = "  namespace: ml\n" if kind == "GPUPolicy" else ""
    lines = "".join(f"  {line}\n" for line in spec.splitlines())
    return f"apiVersion: berth.dev/v1alpha1\nkind: {kind}\nmetadata:\n  name: x\n{namespace}spec:\n{lines}"


def messages(errors: Sequence[str]) -> list[str]:
    return [error.removeprefix("berth: f.yaml, ") for error in errors]


REQUIRE = {
    "families: {in: [hoper]}": 'families.in[0]: unknown GPU family "hoper"; did you mean "hopper"?',
    "families: {in: [zzz]}": 'families.in[0]: unknown GPU family "zzz"; known: ada-lovelace, ampere, hopper, turing',
    "families: {in: [3]}": "families.in[0]: must be text, found the number 3; write hopper",
    "families: {in: hopper}": 'families.in: must be a list, found the text "hopper"; write in: [hopper]',
    "families: {in: 'a, b'}": 'families.in: must be a list, found the text "a, b"; write in: [hopper]',
    "families: {in: []}": "families.in: must have at least one value, found an empty list; write in: [hopper], or remove in",
    "families: {}": "families: must have in or notIn; write in: [hopper]",
    "families: ": "families: must be a map, found nothing (null); write families: {in: [hopper]}",
    "families: [hopper]": "families: must be a map, found a list; write families: {in: [hopper]}",
    "family: {in: [hopper]}": 'family: unknown field "family"; did you mean "families"?',
    "zzz: 1": 'zzz: unknown field "zzz"; known: capacity, families, gpuMemory, gpusPerPod, gracePeriod, instanceFamilies, longRuns, '
    "maxRuntime, models, protection, queue, requestsEqualLimits, sharing, tolerations",
    "nodeTemplate: x": 'nodeTemplate: unknown field "nodeTemplate" here; it belongs in spec.default',
    "mode: Enforce": 'mode: unknown field "mode" here; it belongs in spec',
    "workloads: [Job]": 'workloads: unknown field "workloads" here; it belongs in spec.match',
    "models: {in: [A100-40]}": 'models.in[0]: unknown GPU model "A100-40"; did you mean "A100-40GB"?',
    "models: {in: [A100], notIn: [A100]}": "models: no name is left: notIn has every name of in",
    "gpuMemory: {}": "gpuMemory: must have min or max; write min: 40",
    "gpuMemory: {min: 40Gi}": 'gpuMemory.min: must be a whole number of GB, found the text "40Gi"; write min: 40',
    "gpuMemory: {min: 40.5}": "gpuMemory.min: must be a whole number of GB, found the number 40.5; write min: 40",
    "gpuMemory: {min: 0}": "gpuMemory.min: must be a whole number of GB from 1 to 1000000, found 0",
    "gpuMemory: {min: 80, max: 40}": "gpuMemory: min 80 is greater than max 40; no value is between them",
    "capacity: [spott]": 'capacity[0]: must be one of spot, on-demand, reserved, found the text "spott"; did you mean "spot"?',
    "capacity: spot": 'capacity: must be a list, found the text "spot"; write capacity: [spot]',
    "longRuns: {over: 2h}": "longRuns: capacity is missing; write capacity: [on-demand]",
    "longRuns: {over: 2d, capacity: [spot]}": 'longRuns.over: must be a duration; "2d" has no unit that Go knows; write 48h',
    "longRuns: {over: 2h, capacity: [spot], unknownIsLong: maybe}": "longRuns.unknownIsLong: must be true or false, "
    'found the text "maybe"; write unknownIsLong: true',
    "gpusPerPod: {max: 4, oneOf: [8]}": "gpusPerPod: no number is left: every number of oneOf is greater than max 4",
    "gpusPerPod: {oneOf: 8}": "gpusPerPod.oneOf: must be a list, found the number 8; write oneOf: [1, 2, 4, 8]",
    "requestsEqualLimits: accelerators": 'requestsEqualLimits: must be a list, found the text "accelerators"; '
    "write requestsEqualLimits: [accelerators]",
    "gracePeriod: 1h": 'gracePeriod: must be a map, found the text "1h"; write gracePeriod: {min: 10m, max: 1h}',
    "gracePeriod: {}": "gracePeriod: must have max or min; write max: 1h",
    "gracePeriod: {min: 1h, max: 30m}": "gracePeriod: min 1h is longer than max 30m; no value is between them",
    "gracePeriod: {min: 10}": "gracePeriod.min: must be a duration with its unit, found the number 10; write 10s",
    "gracePeriod: {max: 3600}": "gracePeriod.max: must be a duration with its unit, found the number 3600; write 3600s",
    "tolerations: {forbid: {key: a}}": "tolerations.forbid: must be a list, found a map; write forbid: [{key: team, value: other}]",
    "tolerations: {forbid: team}": 'tolerations.forbid: must be a list, found the text "team"; write forbid: [{key: team, value: other}]',
    "tolerations: {forbid: [team]}": 'tolerations.forbid[0]: must be a map, found the text "team"; write {key: team, value: other}',
    "tolerations: {forbid: [{value: a}]}": "tolerations.forbid[0]: key is missing; write key: team",
    "tolerations: {forbid: [{key: a b}]}": 'tolerations.forbid[0].key: the text "a b" is not a label key',
    "tolerations: {forbid: [{key: a, value: true}]}": "tolerations.forbid[0].value: must be text, found the boolean true; "
    "write it in quotes",
    "tolerations: {forbid: [{key: a, operator: Exists}]}": 'tolerations.forbid[0].operator: there is no field "operator"; '
    "leave it out: a value means Equal, no value means Exists",
}
DEFAULT = {
    "acceleratorTaints: true": "acceleratorTaints: must be text, found the boolean true; write acceleratorTaints: Tolerate",
    "acceleratorTaints: Ignore": 'acceleratorTaints: must be Tolerate, found the text "Ignore"',
    "mig: {slice: 1g.10gb}": 'mig.slice: "1g.10gb" is not a nominal MIG slice size; write slice: 10gb',
    "mig: {slice: 11gb}": 'mig.slice: "11gb" is not a nominal MIG slice size; sizes: 5gb, 10gb, 20gb, 40gb, 80gb',
    "mig: {slice: 10}": "mig.slice: must be text, found the number 10; write slice: 10gb",
    "mig: {}": "mig: must have slice or usableMemory; write slice: 10gb",
    "mig: {slice: 10gb, usableMemory: 9Gi}": "mig: must have only one of slice and usableMemory; remove one",
    "mig: {usableMemory: 200Gi}": 'mig.usableMemory: no MIG profile is verified to have "200Gi"; '
    "verified figures: 4.75Gi, 9.625Gi, 19.5Gi, 39.25Gi, 78.5Gi",
    "mig: {usableMemory: '0'}": 'mig.usableMemory: no MIG profile is verified to have "0"; '
    "verified figures: 4.75Gi, 9.625Gi, 19.5Gi, 39.25Gi, 78.5Gi",
    "mig: {usableMemory: nine}": 'mig.usableMemory: must be an amount of memory, found the text "nine"; write usableMemory: 9.5Gi',
    "gracePeriod: 1800": "gracePeriod: must be a duration with its unit, found the number 1800; write 1800s",
    "protectFor: always": 'protectFor: must be a duration; found "always"; write 2h, 90s or 1h30m, or Always',
    "tolerate: [{key: karpenter.sh/unregistered}]": 'tolerate[0].key: pods must never tolerate "karpenter.sh/unregistered": '
    "it keeps them off nodes that cannot run them; remove it",
    "repair: [cpu]": 'repair[0]: must be accelerators, found the text "cpu"',
    "nodeTemplate: [a]": "nodeTemplate: must be text, found a list; write nodeTemplate: a100-training",
    "nodeTemplate: big": 'nodeTemplate: unknown node template "big"; none is defined: add a GPUNodeTemplate of that name',
    "sharedMemory: 8": "sharedMemory: must be text, found the number 8; write sharedMemory: 8Gi",
    "sharedMemory: much": 'sharedMemory: must be an amount of memory, found the text "much"; write 8Gi',
    "sharedMemory: 8Ti": 'sharedMemory: must be an amount of memory from 1Mi to 1Ti, found "8Ti"',
    "runtimeClass: NVIDIA": 'runtimeClass: the text "NVIDIA" is not the name of a class',
    "maxRuntime: 2d": 'maxRuntime: must be a duration; "2d" has no unit that Go knows; write 48h',
    "sharing: [MIG]": 'sharing: unknown field "sharing" here; it belongs in spec.require',
}
SPEC = {
    "mode: audit": ['mode: must be one of Audit, Warn, Enforce, found the text "audit"; did you mean "Audit"?'],
    "mode: off": ["mode: must be text, found the boolean false; write mode: Audit"],
    "template: x": ['template: unknown field "template"; known: allow, default, match, mode, require'],
    "match: {workloads: [Jobb]}": ['match.workloads[0]: unknown workload "Jobb"; did you mean "Job"?'],
    "match: {namespaceSelector: {matchLabels: {a: 1}}}": [
        "match.namespaceSelector.matchLabels.a: must be text, found the number 1; write it in quotes"
    ],
    "match: {namespaceSelector: {matchLabels: [a]}}": [
        "match.namespaceSelector.matchLabels: must be a map, found a list; write matchLabels: {team: research}"
    ],
    "match: {namespaceSelector: {matchExpressions: [{key: a, operator: In}]}}": [
        "match.namespaceSelector.matchExpressions[0].values: In must have at least one value; write values: [research]"
    ],
    "match: {namespaceSelector: {matchExpressions: [{key: a, operator: Exists, values: [b]}]}}": [
        "match.namespaceSelector.matchExpressions[0].values: Exists takes no values; remove them"
    ],
    "match: {podSelector: {}, workloads: [Job]}\nrequire: {capacity: [spot]}": [
        "match.podSelector: a ClusterGPUPolicy with require cannot have podSelector, because authors choose what it matches; "
        "move require to a policy that matches by namespaceSelector or gpus",
        "match.workloads: a ClusterGPUPolicy with require cannot have workloads, because authors choose what it matches; "
        "move require to a policy that matches by namespaceSelector or gpus",
    ],
    "allow: {nodeTemplates: [q]}": [
        'allow.nodeTemplates[0]: unknown node template "q"; none is defined: add a GPUNodeTemplate of that name'
    ],
    f"match: {{exclude: {{users: [{', '.join(map(str, range(257)))}]}}}}": ["match.exclude.users: has 257 values; at most 256 are allowed"],
}
TEMPLATE = {
    "labels: {}": "labels: must have at least one label, found an empty map; write labels: {karpenter.sh/nodepool: gpu-a100}",
    "capacity: [spot]": ": labels is missing; write labels: {karpenter.sh/nodepool: gpu-a100}",
    "labels: {'a b': c}": 'labels["a b"]: the text "a b" is not a label key',
    "labels: {a: b}\ngpus: {migProfiles: [1g.10gb]}": "gpus.migProfiles: only nodes that share by MIG have slices; write sharing: [MIG]",
    "labels: {a: b}\ngpus: {sharing: [MIG], migProfiles: [1g.9gb]}": 'gpus.migProfiles[0]: unknown MIG profile "1g.9gb"; '
    'did you mean "1g.5gb"?',
    "labels: {a: b}\ngpus: {gpuMemory: {min: 1}}": 'gpus.gpuMemory: unknown field "gpuMemory"; did you mean "memory"?',
    "labels: {a: b}\ngpus: {vendors: [nvida]}": 'gpus.vendors[0]: unknown GPU vendor "nvida"; did you mean "nvidia"?',
    "labels: {a: b}\ntaints: [{key: amd-dcm}]": 'taints[0].key: pods must never tolerate "amd-dcm": '
    "it keeps them off nodes that cannot run them; remove it",
}
OBJECTS = {
    "apiVersion: berth.dev/v1\nkind: GPUPolicy": ['apiVersion: the text "berth.dev/v1" is not known; write apiVersion: berth.dev/v1alpha1'],
    "kind: GPUPolicy": ["apiVersion: is missing; write apiVersion: berth.dev/v1alpha1"],
    "apiVersion: berth.dev/v1alpha1\nkind: GPUPolici": ['kind: unknown kind "GPUPolici"; did you mean "GPUPolicy"?'],
    "apiVersion: berth.dev/v1alpha1\nkind: [1]": [
        "kind: unknown kind a list; known: ClusterGPUPolicy, GPUNodeTemplate, GPUPolicy",
    ],
    "foo: bar": ["kind: is missing; write one of ClusterGPUPolicy, GPUPolicy, GPUNodeTemplate"],
    "apiVersion: v1\nkind: Pod": [
        'kind: a "Pod" of v1 is not a policy; this file may contain ClusterGPUPolicy, GPUPolicy, GPUNodeTemplate of berth.dev/v1alpha1'
    ],
    "apiVersion: berth.dev/v1alpha1\nkind: GPUPolicy\nmetadata: {name: Bad_Name}\nmode: Enforce": [
        'mode: unknown field "mode"; it belongs in spec: write spec.mode',
        "metadata.name: the text \"Bad_Name\" is not a valid object name; write lower-case letters, digits, '-' and '.', as in "
        "team-training",
        "metadata.namespace: is missing: a GPUPolicy belongs to a namespace; write namespace: ml-team",
        "spec: is missing; write spec: {default: {acceleratorTaints: Tolerate}}",
    ],
    "apiVersion: berth.dev/v1alpha1\nkind: GPUPolicy\nmetadata: {namespace: A.b}\nspecs: {}\nspec:": [
        'specs: unknown field "specs"; did you mean "spec"?',
        "metadata.name: is missing; write name: training",
        "metadata.namespace: the text \"A.b\" is not a valid namespace; write lower-case letters, digits and '-', as in ml-team",
        "spec: must be a map, found nothing (null); write spec: {default: {acceleratorTaints: Tolerate}}",
    ],
    "apiVersion: berth.dev/v1alpha1\nkind: ClusterGPUPolicy\nmetadata: {name: 3}\nspec: {default: {}}": [
        "metadata.name: the number 3 is not a valid object name; write lower-case letters, digits, '-' and '.', as in team-training"
    ],
    "apiVersion: berth.dev/v1alpha1\nkind: ClusterGPUPolicy\nmetadata: x\nspec: {default: {}}": [
        'metadata: must be a map, found the text "x"; write metadata: {name: training}'
    ],
    "apiVersion: berth.dev/v1alpha1\nkind: GPUNodeTemplate\nmetadata:\nspec: {}": [
        "metadata: is missing; write metadata: {name: training}",
        "spec: labels is missing; write labels: {karpenter.sh/nodepool: gpu-a100}",
    ],
    "apiVersion: berth.dev/v1alpha1\nkind: GPUNodeTemplate\nmetadata: {name: a, namespace: b}\nspec: {labels: {a: b}}": [
        "metadata.namespace: a GPUNodeTemplate belongs to the whole cluster; remove it",
    ],
    "apiVersion: berth.dev/v1alpha1\nkind: ClusterGPUPolicy\nmetadata: {name: a, namespace: b}\nspec: {default: {}}": [
        "metadata.namespace: a ClusterGPUPolicy belongs to the whole cluster; remove it, or write kind: GPUPolicy for one namespace",
    ],
    "apiVersion: v1\nkind: List\nitems: [{kind: List, items: []}]": ["items[0]: a List inside a List; write its items into the outer one"],
}


@pytest.mark.parametrize("spec", REQUIRE)
def test_require_is_strict(spec: str, catalog: Catalog) -> None:
    """Each mistake in require is told with its path, and the policy is left out."""
    policy_set, errors, _ = parse(written(f"require:\n  {spec}"), catalog)
    assert messages(errors) == [f"spec.require.{REQUIRE[spec]}"]
    assert policy_set == PolicySet()


@pytest.mark.parametrize("spec", DEFAULT)
def test_default_is_strict(spec: str, catalog: Catalog) -> None:
    """Each mistake in default is told with its path, and the policy is left out."""
    policy_set, errors, _ = parse(written(f"default: {{{spec}}}"), catalog)
    assert messages(errors) == [f"spec.default.{DEFAULT[spec]}"]
    assert policy_set == PolicySet()


@pytest.mark.parametrize("spec", SPEC, ids=lambda spec: spec[:60])
def test_spec_is_strict(spec: str, catalog: Catalog) -> None:
    """Each mistake elsewhere in a policy is told with its path, all at once."""
    assert messages(parse(written(spec), catalog)[1]) == [f"spec.{message}" for message in SPEC[spec]]


@pytest.mark.parametrize("spec", TEMPLATE)
def test_template_is_strict(spec: str, catalog: Catalog) -> None:
    """Each mistake in a template is told with its path, and the template is left out."""
    policy_set, errors, _ = parse(written(spec, "GPUNodeTemplate"), catalog)
    assert messages(errors) == [f"spec.{TEMPLATE[spec]}".replace("spec.:", "spec:")]
    assert policy_set == PolicySet()


@pytest.mark.parametrize("text", OBJECTS)
def test_object_is_strict(text: str, catalog: Catalog) -> None:
    """Each mistake around the spec is told with its path, all at once."""
    assert messages(parse(text, catalog)[1]) == OBJECTS[text]


def test_namespaced_policies_lack_three_fields(catalog: Catalog) -> None:
    """What only a cluster's owner may say is no field of a GPUPolicy."""
    spec = "match: {namespaceSelector: {}, exclude: {users: [a]}}\nallow: {tolerations: [{key: a}]}"
    assert messages(parse(written(spec, "GPUPolicy"), catalog)[1]) == [
        'spec.allow: a GPUPolicy has no "allow"; only a ClusterGPUPolicy has',
        'spec.match.namespaceSelector: a GPUPolicy has no "namespaceSelector"; only a ClusterGPUPolicy has',
        'spec.match.exclude: a GPUPolicy has no "exclude"; only a ClusterGPUPolicy has',
    ]


def test_namespaced_policies_may_pick_pods(catalog: Catalog) -> None:
    """A team may hang its own constraints on its own labels."""
    policy_set, errors, _ = parse(written("match: {workloads: [Job]}\nrequire: {capacity: [spot]}", "GPUPolicy"), catalog)
    assert errors == []
    assert policy_set.policies[0].id == "GPUPolicy/ml/x"


def test_unknown_instance_family_warns(catalog: Catalog) -> None:
    """The list of instance families is open: an unknown one is kept and said."""
    policy_set, errors, warnings = parse(written("require: {instanceFamilies: {notIn: [pd4, zz9]}}"), catalog)
    where = "berth: f.yaml, spec.require.instanceFamilies.notIn"
    assert errors == []
    assert warnings == [
        f'{where}[0]: unknown instance family "pd4", kept as written; did you mean "p4d"?',
        f'{where}[1]: unknown instance family "zz9", kept as written',
    ]
    assert policy_set.policies[0].require.machine.instance_families == InNotIn(not_in=("pd4", "zz9"))


def test_policy_that_does_nothing_warns(catalog: Catalog) -> None:
    """A policy without require, default and allow is understood and said to be idle."""
    policy_set, errors, warnings = parse(written("mode: Enforce"), catalog)
    assert (len(policy_set.policies), errors) == (1, [])
    assert warnings == ["berth: f.yaml, spec: has no require, default or allow, so it does nothing"]


def test_mistakes_do_not_hide_other_policies(catalog: Catalog) -> None:
    """Of several documents those without a mistake are kept, and messages say which document is meant."""
    bad = written("require: {families: {in: [hoper]}}").replace("name: x", "name: bad")
    policy_set, errors, _ = parse("---\n".join([written("default: {}"), bad, written("default: {}", "GPUPolicy")]), catalog)
    assert [policy.id for policy in policy_set.policies] == ["ClusterGPUPolicy/x", "GPUPolicy/ml/x"]
    assert errors == ['berth: f.yaml, document 2, spec.require.families.in[0]: unknown GPU family "hoper"; did you mean "hopper"?']


def test_same_name_twice(catalog: Catalog) -> None:
    """The first of two objects of one name stands; the second is an error that names the first."""
    policy_set, errors, _ = parse(written("default: {gracePeriod: 1m}") + "---\n" + written("default: {gracePeriod: 2m}"), catalog)
    assert [policy.default.grace for policy in policy_set.policies] == [60]
    assert errors == [
        "berth: f.yaml, document 2, metadata.name: ClusterGPUPolicy/x is already defined in f.yaml, document 1; rename or remove one"
    ]


def test_template_of_another_file(catalog: Catalog) -> None:
    """Templates are looked up in all documents, whatever their order."""
    policy = Document(file="a.yaml", value=documents(written("default: {nodeTemplate: x}"), "a")[0][0].value)
    template = Document(file="b.yaml", value=documents(written("labels: {a: b}", "GPUNodeTemplate"), "b")[0][0].value)
    policy_set, errors, _ = policy_parse.parse_objects([policy, template], catalog)
    assert errors == []
    assert (policy_set.policies[0].default.node_template, policy_set.templates[0].name) == ("x", "x")


def test_unknown_template_names_the_nearest(catalog: Catalog) -> None:
    """A policy that names a template which nobody defines is left out, with the nearest name."""
    text = written("default: {nodeTemplate: xx}") + "---\n" + written("labels: {a: b}", "GPUNodeTemplate")
    policy_set, errors, _ = parse(text, catalog)
    assert errors == ['berth: f.yaml, document 1, spec.default.nodeTemplate: unknown node template "xx"; did you mean "x"?']
    assert policy_set.policies == ()


def test_template_with_mistakes_takes_its_policies_along(catalog: Catalog) -> None:
    """A policy is not half understood: without its template it is left out too, and both are told."""
    text = written("default: {nodeTemplate: x}") + "---\n" + written("labels: {}", "GPUNodeTemplate")
    policy_set, errors, _ = parse(text, catalog)
    assert policy_set == PolicySet()
    assert errors[1] == 'berth: f.yaml, document 1, spec.default.nodeTemplate: the node template "x" has errors (f.yaml, document 2)'


def test_list_and_status_are_accepted(catalog: Catalog) -> None:
    """What kubectl get -o yaml prints can be fed back: a List, status, any metadata."""
    metadata = "{name: x, uid: u, labels: {a: b}}"
    item = f"{{apiVersion: berth.dev/v1alpha1, kind: ClusterGPUPolicy, metadata: {metadata}, spec: {{default: {{}}}}, status: 3}}"
    policy_set, errors, _ = parse(f"apiVersion: v1\nkind: List\nmetadata: {{}}\nitems: [{item}]", catalog)
    assert errors == []
    assert policy_set.policies == (Policy(name="x"),)


def test_values_are_stored_as_the_rules_want_them(catalog: Catalog) -> None:
    """Durations are seconds, sizes numbers, memory MiB rounded up, what is given twice counts once."""
    spec = """
default:
  protectFor: Always
  gracePeriod: 1h30m
  acceleratorTaints: Tolerate
  mig: {usableMemory: 9.5001Gi}
  models: {in: [A100, A100]}
  gpuMemory: {min: 40}
  longRuns: {over: 2h, capacity: [on-demand], unknownIsLong: false}
  tolerate: [{key: a, effect: NoExecute}]
"""
    default = parse(written(spec), catalog)[0].policies[0].default
    assert (default.protect_for, default.grace, default.accelerator_taints) == ("Always", 5400, True)
    assert default.mig == MigDefault(usable_mib=9729)
    assert default.machine == MachineFields(models=InNotIn(in_=("A100",)), gpu_memory=Bounds(min=40))
    assert default.long_runs == LongRuns(over=7200, capacity=("on-demand",), unknown_is_long=False)
    assert default.tolerate == (TolerationPattern(key="a", effect="NoExecute"),)


def test_template_is_stored_whole(catalog: Catalog) -> None:
    """A template says what its nodes are, their sharing and slices included."""
    spec = """
gpus: {memory: {min: 40}, sharing: [MIG], migProfiles: [1g.10gb]}
labels: {b: '', a: x}
taints: [{key: k, value: v}]
capacity: [spot]
"""
    template = parse(written(spec, "GPUNodeTemplate"), catalog)[0].templates[0]
    assert (template.machine, template.sharing, template.mig_profiles) == (MachineFields(gpu_memory=Bounds(min=40)), ("MIG",), ("1g.10gb",))
    assert (template.labels, template.taints) == ((("a", "x"), ("b", "")), (Taint(key="k", value="v"),))


def test_nothing_verified(catalog: Catalog) -> None:
    """Where the catalog has no verified figure, usableMemory is denied and says so."""
    bare = replace(catalog, gpus=tuple(gpu for gpu in catalog.gpus if gpu.model == "T4"))
    assert messages(parse(written("default: {mig: {usableMemory: 1Gi}}"), bare)[1]) == [
        'spec.default.mig.usableMemory: no MIG profile is verified to have "1Gi"; verified figures: none'
    ]


FIELDS = [
    "in", "notIn", "min", "max", "families", "models", "mode", "match", "require", "default", "allow", "gpus", "labels", "taints", "key",
    "value", "effect", "mig", "slice", "longRuns", "over", "capacity", "tolerate", "forbid", "podSelector", "matchLabels", "operator",
]  # fmt: skip
LEAVES = st.sampled_from([None, True, 3, 0.5, "hopper", "A100", "2h", "10gb", "spot", "In", "Exists", "Always", ""])
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=5))


@settings(max_examples=count(120, 2_000), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kind=st.sampled_from(["ClusterGPUPolicy", "GPUNodeTemplate"]), spec=st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=5))
def test_any_value_is_understood_or_told(kind: str, spec: dict[str, object], catalog: Catalog) -> None:
    """No value crashes the parser: an object is in the set exactly when nothing is wrong with it."""
    value = {"apiVersion": "berth.dev/v1alpha1", "kind": kind, "metadata": {"name": "x"}, "spec": spec}
    policy_set, errors, _ = policy_parse.parse_objects([Document(file="f", value=value)], catalog)
    assert (len(policy_set.policies) + len(policy_set.templates) == 1) is not bool(errors)
