"""What every test is given."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.testcluster.fixtures import MISSED
from webhook import logs

settings.register_profile("berth", settings.default, deadline=None)  # of an example: on a machine that does other things it says nothing
settings.load_profile("berth")


@pytest.fixture(autouse=True)
def log_goes_where_it_went() -> Iterator[None]:
    """A test that sends the log elsewhere sends only its own there."""
    before = logs._sink
    yield
    logs.to(before)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What needs a whole cluster comes last: it is slow to say what a test of one function says at once."""
    items.sort(key=lambda item: "e2e" in item.path.parts)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """What was not tried is said where everybody looks."""
    if missed := config.stash.get(MISSED, []):
        terminalreporter.section("NOT TRIED ON A REAL CONTROL PLANE", sep="!", red=True, bold=True)
        terminalreporter.line(missed[0])
