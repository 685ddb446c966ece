"""Find the words in names that distinguish one GPU model, or family of machines, from another."""

from __future__ import annotations

import re
from collections.abc import Iterable

_WORD = re.compile(r"[a-z0-9]+")
_SIZE = re.compile(r"\d+gb")
"""The memory in a name: it distinguishes A100-40GB from A100-80GB, but a name with a slip in it is still
that of an A100."""
_STEM = re.compile(r"([a-z]+\d+)[a-z]")
_BRAND = frozenset({"rtx"})
"""Words in the names of many models."""


def codes_of(models: Iterable[str], families: Iterable[str], types: Iterable[str] = ()) -> frozenset[str]:
    """Return the distinguishing words of all names.

    Of models these are all words but sizes (``rtx-pro-6000``: pro, 6000), also without a letter at the end (AMD's boards report
    ``MI325`` for ``MI325X``); of instance families the words with a digit (``p6-b200``: p6, b200); of an instance type with
    none of all these its own words with a digit (``Standard_ND12s``: nd12s).
    """
    of_models = {word for name in models for word in _WORD.findall(name.lower()) if not _SIZE.fullmatch(word)}
    stems = {stem[1] for word in of_models if (stem := _STEM.fullmatch(word))}
    of_families = {word for name in families for word in _WORD.findall(name.lower()) if not word.isalpha()}
    codes = (of_models | stems | of_families) - _BRAND
    of_types = (words for name in types if codes.isdisjoint(words := _WORD.findall(name.lower())))
    return frozenset(codes.union(word for words in of_types for word in words if not word.isalpha()))
