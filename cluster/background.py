"""Tasks that must run until they are cancelled. Where such a task ends by itself, the process has to know: what it did is not
done any more, and nothing else would say so."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

Given = ParamSpec("Given")
Result = TypeVar("Result")
TASK = "background task"
"""The key of the task's name in what the exception handler of the event loop is given."""


def background(name: str) -> Callable[[Callable[Given, Coroutine[Any, Any, Result]]], Callable[Given, Coroutine[Any, Any, Result]]]:
    """Return a decorator for a coroutine function that runs until it is cancelled.

    If it returns or raises, the exception handler of the event loop is called with ``name`` under ``TASK``:
    ``webhook.process`` then logs one line and ends the process.
    """

    def decorate(function: Callable[Given, Coroutine[Any, Any, Result]]) -> Callable[Given, Coroutine[Any, Any, Result]]:
        @functools.wraps(function)
        async def run(*args: Given.args, **kwargs: Given.kwargs) -> Result:
            try:
                result = await function(*args, **kwargs)
            except asyncio.CancelledError:
                raise
            except BaseException as error:
                _tell(name, error)
                raise
            _tell(name, None)
            return result

        return run

    return decorate


def _tell(name: str, error: BaseException | None) -> None:
    asyncio.get_running_loop().call_exception_handler(
        {"message": f"the background task {name} has ended", TASK: name} | ({"exception": error} if error is not None else {})
    )
