"""An explanation on one screen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from analysis.admission import report
from analysis.conditions.server_options import describe_platforms
from analysis.why import fixes, queued, sentences
from analysis.why.explanation import Explanation, Remedy, Told
from analysis.why.gates import describe_gates
from analysis.why.sentences import list_some
from cli.output import stderr
from cli.output.table import Styled
from cli.terminal.screen import PLAIN, Style, Terminal
from documents.printable import counted, printable
from kube.pod import field_of
from kube.tree import dotted
from policies.placement import unchecked
from policies.placement.together import Room
from policies.verdict import Violation

MOST_PLACES = 6
MOST_REASONS = 4
MOST_EDITS = 8
_STYLES: Mapping[str, Style] = {"denied": "bad", "pending": "unsure", "admitted": "good", "waiting": "unsure"}
NOWHERE = {True: "There are no nodes and no NodePools.", False: "No node and no NodePool is known here."}
"""What is said without a place, by whether all nodes are known."""
WIDEST = 400
"""Characters of what somebody else tells: the scheduler's sentence about ten reasons."""


def format_why(found: Explanation, now: datetime, screen: Terminal = PLAIN) -> str:
    """Return what is shown."""
    lines: list[str | Styled] = [*head(found, now), *map(report.warning_line, found.warnings)]
    lines += [*(queued.position_lines(found.queue) if found.queue else ()), *_words(found.told, now)]
    match found.state:
        case "denied":
            lines += _denied(found)
        case "admitted":
            lines += _admitted(found)
        case _:
            lines += _places(found)
            lines += _audit_outcomes(found)
    if found.beside:
        lines += ["", *sentences.other_workloads(found, stderr.name())]
    if found.unread:
        lines += ["", f"Incomplete: {'; '.join(found.unread)}."]
    if found.platforms is not None:
        lines += ["", f"Platforms: {describe_platforms(found.platforms)}."]
    return "".join(f"{_shown(line, screen)}\n" for line in lines)


def _shown(line: str | Styled, screen: Terminal) -> str:
    return printable(line) if isinstance(line, str) else screen.paint(line.style, printable(line.text))


def head(found: Explanation, now: datetime) -> Iterator[str | Styled]:
    """Yield what it is, where, and since when."""
    yield Styled(sentences.state(found, now), _STYLES.get(found.state))
    if found.nominated:
        yield f"Nominated for node {found.nominated}: pods of lower priority are preempted first."
    yield from sentences.template_lines(found)


def _words(told: Iterable[Told], now: datetime) -> Iterator[str]:
    for one in told:
        yield f"  {one.who}, {one.reason}, {sentences.since(one.at, now)}: {printable(' '.join(one.text.split()), WIDEST)}"


def _places(found: Explanation) -> Iterator[str | Styled]:
    if found.outlook is None or "nodes" in found.unchecked:
        if found.state in ("pending", "proposed"):
            if found.outlook == "never":
                yield from _verdict(found)
            yield "Nodes are unknown here, so there are no reasons by node and no fix."
            yield "Add a dump of them: --from nodes.yaml, and --kubeconfig FILE if a cluster is read."
        return
    yield from ("", "Where it could run:") if found.where else ("", NOWHERE[found.outlook == "never"])
    for one in found.where[:MOST_PLACES]:
        yield f"  {sentences.describe_place(one)}"
        if not one.blockers:
            yield "    no blocker found"
        shown = len(one.blockers) if len(one.blockers) == MOST_REASONS + 1 else MOST_REASONS
        for blocker, count in one.blockers[:shown]:
            some = f" (on {count} of {len(one.names)})" if count < len(one.names) else ""
            yield f"    {sentences.blocker_of(found, blocker)}{some}"
        if len(one.blockers) > shown:
            yield f"    and {len(one.blockers) - shown} more reasons"
    if len(found.where) > MOST_PLACES:
        yield f"  and {len(found.where) - MOST_PLACES} more groups with more blockers: {stderr.name()} why -o json"
    yield ""
    yield from _verdict(found)


def _verdict(found: Explanation) -> Iterator[str | Styled]:
    not_checked = unchecked.words(found.unchecked)
    if found.outlook == "now":
        blocker = "No blocker found, except the warnings above" if found.warnings else "No blocker found"
        some = f"{blocker}; not checked: {not_checked}." if not_checked else f"{blocker}."
        yield Styled(f"{blocker}: it fits now.", "good") if not (not_checked or found.refusals) else some
        return
    if not_checked:
        yield f"Not checked: {not_checked}."
    crowd = list(_crowd(found))
    yield from crowd
    if found.rollout is not None:
        yield from sentences.rollout_lines(found.rollout, found.namespace, found.file)
        return
    if found.gates:
        gates = list_some(describe_gates(found.gates))
        yield Styled(f"No scheduler considers it until its scheduling gates are removed: {gates}.", "unsure")
    if crowd or (found.gates and found.outlook == "later" and found.remedy is None):
        return
    if found.outlook == "later" and (node := sentences.lacking_node(found)):
        yield f"It needs no change: it waits until node {node} offers what its labels say. To find the cause: {stderr.name()} scan"
        return
    if found.refusals and found.outlook in ("later", "never"):
        ends = "until the warnings above are dealt with" if found.outlook == "never" else "until other pods of the namespace end"
        yield Styled(f"Its pods are not created {ends}.", "bad")
    elif found.outlook == "later":
        yield "It needs no change: it waits until what blocks it ends, such as other pods."
    elif found.outlook == "never":
        yield Styled("It can never be scheduled as written.", "bad")
    elif found.outlook == "unknown" and any(place.outlook == "now" for place in found.where):
        yield "No blocker found; what is not checked decides whether it can be scheduled."
        return
    elif found.outlook == "unknown":
        yield "It is unknown whether it can be scheduled: not all nodes, machines or schedulers are known here."
    remedy = found.remedy
    if remedy is None:
        return
    if remedy.anew:
        yield "Recreate it: Berth will add what is missing, by policies in Enforce, and then it fits. It was created while Berth did not"
        yield "answer, or Berth is not called in this namespace; there, make the change yourself."
    if remedy.found.fix is None and not remedy.anew:
        yield sentences.no_change(found.outlook, remedy.found)
        if absent := sentences.absent_resources(remedy):
            yield absent
    elif remedy.edits:
        yield from _remedy(found, remedy)
    for violation in remedy.found.forbidden[:2]:
        yield f"A smaller change would be denied by {list_some(violation.policies)}: {violation}"


def _crowd(explanation: Explanation) -> Iterator[str]:
    """Yield for how many pods there is room, where one has a place and not all have, and what becomes of the others."""
    room = explanation.room
    if room is None or room.outlook != explanation.outlook or all(place.outlook != "now" for place in explanation.where):
        return
    if room.now is None:
        yield f"One pod has a place; it is unknown whether all {room.pods} that it has at once have one."
        return
    yield f"There is room for {room.now} of its {room.pods} pods now. {_rest(room)}"


def _rest(room: Room) -> str:
    if room.empty is not None and room.empty < room.pods:
        return f"Even when empty, the nodes have room for {room.empty}: add nodes, or ask for fewer pods."
    return "The others wait until more is free."


def _remedy(found: Explanation, remedy: Remedy) -> Iterator[str]:
    assert remedy.found.fix is not None
    steps = remedy.steps
    first = "To run now, the" if found.outlook == "later" else "The"
    whose = f"{remedy.kind} {remedy.name}" if remedy.name else found.title
    where = f" (in {dotted(remedy.template)})" if remedy.template else ""
    yield f"{first} smallest change ({counted(steps, 'step')}) to the pod of {whose}{where}:"
    for edit in remedy.edits[:MOST_EDITS]:
        yield f"  {sentences.edit(edit, remedy.place)}"
    for edit in remedy.edits_beside[:MOST_EDITS]:
        yield f"  in another template: {sentences.edit(edit)}"
    yield from sentences.comes_to(remedy, found.pods)
    what = f"{f'{found.title} ' if found.beside else ''}-f {found.file}" if found.file else f"{found.title} -n {found.namespace}"
    yield f"To apply it: {stderr.name()} why {what} --fix fix.yaml, then {fixes.command(remedy.kind, remedy.name, 'fix.yaml')}"


def _denied(found: Explanation) -> Iterator[str]:
    yield ""
    if found.unanswered:
        yield "Berth did not answer the API server, which then denies GPU pods. No change is needed: what creates its pods tries again, and"
        yield "they are created once a replica of Berth is ready: kubectl get pods -A -l app.kubernetes.io/name=berth"
        return
    if not found.denials and found.unread_policies:
        yield "Berth's policies could not be read here, so there is no fix. The message above says what denied its pods."
        yield 'Ask for the ClusterRole "berth-guardrails-view" to see the policies.'
        return
    if not found.denials:
        yield "No policy would deny its pods as the policies are now; the message above says what denied them."
        return
    yield "Denied by:"
    for violation in found.denials:
        yield from _denial(violation, "Kubernetes itself, whatever the policies are" if found.invalid else "Berth")
    yield ""
    if found.remedy is not None and found.remedy.edits:
        yield from _remedy(found, found.remedy)
        return
    yield f"Check a fixed manifest before you apply it: {stderr.name()} why -f FILE"


def _denial(one: Violation, who: str) -> Iterator[str]:
    """Yield a denial. ``who`` denies the object if no policy does."""
    yield f"  {list_some(one.policies) or who}{_fields(one)}"
    yield f"    {one.code}: {one.fact_at(dotted)}"
    yield f"    fix: {one.fix_at(dotted)}"


def _fields(one: Violation) -> str:
    names = [name for _, name in one.fields]
    return f", {list_some(names)}" if names else ""


def _admitted(found: Explanation) -> Iterator[str]:
    yield ""
    if found.wrote:
        yield "Written by policies:"
        for entry in found.wrote:
            yield f"  {entry['path']}: {list_some(entry['by'])} ({entry['rule']})"
    elif found.summary:
        yield f"Policies made {found.summary} edits; their record was too long to keep in full."
    else:
        yield "No policy changed it."
    if found.policies:
        yield f"Policies that apply to it: {list_some(found.policies)}."
    if found.missing:
        fields = list_some(dict.fromkeys(field_of(edit.path) for edit in found.missing))
        yield f"It lacks what policies in Enforce write ({fields}): it was created while Berth did not answer, or under other policies."
    for violation in found.outgrown:
        yield f"It would be denied now: {violation}"
    yield from _audit_outcomes(found)


def _audit_outcomes(explanation: Explanation) -> Iterator[str]:
    for one in explanation.audit_outcomes:
        if one.violations:
            yield f"{one.policy} ({one.mode}) would deny it in Enforce: {one.violations[0]}"
        elif one.edits or one.dropped:
            fields = list_some(dict.fromkeys(field_of(edit.path) for edit in (*one.edits, *one.dropped)))
            yield f"{one.policy} ({one.mode}) would change {fields} in Enforce."
