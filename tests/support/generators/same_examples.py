"""Examples of hypothesis that depend on nothing but the test: a change is judged by the same ones wherever, and however often, it is."""

from __future__ import annotations

from hypothesis import settings
from hypothesis.internal.conjecture import providers

PROFILE = "berth"


def load() -> None:
    """Load the profile of all property tests.

    ``derandomize`` alone is not enough: one draw in twenty is a constant of the modules of this repository that happen to be imported by
    then, which differs from one worker of pytest to the next. Other examples are had by ``--hypothesis-seed``, more by ``make prove``.
    No deadline of an example: on a machine that does other things it says nothing.
    """
    settings.register_profile(PROFILE, derandomize=True, database=None, deadline=None)
    settings.load_profile(PROFILE)
    providers._get_local_constants = lambda: providers._local_constants  # of no module yet, and of none later
