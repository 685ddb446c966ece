"""Write what came of a case under its ``expect``; what stands elsewhere in the file is kept to the byte."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from cli.policy_cases.outcome import Sentence
from documents.yaml_reader import one_value
from policies.document import Document

KEY = "expect"


class _InlineMap(dict[str, Any]):
    """A map that is written on one line."""


class _Dumper(yaml.SafeDumper):
    """Lists indented, sentences and edits on one line."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: FBT001, FBT002 - as PyYAML calls it
        super().increase_indent(flow=flow, indentless=False)

    def ignore_aliases(self, data: object) -> bool:
        return True


def _text_node(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    """Quote text that kubectl's grammar, by which cases are read, takes for something else: y, 1e3."""
    misread = one_value(f"- {value}\n") != [value]
    return dumper.represent_scalar("tag:yaml.org,2002:str", str(value), style="'" if misread else None)


_Dumper.add_representer(_InlineMap, lambda dumper, row: dumper.represent_mapping("tag:yaml.org,2002:map", row, flow_style=True))
_Dumper.add_representer(str, _text_node)
_Dumper.add_representer(Sentence, _text_node)


def _rows(value: Any) -> Any:
    """Edits and operations as rows, wherever they stand."""
    if isinstance(value, dict):
        return _InlineMap(value) if "op" in value else {key: _rows(item) for key, item in value.items()}
    return [_rows(item) for item in value] if isinstance(value, list) else value


def format_outcome(found: Mapping[str, Any]) -> str:
    """Return an outcome as it stands in a file, without the last line end."""
    if not found:
        return f"{KEY}: {{}}"
    written: str = yaml.dump({KEY: _rows(dict(found))}, Dumper=_Dumper, sort_keys=False, width=10_000, allow_unicode=False)
    return written.rstrip("\n")


def write(document: Document, found: Mapping[str, Any]) -> None:
    """Put an outcome under ``expect`` of the case. Raises InputError where it has no line of its own."""
    file = Path(document.file)
    with file.open(encoding="utf-8", newline="") as opened:
        whole = opened.read()
    start, end = _place(document, whole)
    new = format_outcome(found)
    if "\r\n" in whole:
        new = new.replace("\n", "\r\n")
    with file.open("w", encoding="utf-8", newline="") as opened:
        opened.write(whole[:start] + new + whole[end:])


def _place(document: Document, whole: str) -> tuple[int, int]:
    """Return where ``expect`` and its value begin and end."""
    roots = list(yaml.compose_all(whole.removeprefix("\ufeff"), Loader=yaml.SafeLoader))
    root = roots[document.index - 1]
    if not isinstance(root, yaml.MappingNode) or root.flow_style:
        raise document.error((KEY,), "can be filled in only if it is on its own line; write the case as block YAML, or fill it in by hand")
    key, value = next((key, value) for key, value in root.value if key.value == KEY)
    before = len(whole) - len(whole.removeprefix("\ufeff"))
    start, end = key.start_mark.index, max(value.end_mark.index, key.end_mark.index + 1)
    return start + before, before + _last(whole[before:], start, end)


def _last(whole: str, start: int, end: int) -> int:
    """Return the end of the last line that belongs to a value: a block ends for YAML where the next token begins."""
    lines = whole[start:end].splitlines(keepends=True)
    if not lines[-1].endswith(("\n", "\r")) and not _aside(lines[-1]):
        return end
    while _aside(lines[-1]):
        lines.pop()
    return start + len("".join(lines).rstrip("\r\n"))


def _aside(line: str) -> bool:
    """Return whether a line is empty or a comment at the margin."""
    return not line.strip() or line.startswith("#")
