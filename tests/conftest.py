"""What every test is given."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from webhook import logs


@pytest.fixture(autouse=True)
def log_goes_where_it_went() -> Iterator[None]:
    """A test that sends the log elsewhere sends only its own there."""
    before = logs._sink
    yield
    logs.to(before)
