"""The rows of denials, BERTH-1xx. A denial from which its actor is exempt becomes a warning, and counts
as ``skipped``."""

from __future__ import annotations

from policies.messages.row import Placement, Row


def _row(code: str, title: str, placement: tuple[Placement, ...] | None = None, *, of_value: bool = False, **templates: str) -> Row:
    named = {name.replace("_", " "): template for name, template in templates.items()}
    spared = None if placement is None else frozenset(placement)
    return Row(code=code, title=title, kind="denial", word="skipped", placement=spared, of_value=of_value, templates=named)


_OF_DEVICES = (
    _row(
        "BERTH-101",
        "a device is requested and limited in different numbers",
        no_limit='container "{container}" requests {asked} {name} and sets no limit',
        differs='container "{container}" requests {asked} {name} but its limit is {limit}',
        why="Devices can't be overcommitted.",
    ),
    _row(
        "BERTH-102",
        "an amount of devices that is no whole number",
        fact='container "{container}": "{amount}" of {name} is no whole number',
        fix="set {path} to a whole number",
        fix_shorter="set it to a whole number in {around}",
    ),
    _row(
        "BERTH-103",
        "cpu or memory is not guaranteed",
        fact="{who}: {name} has request {request}, limit {limit}; GPU pods here must be of QoS class Guaranteed",
    ),
    _row("BERTH-111", "more GPUs than a pod may have", fact="the pod asks for {count} GPUs, more than the {most} allowed here"),
    _row(
        "BERTH-112",
        "a number of GPUs that is not allowed",
        fact="the pod asks for {count} GPUs; allowed here: {allowed}",
        nothing="the pod asks for {count} GPUs; allowed here: none, the policies contradict each other",
        ask="ask for {number}",
        mend="ask the platform team to mend the policies",
    ),
    _row(
        "BERTH-113",
        "a whole GPU and a slice in one container",
        fact='container "{container}" asks for {whole} and {slice} at once, which no container can use together',
        fix="remove one of the two from {path}",
    ),
    _row(
        "BERTH-114",
        "a resource name that no node has",
        fact='container "{container}" asks for {name}, a resource that no node has',
        fix="write {right}",
    ),
    _row(
        "BERTH-115",
        "a slice that no GPU has",
        fact='container "{container}" asks for {name}, a slice that no GPU model has',
        write="write {right}",
        look="see `berth gpus` for the slices that exist",
    ),
    _row(
        "BERTH-116",
        "a claim for devices that others hold",
        fact="{request} asks for adminAccess: devices that others hold, past the counts and the sharing that are required here",
        fix="remove adminAccess from {request}",
    ),
    _row(
        "BERTH-117",
        "a shared GPU, where whole ones are required",
        fact="{shared}: it counts as {way}, and only {admitted:or} is allowed here",
        fraction="the pod asks for a fraction of a GPU",
        cut="{label} names GPUs that are cut into slices",
        resource="the pod asks for {name}",
        part="the pod asks for {name}, a part of a device",
        unknown="nobody knows how {name} is shared",
        mixed="the DeviceClass of {name} may give out slices",
        fix="ask for a whole GPU",
    ),
    _row(
        "BERTH-118",
        "a number of GPUs that nobody can tell",
        fact="{open}, and GPUs are limited here",
        part='container "{container}": {name} asks for a part of devices, of nobody knows how many',
        ask_by_name="ask for devices by a resource name that is known here",
        amount='container "{container}": the amount of {name} can\'t be read',
        set_whole="set {path} to a whole number",
        all='{kind} "{claim}" asks for all devices, or a number that can\'t be read',
        ask_for_count="ask for a count, with allocationMode ExactCount",
        fraction='{annotations}["{name}"] is no number',
        write_whole="write a whole number",
        gone="{path} is removed, and the pod runs on a part of a GPU",
        leave_it="leave it as it is",
    ),
)

_OF_PLACEMENT = (
    _row(
        "BERTH-121",
        "the pod and the policies have no node in common",
        ("left", "all"),
        one="{own:and} is outside {demands:and}",
        several="{own:and} are outside {demands:and}",
        resource="resource {name}",
        nowhere="resource {name} (a slice that no machine here has)",
        count="{count} of {name} in one pod",
        of_template="{authored} (GPUNodeTemplate {template})",
        use_or_remove="use {allowed}, or remove it",
        fewer="ask for fewer per pod",
        ask="ask for {name}",
        ask_which="ask the platform team which GPUs are allowed here",
        ask_platform="ask the platform team: nothing of {vendors:or} is allowed here",
        every_term="Every node affinity term fails.",
    ),
    _row(
        "BERTH-122",
        "the policies leave no GPU between them",
        ("left", "all"),
        one="{demands:and} leaves no GPU: this is a policy conflict, not your pod",
        several="{demands:and} leave no GPU: this is a policy conflict, not your pod",
        divided="{demands:and} leave no GPU that labels tell apart: this is a policy conflict, not your pod",
    ),
    _row(
        "BERTH-123",
        "the stored pod may land outside",
        ("all",),
        no_affinity="the pod has no required node affinity, so it selects nodes outside {demands:and}",
        term="nodeSelectorTerms[{index}] selects nodes outside {demands:and}",
        fix="create the pod again (controllers do so by themselves)",
        undone="Likely: another webhook removed the node affinity that Berth wrote.",
    ),
    _row(
        "BERTH-124",
        "the node that the pod names is outside",
        ("node", "all"),
        outside="the node that {where} names has {label}, outside {demands:and}",
        elsewhere="the node that {where} names is of {platform}, where {demands:and} is not judged",
        match_fields="matchFields metadata.name",
        fix="name another node, or none",
        platforms="Platforms in force here: {platforms}.",
    ),
    _row(
        "BERTH-125",
        "a value that nobody knows, where only known ones are allowed",
        ("all",),
        of_value=True,
        fact="{authored} is not known, and {demands:and} admits only known values",
        written="Berth would write {key} {operator} [{values}]. A new GPU is added to the catalog with --catalog.",
    ),
    _row(
        "BERTH-126",
        "a class of devices that is not allowed",
        class_outside='{request}: no device of the class "{device_class}" meets {wanted}',
        class_unknown='{request}: nobody knows which devices the class "{device_class}" has, so it does not meet {wanted}',
        ask_for_class="ask for a class that is allowed here",
        wanted="Required: {wanted}.",
        nobody_knows='A class is known by the driver in its selectors (device.driver == "..."), or by its own name; one that nobody knows'
        " is inside no in and outside no notIn. The platform team adds a driver with --catalog (draDrivers, otherDrivers).",
        open="{open}, and {demands:and} is required here",
        resource="nobody knows what devices {name} stands for",
        ask_by_name="ask for GPUs by a resource name that is known here",
        driver='{kind} "{claim}" names a DeviceClass of no known driver',
        name_class="name a class of a known driver",
        device="{name} is no device of {demands:and}",
        ask_for_device="ask for a device that is allowed here",
    ),
)

_OF_THE_REST = (
    _row(
        "BERTH-131",
        "a toleration that is forbidden here",
        fact="{path} tolerates the taint {taint}, which is forbidden here",
        remove_path="remove {path}",
        name_keys="name the keys that {path} is for",
        keyless="A toleration without a key tolerates every taint.",
        of_claim="tolerations[{index}] of {request} tolerates the device taint {taint}, which is forbidden here",
        remove_that="remove that toleration",
    ),
    _row(
        "BERTH-132",
        "a node behind a taint that is forbidden here",
        fact="{path} names a node with the taint {taint}, which is forbidden here",
        fix="remove {path} and let the scheduler choose",
    ),
    _row(
        "BERTH-133",
        "a grace period below the minimum",
        fact="{path} is {seconds}, below the minimum of {least} s here",
        fix="set {path} to at least {least}",
        undone="Likely: another webhook lowered what Berth wrote.",
        opt_out="A service may opt out: {annotation}: grace.",
        conflict="{one} (gracePeriod.min {least}) and {other} (gracePeriod.max {most}) leave no grace period: this is a policy conflict,"
        " not your pod",
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
        "a protection that lasts too long",
        fact='{path} is "{value}", which protects for longer than the maximum of {most} here',
        set_or_remove='set it to "{most}" or remove it',
    ),
    _row(
        "BERTH-151",
        "an annotation that can't be read",
        of_value=True,
        fact='{path} is "{value}"',
        duration="write a duration such as 90m, 6h or 1h30m",
        size="write the nominal size of a slice that exists, such as {nearest}gb, or none",
        sizes="Known sizes: {sizes}.",
        opt_out="write grace, the only thing to opt out of",
    ),
    _row(
        "BERTH-152",
        "a node template that is not to be had",
        of_value=True,
        not_allowed='{path} is "{name}", a template that no policy allows here',
        not_there='{path} is "{name}", a template that does not exist',
        forbidden='{path} is "{name}", a template whose taint is forbidden here',
        nothing_left='{path} is "{name}", a template that leaves no node here',
        ask="ask the platform team to add it to allow.nodeTemplates",
        write='write "{near}"',
        remove_annotation="remove the annotation",
        choose_another="choose another, or remove what else the pod asks for",
        allowed="Allowed here: {templates}.",
        none_allowed="No template is allowed in this namespace.",
        means="{name} means {constraints:and}.",
        means_any="{name} means any GPU.",
    ),
    _row(
        "BERTH-153",
        "a slice that is not allowed here",
        fact="{path} asks for a slice of {size}, which the policies here do not admit",
        fix="remove the annotation, or ask for another size",
    ),
)

ROWS = (*_OF_DEVICES, *_OF_PLACEMENT, *_OF_THE_REST)
