"""Two builds of one state of the source are one image."""

from __future__ import annotations

import pytest

from deploy.image.archive import unpack
from tests.image.conftest import Built
from tests.support.counts import only_in_prove
from tests.testcluster.images import archives, bases
from tests.testcluster.images.store import empty


@only_in_prove
def test_a_second_build_is_the_same_image(built: Built, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Built again from nothing but the bases: packages installed, the wheel made and compiled, layers packed. Everything is the same, the
    digest of the manifest too. In make test: nothing in it has a time, below."""
    folder = tmp_path_factory.mktemp("again")
    with empty() as store:
        archives.build(store, *(bases.archive(recipe, print) for recipe in (bases.BUILDS, bases.RUNS)))
        store.export(archives.BERTH, folder / "again.tar")
    again = unpack(folder / "again.tar", folder / "root")
    assert again.layers == built.image.layers
    assert again == built.image


def test_nothing_in_it_has_a_time(built: Built) -> None:
    """Neither a file nor the image itself says when it was built."""
    times = {path.lstat().st_mtime for path in (built.root.folder / "opt").rglob("*") if not path.is_symlink()}
    assert times == {0.0}
    assert built.image.config["created"] == "1970-01-01T00:00:00Z"
    assert {step["created"] for step in built.image.config["history"]} == {"1970-01-01T00:00:00Z"}
