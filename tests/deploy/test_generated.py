"""What is made from other files is what they say, to the byte."""

from __future__ import annotations

import re

import pytest
import yaml

from cli import VERSION
from tests.deploy import generated, values_schema
from tests.deploy.rendering import rendered
from tests.deploy.values_schema import Uncommented
from tests.testcluster.addons.helm import CHART


@pytest.mark.parametrize("name", generated.sources())
def test_a_file_of_the_chart_is_what_its_source_says(name: str) -> None:
    """Definitions, library, registration, guards and the schema of the values."""
    assert (generated.DEPLOY / name).read_text() == generated.sources()[name], "its source changed; run: make chart"


def test_the_chart_holds_no_other_file() -> None:
    """One whose source is gone would be installed for ever."""
    found = {str(path.relative_to(generated.DEPLOY)) for path in (CHART / "files").rglob("*") if path.is_file()}
    assert found == {name for name in generated.sources() if name.startswith("chart/files/")}


@pytest.mark.parametrize("name", ["install.yaml", "rbac.yaml"])
def test_a_plain_manifest_is_what_helm_renders(name: str) -> None:
    """deploy/install.yaml and deploy/rbac.yaml are the chart with its defaults."""
    assert (generated.DEPLOY / name).read_text() == generated.plain()[name], "the chart changed; run: make chart"


def test_the_plain_manifests_lose_nothing() -> None:
    """Beside the namespace every object of the chart, in all its fields; none is of a test."""
    found = list(yaml.safe_load_all((generated.DEPLOY / "install.yaml").read_text()))
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


def test_a_value_without_a_comment_is_refused() -> None:
    """Its description would be missing from the schema."""
    with pytest.raises(Uncommented, match=r"^a\.c has no comment$"):
        values_schema.schema("# x\na:\n  # y\n  b: 1\n\n  c: 2\n")


def test_a_schema_tells_types_from_defaults() -> None:
    """A mark is laid over them; a mapping without comments inside is one value."""
    made = values_schema.schema('# one\n# two\n# @schema {"minimum": 1}\na: 1\n# r\nr:\n  limits:\n    memory: 1Gi\n')
    assert made["properties"]["a"] == {"type": "integer", "default": 1, "description": "one two", "minimum": 1}
    assert made["properties"]["r"]["default"] == {"limits": {"memory": "1Gi"}}
