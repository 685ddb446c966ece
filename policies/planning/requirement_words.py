"""Requirements on nodes, of a pod's author and of policies, in the form in which messages repeat them."""

from __future__ import annotations

from collections.abc import Sequence

from kube.tree import Path
from policies.messages import At, Phrase, cut_text, phrase
from policies.offers.constraints import Constraint
from policies.patch.record import APPLIED
from policies.planning.feasibility import SELECTOR, AuthorExpression, list_bracketed
from policies.planning.plan import Plan

NODE_SELECTOR: Path = ("spec", "nodeSelector")


def author_path(authored: AuthorExpression) -> At | str:
    """Return the path: ``spec.nodeSelector`` or ``nodeSelectorTerms[0].matchExpressions[1]``."""
    return At(NODE_SELECTOR) if authored.where == SELECTOR else authored.where


def describe_expression(authored: AuthorExpression) -> Phrase:
    """Return the path and expression: ``spec.nodeSelector team=ml`` or
    ``nodeSelectorTerms[0].matchExpressions[1] team In [ml]``."""
    if authored.where == SELECTOR:
        return phrase("selector", where=At(NODE_SELECTOR), key=authored.written, value=authored.values[0])
    if authored.values:
        return phrase(
            "expression with values",
            where=authored.where,
            key=authored.written,
            operator=authored.operator,
            values=list_bracketed(authored.values),
        )
    return phrase("expression", where=authored.where, key=authored.written, operator=authored.operator)


def place_of_label(authored: AuthorExpression) -> Path:
    """Return the path and the label key, which a denial and a remark about the same value have in common."""
    return (authored.where, authored.written)


def list_constraints(constraints: Sequence[Constraint]) -> tuple[str, ...]:
    """Return the text of each constraint, cut so that what to type stands within the first 200 characters."""
    return tuple(cut_text(c.text, 48) for c in constraints)


def detail_constraints(constraints: Sequence[Constraint]) -> Phrase:
    """Return every constraint in full, with its policy and field."""
    return phrase("required", constraints=tuple(phrase("constraint", policy=c.by[0], field=c.field, text=c.text) for c in constraints))


def explain_missing(plan: Plan, rule: str) -> Phrase:
    """Return why the final pod lacks what a rule writes: somebody else undid it, if ``berth.dev/applied`` records it."""
    applied = str(plan.pod.annotations.get(APPLIED, ""))
    written = f'"{rule}"' in applied or applied.startswith("{")  # counts alone: it may have been among them
    return phrase("undone" if written else "the policies changed")
