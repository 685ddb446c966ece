"""The chart's own files: its version, its kinds, the schema of its values, and the plain manifests beside it."""

from __future__ import annotations

import re

import pytest
import yaml

from cli import VERSION
from tests.deploy import values_schema
from tests.deploy.rendering import rendered
from tests.deploy.values_schema import Uncommented
from tests.testcluster.addons.helm import CHART
from tests.testcluster.addons.installed import DEPLOY


def test_the_plain_manifests_lose_nothing() -> None:
    """Beside the namespace every object of the chart, in all its fields; none is of a test."""
    found = list(yaml.safe_load_all((DEPLOY / "install.yaml").read_text()))
    assert found[0]["kind"] == "Namespace"
    assert found[1:] == rendered(None, "--skip-tests")


def test_the_version_is_in_one_place() -> None:
    """Chart, application and image have the version of the command."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (VERSION, VERSION)
    assert re.findall(r"berth:(\S+)", chart["annotations"]["artifacthub.io/images"]) == [VERSION]


def test_artifact_hub_is_told_of_every_kind() -> None:
    """By the names of the definitions."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    told = {one["name"] for one in yaml.safe_load(chart["annotations"]["artifacthub.io/crds"])}
    defined = {yaml.safe_load(file.read_text())["metadata"]["name"] for file in (CHART / "files" / "crds").iterdir()}
    assert told == defined


def test_a_value_without_a_comment_is_denied() -> None:
    """Its description would be missing from the schema."""
    with pytest.raises(Uncommented, match=r"^a\.c has no comment$"):
        values_schema.schema("# x\na:\n  # y\n  b: 1\n\n  c: 2\n")


def test_a_schema_tells_types_from_defaults() -> None:
    """A mark is laid over them; a mapping without comments inside is one value."""
    made = values_schema.schema('# one\n# two\n# @schema {"minimum": 1}\na: 1\n# r\nr:\n  limits:\n    memory: 1Gi\n')
    assert made["properties"]["a"] == {"type": "integer", "default": 1, "description": "one two", "minimum": 1}
    assert made["properties"]["r"]["default"] == {"limits": {"memory": "1Gi"}}
