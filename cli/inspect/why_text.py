"""An explanation on one screen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from analysis.why import fixes, queued, sentences
from analysis.why.explanation import Explanation, Remedy, Told
from analysis.why.sentences import list_some
from cli.output import stderr
from cli.output.table import Styled
from cli.terminal.screen import PLAIN, Style, Terminal
from documents.printable import counted, printable
from kube.pod import field_of
from kube.tree import dotted
from policies.verdict import Violation

MOST_PLACES = 6
MOST_REASONS = 4
MOST_EDITS = 8
_STYLES: Mapping[str, Style] = {"denied": "bad", "pending": "unsure", "admitted": "good", "waiting": "unsure"}
WIDEST = 400
"""Characters of what somebody else tells: the scheduler's sentence about ten reasons."""


def format_why(found: Explanation, now: datetime, screen: Terminal = PLAIN) -> str:
    """Return what is shown."""
    lines: list[str | Styled] = [*head(found, now), *(queued.position_lines(found.queue) if found.queue else ()), *_words(found.told, now)]
    match found.state:
        case "denied":
            lines += _denied(found)
        case "admitted":
            lines += _admitted(found)
        case _:
            lines += _places(found)
            lines += _audit_outcomes(found)
    if found.unread:
        lines += ["", f"Incomplete: {'; '.join(found.unread)}."]
    return "".join(f"{_shown(line, screen)}\n" for line in lines)


def _shown(line: str | Styled, screen: Terminal) -> str:
    return printable(line) if isinstance(line, str) else screen.paint(line.style, printable(line.text))


def head(found: Explanation, now: datetime) -> Iterator[str | Styled]:
    """Yield what it is, where, and since when."""
    yield Styled(sentences.state(found, now), _STYLES.get(found.state))
    if found.nominated:
        yield f"Nominated for node {found.nominated}: pods of lower priority are preempted first."


def _words(told: Iterable[Told], now: datetime) -> Iterator[str]:
    for one in told:
        yield f"  {one.who}, {one.reason}, {sentences.since(one.at, now)}: {printable(' '.join(one.text.split()), WIDEST)}"


def _places(found: Explanation) -> Iterator[str | Styled]:
    if found.outlook is None:
        if found.state in ("pending", "proposed"):
            yield "Nodes are unknown here, so there are no reasons by node and no fix."
            yield "Add a dump of them: --from nodes.yaml, and --kubeconfig FILE if a cluster is read."
        return
    yield from ("", "Where it could run:") if found.where else ("", "There are no nodes and no NodePools.")
    for one in found.where[:MOST_PLACES]:
        yield f"  {sentences.describe_place(one)}"
        if not one.blockers:
            yield "    no blocker found"
        for blocker, count in one.blockers[:MOST_REASONS]:
            some = f" (on {count} of {len(one.names)})" if count < len(one.names) else ""
            yield f"    {sentences.blocker(blocker)}{some}"
        if len(one.blockers) > MOST_REASONS:
            yield f"    and {len(one.blockers) - MOST_REASONS} more reasons"
    if len(found.where) > MOST_PLACES:
        yield f"  and {len(found.where) - MOST_PLACES} more groups with more blockers: {stderr.name()} why -o json"
    if found.unjudged:
        yield f"Not checked: {list_some(sentences.UNJUDGED.get(name, name) for name in found.unjudged)}; see the scheduler's message."
    yield ""
    yield from _verdict(found)


def _verdict(found: Explanation) -> Iterator[str | Styled]:
    if found.outlook == "now":
        if found.room is not None and found.room < found.pods:
            yield f"There is room for {found.room} of its {found.pods} pods now. {_rest(found)}"
        elif found.unjudged:
            yield "Only what is not checked can block it."
        else:
            yield Styled("No blocker found: it fits now.", "good")
        return
    if found.outlook == "later" and (node := sentences.lacking_node(found)):
        yield f"It needs no change: it waits until node {node} offers what its labels say. To find the cause: {stderr.name()} scan"
        return
    if found.outlook == "later":
        yield "It needs no change: it waits until what blocks it ends, such as other pods."
    elif found.outlook == "never":
        yield Styled("It can never be scheduled as written.", "bad")
    elif found.outlook == "unknown":
        yield "It is unknown whether it can be scheduled: not all nodes, machines or schedulers are known here."
    remedy = found.remedy
    if remedy is None:
        return
    if remedy.anew:
        yield "Recreate it: Berth will add what is missing, by policies in Enforce, and then it fits. It was created while Berth did not"
        yield "answer, or Berth is not called in this namespace; there, make the change yourself."
    if remedy.found.fix is None and not remedy.anew:
        yield "No change to it fixes that: no toleration, label, or resource name or amount helps."
    elif remedy.edits:
        yield from _remedy(found, remedy)
    for violation in remedy.found.forbidden[:2]:
        yield f"A smaller change would be denied by {list_some(violation.policies)}: {violation}"


def _rest(explanation: Explanation) -> str:
    """Return what becomes of the pods for which there is no room."""
    if explanation.most is not None and explanation.most < explanation.pods:
        return f"Even when empty, the nodes have room for {explanation.most}: add nodes, or ask for fewer pods."
    return "The others wait until more is free."


def _remedy(found: Explanation, remedy: Remedy) -> Iterator[str]:
    assert remedy.found.fix is not None
    steps = remedy.steps
    first = "To run now, the" if found.outlook == "later" else "The"
    whose = f"{remedy.kind} {remedy.name}" if remedy.name else found.title
    yield f"{first} smallest change ({counted(steps, 'step')}) to the pod of {whose}:"
    for edit in remedy.edits[:MOST_EDITS]:
        yield f"  {sentences.edit(edit)}"
    for edit in remedy.edits_beside[:MOST_EDITS]:
        yield f"  in another template: {sentences.edit(edit)}"
    yield from sentences.comes_to(remedy, found.pods)
    what = f"-f {found.file}" if found.file else f"{found.title} -n {found.namespace}"
    yield f"To apply it: {stderr.name()} why {what} --fix fix.yaml, then {fixes.command(remedy.kind, remedy.name, 'fix.yaml')}"


def _denied(found: Explanation) -> Iterator[str]:
    yield ""
    if not found.denials:
        yield "No Berth policy that is known here denies its pods; the message above names what did."
        return
    yield "Denied by:"
    for one in found.denials:
        yield from _denial(one)
    yield ""
    if found.remedy is not None and found.remedy.edits:
        yield from _remedy(found, found.remedy)
        return
    yield f"Check a fixed manifest before you apply it: {stderr.name()} why -f FILE"


def _denial(one: Violation) -> Iterator[str]:
    yield f"  {list_some(one.policies) or 'Berth'}{_fields(one)}"
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


def _audit_outcomes(found: Explanation) -> Iterator[str]:
    for one in found.audit_outcomes:
        if one.violations:
            yield f"{one.policy} ({one.mode}) would deny it in Enforce: {one.violations[0]}"
        elif one.edits or one.dropped:
            fields = list_some(dict.fromkeys(field_of(edit.path) for edit in (*one.edits, *one.dropped)))
            yield f"{one.policy} ({one.mode}) would change {fields} in Enforce."
