"""Denials and remarks in any words, for tests of what carries them. Their code's row is the table's, their sentence is not."""

from __future__ import annotations

from dataclasses import dataclass

from kube.tree import Path
from policies.messages import Place, phrase
from policies.verdict import Remark, Violation


@dataclass(frozen=True, slots=True, kw_only=True)
class _Denial(Violation):
    def fact_at(self, place: Place) -> str:
        return self.found.name

    def fix_at(self, place: Place) -> str:
        return self.advice.name


@dataclass(frozen=True, slots=True, kw_only=True)
class _Remark(Remark):
    def text_at(self, place: Place) -> str:
        return self.found.name


def denial(code: str, fact: str, fix: str = "x", *, rule: str = "r", policies: tuple[str, ...] = (), path: Path = ()) -> Violation:
    """A denial that says just this."""
    return _Denial(code=code, found=phrase(fact), advice=phrase(fix), rule=rule, policies=policies, path=path)


def remark(code: str, text: str, *, rule: str = "", policies: tuple[str, ...] = (), path: Path = ()) -> Remark:
    """A remark that says just this."""
    return _Remark(code=code, found=phrase(text), rule=rule, policies=policies, path=path)
