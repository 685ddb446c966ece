"""Read the records of catalog data by their shapes: null stands for a field that is left out, and each record may say where
its facts are from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from catalog.shapes.struct_parser import StructReader
from catalog.shapes.structs import Mapped, Struct
from kube.tree import Path, dotted, kind_of

MARKS = ("verified", "derived", "third-party", "unverified")
"""How far a fact may be trusted: read in its primary source; concluded from one; found elsewhere only;
general knowledge."""
_PROVENANCE = ("source", "mark", "note")


class Record(dict[str, Any]):
    """A mapping that records where it was written: ``at`` is the name of the file, then the path in it."""

    __slots__ = ("at",)

    def __init__(self, items: Mapping[str, Any], at: Path) -> None:
        super().__init__(items)
        self.at = at


class SectionNames:
    """The names that records of some sections define, for those that use them."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._lists = {section: frozenset(data[section]) for section in ("clouds", "vendors", "schemes", "platforms")}
        self._lists["platforms"] |= frozenset(data["otherPlatforms"])
        self._lists["models"] = frozenset(model for gpu in data["gpus"] if isinstance(model := gpu.get("model"), str))

    def of(self, known: str) -> frozenset[str]:
        return self._lists[known]

    def codes(self, known: str) -> frozenset[str]:
        return frozenset()

    def explain(self, known: str, name: str) -> str:
        return ""


class RecordReader(StructReader):
    """Parses catalog data. Paths start with the name of the file, empty for the catalog that others are laid over."""

    def __init__(self) -> None:
        super().__init__("", None)

    @property
    def notes(self) -> list[str]:
        """Every mistake so far, as ``mine.yaml: path: what is wrong``."""
        return [": ".join(filter(None, (str(path[0]), dotted(path[1:]), message))) for path, message in self.errors]

    def struct(self, shape: Struct, value: object, path: Path, example: str) -> Any:
        if isinstance(value, Record):
            path = value.at
            if value.get("mark", MARKS[0]) not in MARKS:
                self.wrong((*path, "mark"), f"must be one of {', '.join(MARKS)}, found {kind_of(value['mark'])}")
            fields = self.fields(shape)
            value = {name: item for name, item in value.items() if name not in _PROVENANCE and (item is not None or name not in fields)}
        return super().struct(shape, value, path, example)

    def mapped(self, shape: Mapped, value: object, path: Path, example: str) -> Any:
        return super().mapped(shape, value, value.at if isinstance(value, Record) else path, example)
