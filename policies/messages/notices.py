"""The rows of notices on an answer itself, BERTH-00x: that not everything was reported, or read, or judged.

A notice that an object is not judged is a denial if a policy of the namespace is in Enforce, else a warning.
"""

from __future__ import annotations

from policies.messages.row import MessageRow


def _row(code: str, title: str, **templates: str) -> MessageRow:
    named = {name.replace("_", " "): template for name, template in templates.items()}
    return MessageRow(code=code, title=title, kind="notice", templates=named)


_TOO_COMPLEX = (
    "this object is too complex to evaluate: its containers, resources, node affinity and tolerations have {size} bytes (limit {most})"
    " or more than {items} items"
)
ROWS = (
    _row("BERTH-001", "more warnings than fit", text="{left} more warnings did not fit; run berth try to see all"),
    _row(
        "BERTH-002",
        "a template that is not checked in advance",
        too_large="its pod templates are too large or too deep to check in advance; run berth try",
        too_many="only its first {most} pod templates are checked in advance; run berth try for all",
        template="{where}: {message}; its pods are not checked in advance",
        part="{where}: {message}; it is not checked in advance",
    ),
    _row(
        "BERTH-003",
        "an admission review that is too large",
        text="the AdmissionReview of this object has {size} bytes (limit {limit}); move large values from its env, args and annotations"
        " to a ConfigMap",
    ),
    _row(
        "BERTH-004",
        "a pod that is too complex to evaluate",
        text=f"{_TOO_COMPLEX}; write fewer of them",
        fact=_TOO_COMPLEX,
        fix="write fewer of them",
    ),
    _row("BERTH-005", "an object that can't be read", text="this object can't be read or evaluated: {why}; {fix}"),
    _row(
        "BERTH-006",
        "a namespace over its share of time",
        text="this object is not evaluated, because its namespace takes more than its share of Berth's time; create it again later"
        " (controllers retry automatically)",
    ),
    _row(
        "BERTH-007",
        "an error in Berth",
        text="this object is not evaluated, because of an error in Berth; report it to the platform team, with the object and the time"
        " (logged as event=failed)",
    ),
    _row(
        "BERTH-008",
        "an object that can't be evaluated now",
        behind="this object is not evaluated, because Berth is overloaded; apply it again later (controllers retry automatically)",
        namespace="this object is not evaluated, because Berth does not know its namespace yet; apply it again in a few seconds"
        " (controllers retry automatically)",
    ),
)
