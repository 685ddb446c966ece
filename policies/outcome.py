"""What comes of a claim or a workload under one set of policies, and what one policy more would add. (Of a pod, more is known:
``policies.engine``.)"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from kube.tree import Path
from policies.policy import Policy
from policies.verdict import AuditOutcome, Edit, Mode, Remark, Violation


@dataclass(frozen=True, slots=True)
class ObjectOutcome:
    """What comes of an object."""

    edits: tuple[Edit, ...] = ()
    """None of them is made if there are violations."""
    violations: tuple[Violation, ...] = ()
    remarks: tuple[Remark, ...] = ()
    patch: tuple[dict[str, Any], ...] = ()

    def audit_outcomes(self, policy: Policy, mode: Mode, now: ObjectOutcome) -> AuditOutcome:
        """Return what a policy in Audit or Warn would add, where this comes of the policies in force and of it. ``now``: what comes
        of those in force."""
        done, denied = {_edit_identity(edit) for edit in now.edits}, {violation.key for violation in now.violations}
        places = {edit.path for edit in self.edits}
        return AuditOutcome(
            policy=policy.id,
            mode=mode,
            edits=() if self.violations else tuple(edit for edit in self.edits if _edit_identity(edit) not in done),
            dropped=() if self.violations else tuple(edit for edit in now.edits if edit.path not in places),
            violations=tuple(violation for violation in self.violations if violation.key not in denied),
            remarks=tuple(remark for remark in self.remarks if policy.id in remark.policies),
            patch=() if self.violations else self.patch,
        )


def _edit_identity(edit: Edit) -> tuple[Path, str]:
    return edit.path, json.dumps(edit.value, sort_keys=True)
