"""Every screen there is, by its address: a new one is a line here."""

from __future__ import annotations

from console.berths.group_page import group
from console.berths.pages import berths
from console.history import history
from console.impact.pages import cell, impact
from console.job.pages import gather, job
from console.policies.pages import namespace, policies, policy
from console.server.page import Page, Screen, Visit


def _home(visit: Visit) -> Page:
    return impact(visit)


def _state(visit: Visit) -> Page:
    """The line that says as of when all is, which pages ask for again and again."""
    return Page(template="state.html", title="")


SCREENS = (
    Screen(path="/", show=_home, section="impact"),
    Screen(path="/impact", show=impact, section="impact"),
    Screen(path="/impact/cell", show=cell, section="impact"),
    Screen(path="/berths", show=berths, section="berths"),
    Screen(path="/berths/group", show=group, section="berths"),
    Screen(path="/job", show=job, gather=gather, section="job", form=True),
    Screen(path="/policies", show=policies, section="policies"),
    Screen(path="/policies/one", show=policy, section="policies"),
    Screen(path="/policies/namespace", show=namespace, section="policies"),
    Screen(path="/history", show=history, section="history"),
    Screen(path="/state", show=_state),
)
