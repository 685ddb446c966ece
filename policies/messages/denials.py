"""The rows of denials, BERTH-1xx. A denial from which its actor is exempt becomes a warning, and counts
as ``skipped``."""

from __future__ import annotations

from policies.messages.row import MessageRow, Placement


def _row(code: str, title: str, placement: tuple[Placement, ...] | None = None, *, of_value: bool = False, **templates: str) -> MessageRow:
    named = {name.replace("_", " "): template for name, template in templates.items()}
    spared = None if placement is None else frozenset(placement)
    return MessageRow(code=code, title=title, kind="denial", word="skipped", placement=spared, of_value=of_value, templates=named)


_OF_DEVICES = (
    _row(
        "BERTH-101",
        "request and limit of a device differ",
        no_limit='container "{container}" requests {asked} {name} and sets no limit',
        differs='container "{container}" requests {asked} {name} but its limit is {limit}',
        why="Devices can't be overcommitted.",
    ),
    _row(
        "BERTH-102",
        "a device count that is not a whole number",
        fact='container "{container}": {name} "{amount}" is not a whole number',
        fix="set {path} to a whole number",
        fix_shorter="set it to a whole number in {around}",
    ),
    _row(
        "BERTH-103",
        "cpu or memory is not guaranteed",
        fact="{who}: {name} has request {request}, limit {limit}; GPU pods here must have QoS class Guaranteed",
    ),
    _row("BERTH-111", "more GPUs than a pod may have", fact="the pod requests {count} GPUs, more than the {most} allowed here"),
    _row(
        "BERTH-112",
        "a number of GPUs that is not allowed",
        fact="the pod requests {count} GPUs; allowed here: {allowed}",
        nothing="the pod requests {count} GPUs; allowed here: none, because policies conflict",
        ask="request {number}",
        fix_policies="ask the platform team to fix the policies",
    ),
    _row(
        "BERTH-113",
        "a whole GPU and a MIG slice in one container",
        fact='container "{container}" requests both {whole} and {slice}, but no container can use both',
        fix="remove one of them from {path}",
    ),
    _row(
        "BERTH-114",
        "a resource name that no node has",
        fact='container "{container}" requests {name}, a resource that no node has',
        fix="write {right}",
    ),
    _row(
        "BERTH-115",
        "a MIG slice that no GPU has",
        fact='container "{container}" requests {name}, a MIG slice that no GPU has',
        write="write {right}",
        look="run `berth gpus` to list the slices",
    ),
    _row(
        "BERTH-116",
        "a claim with adminAccess",
        fact="{request} sets adminAccess, which grants devices in use by others and bypasses the count and sharing limits",
        fix="remove adminAccess from {request}",
    ),
    _row(
        "BERTH-117",
        "a shared GPU where whole GPUs are required",
        fact="{shared} (counts as {way}), but only {admitted:or} is allowed here",
        fraction="the pod requests a fraction of a GPU",
        cut="{label} selects GPUs split into slices",
        resource="the pod requests {name}",
        part="the pod requests {name}, a part of a device",
        unknown="the sharing of {name} is unknown",
        mixed="the DeviceClass of {name} may allocate slices",
        fix="request a whole GPU",
    ),
    _row(
        "BERTH-118",
        "an unknown number of GPUs",
        fact="{open}, but GPUs are limited here",
        part='container "{container}": {name} requests parts of an unknown number of devices',
        ask_by_name="request devices by a resource name that Berth knows",
        amount='container "{container}": the amount of {name} is invalid',
        set_whole="set {path} to a whole number",
        all='{kind} "{claim}" requests all devices, or an invalid number',
        ask_for_count="set allocationMode: ExactCount and a count",
        fraction='{annotations}["{name}"] is not a number',
        write_whole="write a whole number",
        gone="{path} is removed, but the pod runs on part of a GPU",
        leave_it="keep it unchanged",
    ),
)

_OF_PLACEMENT = (
    _row(
        "BERTH-121",
        "the pod and the policies have no node in common",
        ("left", "all"),
        one="{own:and} violates {demands:and}",
        several="{own:and} violate {demands:and}",
        resource="resource {name}",
        nowhere="resource {name} (a slice that no machine here has)",
        count="{count} {name} in one pod",
        too_many="no machine that meets {demands:and} has {count} {name}",
        of_template="{authored} (GPUNodeTemplate {template})",
        use_or_remove="use {allowed}, or remove it",
        fewer="request fewer per pod",
        ask="request {name}",
        ask_which="ask the platform team which GPUs are allowed here",
        ask_platform="ask the platform team: no {vendors:or} device is allowed here",
        every_term="Every node affinity term fails.",
    ),
    _row(
        "BERTH-122",
        "policies that together allow no GPU",
        ("left", "all"),
        one="{demands:and} allows no GPU: a policy conflict, not a pod error",
        several="{demands:and} together allow no GPU: a policy conflict, not a pod error",
        divided="{demands:and} together allow no GPU that labels can select: a policy conflict, not a pod error",
    ),
    _row(
        "BERTH-123",
        "the pod lost its required node affinity",
        ("all",),
        no_affinity="the pod has no required node affinity, so its node may violate {demands:and}",
        term="nodeSelectorTerms[{index}] selects nodes that violate {demands:and}",
        fix="create the pod again (controllers retry automatically)",
        undone="Likely cause: another webhook removed the node affinity that Berth wrote.",
    ),
    _row(
        "BERTH-124",
        "the named node violates the policies",
        ("node", "all"),
        outside="the node in {where} has {label}, which violates {demands:and}",
        elsewhere="the node in {where} is on {platform}, where {demands:and} can't be checked",
        match_fields="matchFields metadata.name",
        fix="name another node, or none",
        platforms="Platforms in use here: {platforms}.",
    ),
    _row(
        "BERTH-125",
        "an unknown value where only known values are allowed",
        ("all",),
        of_value=True,
        fact="{authored} is unknown, and {demands:and} allows only known values",
        written="Allowed: {key} {operator} [{values}]. The platform team can add a new GPU with --catalog.",
    ),
    _row(
        "BERTH-126",
        "a DeviceClass that is not allowed",
        class_outside='{request}: no device of class "{device_class}" meets {wanted}',
        class_unknown='{request}: the devices of class "{device_class}" are unknown, so the request does not meet {wanted}',
        ask_for_class="use a class that is allowed here",
        wanted="Required: {wanted}.",
        class_is_unknown='Berth knows a class by the driver in its selectors (device.driver == "...") or by its name. An unknown class'
        " satisfies neither in nor notIn. The platform team can add a driver with --catalog (draDrivers, otherDrivers).",
        open="{open}, and {demands:and} is required here",
        resource="the devices behind {name} are unknown",
        ask_by_name="request GPUs by a resource name that Berth knows",
        driver='{kind} "{claim}" names a DeviceClass of an unknown driver',
        name_class="name a class of a known driver",
        device="{name} violates {demands:and}",
        ask_for_device="request a device that is allowed here",
    ),
)

_OF_THE_REST = (
    _row(
        "BERTH-131",
        "a forbidden toleration",
        fact="{path} tolerates the taint {taint}, which is forbidden here",
        remove_path="remove {path}",
        name_keys="name the taint keys in {path}",
        keyless="A toleration without a key tolerates every taint.",
        of_claim="tolerations[{index}] of {request} tolerates the device taint {taint}, which is forbidden here",
        remove_that="remove that toleration",
    ),
    _row(
        "BERTH-132",
        "a named node with a forbidden taint",
        fact="{path} names a node with the taint {taint}, which pods may not tolerate here",
        fix="remove {path} and let the scheduler choose",
    ),
    _row(
        "BERTH-133",
        "a grace period below the minimum",
        fact="{path} is {seconds}, below the minimum of {least} s here",
        fix="set {path} to at least {least}",
        undone="Likely cause: another webhook lowered the value that Berth wrote.",
        opt_out="A service may opt out: {annotation}: grace.",
        conflict="{one} (gracePeriod.min {least}) and {other} (gracePeriod.max {most}) together allow no grace period: a policy"
        " conflict, not a pod error",
        both="Required: {one} spec.require.gracePeriod.min {least} and {other} spec.require.gracePeriod.max {most}.",
    ),
    _row(
        "BERTH-141",
        "a grace period above the maximum",
        fact="{path} is {seconds}, above the maximum of {most} s here",
        fix="set {path} to at most {most}",
        of_probe="set it to at most {most}, or remove it",
        opt_out='The annotation {annotation}: "grace" only stops Berth from raising it.',
    ),
    _row(
        "BERTH-142",
        "disruption protection that lasts too long",
        fact='{path} is "{value}", which protects the node for longer than the maximum of {most} here',
        set_or_remove='set it to "{most}" or remove it',
    ),
    _row(
        "BERTH-151",
        "an invalid annotation",
        of_value=True,
        fact='{path} is "{value}"',
        duration="write a duration such as 90m, 6h or 1h30m",
        size="write the size of an existing slice, such as {nearest}gb, or none",
        sizes="Known sizes: {sizes}.",
        opt_out="write grace, the only allowed value",
    ),
    _row(
        "BERTH-152",
        "a node template that can't be used",
        of_value=True,
        not_allowed='{path} is "{name}", a template that no policy allows here',
        not_there='{path} is "{name}", a template that does not exist',
        forbidden='{path} is "{name}", a node template with a taint that pods may not tolerate here',
        nothing_left='{path} is "{name}", a template that matches no node here',
        ask="ask the platform team to add it to allow.nodeTemplates",
        write='write "{near}"',
        remove_annotation="remove the annotation",
        choose_another="choose another, or relax the pod's other constraints",
        allowed="Allowed here: {templates}.",
        none_allowed="No template is allowed in this namespace.",
        means="{name} means {constraints:and}.",
        means_any="{name} means any GPU.",
    ),
    _row(
        "BERTH-153",
        "a MIG slice that is not allowed",
        fact="{path} requests a slice of {size}, a size that policies do not allow here",
        fix="remove the annotation, or request another size",
    ),
)

ROWS = (*_OF_DEVICES, *_OF_PLACEMENT, *_OF_THE_REST)
