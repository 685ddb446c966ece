"""Property tests are tried on the same examples everywhere."""

from __future__ import annotations

import subprocess
import sys

from tests.support.module_imports import ROOT

DRAWN = """
import sys
sys.path.insert(0, {root!r})
from tests.support.generators import same_examples
same_examples.load()
{imported}
from hypothesis import given, strategies as st
seen = []
@given(st.integers(0, 2**32), st.text(), st.randoms(use_true_random=False).map(lambda random: random.random()))
def law(number, text, fraction):
    seen.append((number, text, fraction))
law()
print(seen)
"""


def drawn(imported: str) -> str:
    """The examples of a law in a process of its own."""
    code = DRAWN.format(root=str(ROOT), imported=imported)
    return subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True, cwd=ROOT).stdout


def test_examples_are_the_same_whatever_is_imported() -> None:
    """Where few modules are, and where half of the repository is: constants of it are no examples."""
    assert drawn("") == drawn("import policies.engine, webhook.serve, tests.support.generators.random_worlds") != ""
