"""The rows of notices on an answer itself, BERTH-00x: that not everything was reported, or read, or judged.

A notice that an object is not judged is a denial if a policy of the namespace is in Enforce, else a warning.
"""

from __future__ import annotations

from policies.messages.row import Row


def _row(code: str, title: str, **templates: str) -> Row:
    named = {name.replace("_", " "): template for name, template in templates.items()}
    return Row(code=code, title=title, kind="notice", templates=named)


ROWS = (
    _row("BERTH-001", "more warnings than fit", text="{left} more warnings did not fit; berth try shows them all"),
    _row(
        "BERTH-002",
        "a template that is not judged beforehand",
        too_large="its pod templates are too large or too deep to be judged beforehand; berth try judges them",
        too_many="only its first {most} pod templates are judged beforehand; berth try judges them all",
        template="{where}: {message}; its pods are not judged beforehand",
        part="{where}: {message}; it is not judged beforehand",
    ),
    _row(
        "BERTH-003",
        "a review that is too large to be read",
        text="the review of this object has {size} bytes, more than the {limit} that are read; move large values out of its env, args and"
        " annotations, into a ConfigMap",
    ),
    _row(
        "BERTH-004",
        "a pod of which too much would have to be judged",
        text="the containers, resources, node affinity and tolerations of this object have {size} bytes, more than {most}, or more than"
        " {items} items together, which are not judged; write fewer of them",
    ),
    _row("BERTH-005", "an object that can't be read", text="this object can't be read, so it is not judged: {why}; {fix}"),
    _row(
        "BERTH-006",
        "a namespace that takes more than its share",
        text="this object is not judged, because the reviews of its namespace take more than their share of Berth's time; create it again"
        " in a while (controllers do so by themselves)",
    ),
    _row(
        "BERTH-007",
        "a mistake of Berth's own",
        text="this object is not judged, by a mistake of Berth's own; report it to the platform team, with the object and the time (the log"
        " has it as event=failed)",
    ),
    _row(
        "BERTH-008",
        "an object that can't be judged now",
        behind="this object is not judged, because Berth has more to judge than it has time for; apply it again in a while (controllers"
        " do so by themselves)",
        namespace="this object is not judged, because Berth does not know its namespace yet; apply it again in a few seconds (controllers"
        " do so by themselves)",
    ),
)
