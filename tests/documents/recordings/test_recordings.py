"""Recordings cut into pieces: whatever the size of a piece, each entry is read once and in order; what cannot be read is told."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import sys
from pathlib import Path
from random import Random

import pytest
import yaml

from documents.recordings import pieces as module
from documents.recordings.entries import entries
from documents.recordings.pieces import Piece, pieces
from policies.document import InputError
from tests.support.counts import count

Raw = dict[str, object]


def values(path: Path | str, size: int = module.PIECE) -> tuple[list[object], list[str]]:
    """What is read of a path: objects; and why others were not."""
    found: list[object] = []
    unread: list[str] = []
    for piece in pieces([str(path)], size):
        if isinstance(piece, InputError):
            unread.append(str(piece))
            continue
        for entry in entries(piece):
            if entry.unread is not None:
                unread.append(entry.unread if isinstance(entry.unread, str) else str(entry.unread))
            elif entry.value is not None:
                found.append(entry.value)
        unread += ["damaged"] if piece.damaged else []
    return found, unread


def numbered(number: int, length: int = 0) -> Raw:
    return {"kind": "Event", "apiVersion": "audit.k8s.io/v1", "auditID": str(number), "text": "x" * length}


def lines(*found: object) -> bytes:
    return b"".join(json.dumps(one, separators=(",", ":")).encode() + b"\n" for one in found)


@pytest.mark.parametrize("pack", [None, gzip.compress, bz2.compress, lzma.compress], ids=["plain", "gzip", "bzip2", "xz"])
def test_each_line_is_read_once_whatever_the_size_of_pieces(tmp_path: Path, pack: object) -> None:
    """Lines of any length, before and behind the borders of pieces; the last one with or without its end."""
    for seed in range(count(20, 500)):
        random = Random(seed)
        wanted = [numbered(number, random.choice((0, 1, 40, 300))) for number in range(random.randint(1, 30))]
        text = lines(*wanted)
        text = text if random.random() < 0.5 else text.rstrip(b"\n")
        file = tmp_path / "audit.log"
        file.write_bytes(pack(text) if callable(pack) else text)
        assert values(file, random.choice((1, 7, 64, 65, 1000, len(text)))) == (wanted, [])


def test_lines_are_numbered_within_their_piece(tmp_path: Path) -> None:
    """So that whoever adds the pieces up names the line of the file."""
    file = tmp_path / "audit.log"
    file.write_bytes(lines(*map(numbered, range(10))))
    total = 0
    for piece in pieces([str(file)], 100):
        assert isinstance(piece, Piece)
        *found, last = entries(piece)
        assert [one.line for one in found] == list(range(1, last.line + 1))
        total += last.line
    assert total == 10


def test_a_log_that_is_cut_anywhere_loses_the_cut_line_alone(tmp_path: Path) -> None:
    """At its beginning, at its end, and in its middle where a crash has cut it."""
    one, two, three = (lines(numbered(number)) for number in range(3))
    file = tmp_path / "audit.log"
    file.write_bytes(one[20:] + two + three[:30])
    assert values(file) == ([numbered(1)], ["beginning", "end"])
    file.write_bytes(one + two[:30] + three + b"\n" + b"2026-11-23T08:00:00Z " + two)
    assert values(file) == ([numbered(0), numbered(2), numbered(1)], [])
    file.write_bytes(one + b"nonsense\n" + b"\xff\xfe\n" + two)
    assert values(file) == ([numbered(0), numbered(1)], ["unreadable", "unreadable"])


def test_what_is_compressed_and_breaks_off_is_read_to_there(tmp_path: Path) -> None:
    """A file that is being copied still."""
    random = Random(0)
    wanted = [{**numbered(number), "text": str(random.random())} for number in range(5_000)]
    file = tmp_path / "audit.log.gz"
    file.write_bytes(gzip.compress(lines(*wanted))[:-5_000])
    found, unread = values(file, 4096)
    assert found == wanted[: len(found)]
    assert len(found) > 3_000
    assert unread[-1] == "damaged"


def test_what_cannot_be_unpacked_here_says_what_to_type(tmp_path: Path) -> None:
    """The standard library of the oldest Python that is supported has no zstd."""
    file = tmp_path / "audit.log.zst"
    file.write_bytes(b"\x28\xb5\x2f\xfdxxxx")
    assert values(file)[1] == [f"berth: {file}: is compressed with zstd; unpack it on the way: zstd -dc {file} | berth replay -"]
    (tmp_path / "empty").write_bytes(b"\n \n")
    assert values(tmp_path / "empty")[1] == [f"berth: {tmp_path / 'empty'}: is empty"]
    assert "there is no such file" in values(tmp_path / "audit.loq.zst")[1][0]


def test_a_folder_is_its_files_in_the_order_of_their_names(tmp_path: Path) -> None:
    """That is the order in which kube-apiserver has written and rotated them; hidden files and folders are left out."""
    for number, name in enumerate(("audit-2026-11-22T08-00-00.000.log", "audit-2026-11-23T08-00-00.000.log.gz", "audit.log")):
        text = lines(numbered(number))
        (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    (tmp_path / ".audit.log.swp").write_bytes(b"x")
    (tmp_path / "inner").mkdir()
    assert values(tmp_path) == ([numbered(0), numbered(1), numbered(2)], [])
    assert "has no file" in values(tmp_path / "inner")[1][0]


def test_documents_of_many_lines_are_read_as_a_whole(tmp_path: Path) -> None:
    """YAML of several documents, JSON on many lines, and Lists of either, as kubectl and editors write them."""
    one, two = numbered(1), numbered(2)
    file = tmp_path / "recorded"
    for text in (
        yaml.safe_dump_all([one, two]),
        json.dumps({"kind": "List", "apiVersion": "v1", "items": [one, two]}, indent=2),
        json.dumps({"kind": "EventList", "apiVersion": "audit.k8s.io/v1", "items": [one, two]}),
        json.dumps([one, two]),
        yaml.safe_dump({"kind": "List", "items": [one, two]}),
    ):
        file.write_text(text)
        assert values(file) == ([one, two], []), text
        file.write_bytes(gzip.compress(text.encode()))
        assert values(file) == ([one, two], []), text
    file.write_text("a: [\n")
    found, unread = values(file)
    assert found == []
    assert "recorded" in unread[0]


def test_a_line_longer_than_any_event_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without being held."""
    monkeypatch.setattr(module, "LONGEST_LINE", 1000)
    monkeypatch.setattr("documents.recordings.entries.LONGEST_LINE", 1000)
    file = tmp_path / "audit.log"
    file.write_bytes(lines(numbered(0), numbered(1, 5000), numbered(2)))
    assert values(file, 100) == ([numbered(0), numbered(2)], ["long"])


def test_lines_about_something_else_are_not_parsed(tmp_path: Path) -> None:
    """Most of an audit log is not about pods; a line that is cut is told all the same."""
    file = tmp_path / "audit.log"
    file.write_bytes(lines(numbered(0), {"about": "pods"}) + b"{cut")
    found = [entry for piece in pieces([str(file)]) if isinstance(piece, Piece) for entry in entries(piece, (b"pods",))]
    assert [(one.value, one.unread) for one in found] == [(None, "other"), ({"about": "pods"}, None), (None, "end"), (None, None)]


def test_standard_input_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compressed or not."""
    for pack in (bytes, gzip.compress):
        file = tmp_path / "in"
        file.write_bytes(pack(lines(*map(numbered, range(100)))))
        with file.open("rb") as opened:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(opened))
            assert values("-", 1000) == ([numbered(number) for number in range(100)], [])


def test_what_a_collector_has_wrapped_is_unwrapped(tmp_path: Path) -> None:
    """Events as CloudWatch Logs exports and prints them, and as log agents pass them on."""
    one, two = numbered(1), numbered(2)
    text, other = (json.dumps(value, separators=(",", ":")) for value in (one, two))
    file = tmp_path / "exported"
    stream = "2026-11-23T08:00:00.000000+00:00 kube-apiserver-audit-0123456789abcdef"
    for content in (
        json.dumps({"events": [{"timestamp": 1, "message": text}, {"timestamp": 2, "message": other}]}, indent=4),
        f"{stream} {text}\n{stream} {other}\n",
        f"2026-11-23T08:00:00.000Z {text}\n2026-11-23T08:00:00.000Z {other}\n",
        json.dumps({"log": f"{text}\n", "stream": "stdout"}) + "\n" + json.dumps({"@timestamp": "x", "@message": other}) + "\n",
    ):
        file.write_text(content)
        assert values(file) == ([one, two], []), content
    file.write_text(json.dumps({"log": text[:-5]}) + "\n")
    assert values(file) == ([{"log": text[:-5]}], [])
