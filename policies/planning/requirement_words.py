"""The pod author's requirements on nodes, in the form in which messages repeat them."""

from __future__ import annotations

from kube.tree import Path
from policies.messages import At, Phrase, phrase
from policies.planning.feasibility import SELECTOR, AuthorExpression, list_bracketed

NODE_SELECTOR: Path = ("spec", "nodeSelector")


def author_path(authored: AuthorExpression) -> At | str:
    """Return the path: ``spec.nodeSelector`` or ``nodeSelectorTerms[0].matchExpressions[1]``."""
    return At(NODE_SELECTOR) if authored.where == SELECTOR else authored.where


def label(authored: AuthorExpression) -> Phrase:
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
