"""Patterns that mean the same in Go, and those that do not."""

from __future__ import annotations

import re

import pytest

from registration.re2 import PatternError, prefix, re2
from tests.support.generators.random_worlds import catalog


@pytest.mark.parametrize(
    ("pattern", "for_go", "beginning"),
    [
        ("^(?:amd\\.com/x)$", "^amd\\.com/x$", "amd.com/x"),
        (r"nvidia\.com/mig-(?P<profile>\d+g)\.x", r"^nvidia\.com/mig-(?:\d+g)\.x$", "nvidia.com/mig-"),
        (r"^(?:a/b|c/d)$", r"^(?:a/b|c/d)$", ""),
        (r"(?:a/b|c/d)", r"^(?:a/b|c/d)$", ""),
        (r"a/b\|c", r"^a/b\|c$", "a/b|c"),
        (r"a/b[|]c", r"^a/b[|]c$", "a/b"),
        (r"a/[]|(?=]c", r"^a/[]|(?=]c$", "a/"),
        (r"a/bc?", r"^a/bc?$", "a/b"),
        (r"a/b\.*", r"^a/b\.*$", "a/b"),
        (r"a/b{2}", r"^a/b{2}$", "a/"),
        (r".+", r"^.+$", ""),
        (r"\w/\++", r"^\w/\++$", ""),
        (r"a/(b(c|d)|e)+?f{2,3}", r"^a/(b(c|d)|e)+?f{2,3}$", "a/"),
        (r"a/(?i:gpu)", r"^a/(?i:gpu)$", "a/"),
    ],
)
def test_patterns(pattern: str, for_go: str, beginning: str) -> None:
    """Anchored once, groups without names; the beginning is what every match has, and no more."""
    assert (re2(pattern), prefix(pattern)) == (for_go, beginning)


@pytest.mark.parametrize(
    ("pattern", "part"),
    [
        ("a(?=b)", "(?=b"), ("a(?!b)", "(?!b"), ("a(?<=b)", "(?<="), ("a(?<!b)", "(?<!"), ("a(?>b)", "(?>b"), ("(?P<x>a)(?P=x)", "(?P="),
        ("(a)(?(1)b|c)", "(?(1"), ("a(?#b)", "(?#b"), (r"(a)\1", r"\1"), (r"a\Z", r"\Z"), ("a*+", "*+"), ("a++", "++"), ("a?+", "?+"),
        ("a{2}+", "}+"), ("a{,3}", "{,3}"), ("a{1001}", "{1001}"), ("a{1,2000}", "{1,2000}"), ("(?x:a)", "(?x:"),
    ],
)  # fmt: skip
def test_what_only_python_reads(pattern: str, part: str) -> None:
    """Each is named: the API server would refuse the whole configuration for it, or read it in another way."""
    re.compile(pattern)
    with pytest.raises(PatternError, match=re.escape(f"the pattern {pattern} has {part}, which the API server")):
        re2(pattern)


def test_the_catalog_has_none_of_those() -> None:
    """And each of its patterns begins with a vendor's name, so few names are ever compared."""
    patterns = [known.pattern.pattern for known in catalog().resources if known.name is None]
    assert all("/" in prefix(pattern) for pattern in patterns)
    assert all(re.compile(re2(pattern)) for pattern in patterns)
