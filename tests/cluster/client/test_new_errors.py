"""An error that is found again and again is told once."""

from __future__ import annotations

from cluster.client.new_errors import NewErrors


def test_an_error_is_new_where_it_differs_from_the_last() -> None:
    """A, B and A again are three; the same twice is one; after all was well the same is new."""
    errors = NewErrors()
    assert [errors.is_new(error) for error in ("a", "a", "b", "b", "a")] == [True, False, True, False, True]
    assert errors.forget()
    assert not errors.forget()
    assert errors.is_new("a")


def test_several_errors_take_turns_and_are_new_again_after_a_while() -> None:
    """Each has its own time; past the bound all are forgotten."""
    now = 0.0
    errors = NewErrors(most=2, again=600, clock=lambda: now)
    assert [errors.is_new(error) for error in ("a", "b", "a", "b")] == [True, True, False, False]
    now = 600.0
    assert errors.is_new("a")
    assert [errors.is_new(error) for error in ("c", "b")] == [True, True]
