"""The image in figures, as bench/RESULTS.md has them."""

from __future__ import annotations

import statistics
from typing import Any

from tests.image.conftest import Built
from tests.image.serving import serving
from tests.support import machine, results_page
from tests.support.counts import only_in_prove

STARTS = 20


@only_in_prove
def test_the_image_in_figures(built: Built, bill: dict[str, Any]) -> None:
    """Who it runs as, how large it is, what it is made of and how long it takes to be Ready. ``make test`` bounds its size
    (``test_it_is_small``) and starts it."""
    seconds = []
    for _ in range(STARTS):
        with serving(built.root, "--self-signed", "/tmp/tls") as server:
            seconds.append(server.seconds)
    lines = table(built, len(bill["components"]), seconds)
    print("\n".join(lines))
    assert len(seconds) == STARTS
    results_page.write("image", ["## The image", "", *lines, "", f"{machine.described()}."])


def table(built: Built, components: int, seconds: list[float]) -> list[str]:
    base, *ours = built.image.layers
    rows = [
        ("user", built.root.config["User"]),
        ("root filesystem", "read-only, no shell, no pip"),
        ("files, on the tests' base of Debian packages", _megabytes(base.files + sum(layer.files for layer in ours))),
        ("files beyond the base", _megabytes(sum(layer.files for layer in ours))),
        ("beyond the base, as a registry keeps it", _megabytes(sum(layer.packed for layer in ours))),
        ("components in the SBOM", str(components)),
        (
            f"start of the container to Ready, median of {len(seconds)} (longest)",
            f"{statistics.median(seconds):.2f} s ({max(seconds):.2f} s)",
        ),
    ]
    return results_page.table(("the image", ""), rows)


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"
