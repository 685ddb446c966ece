"""The pictures in the repository: each is made by the script, shown somewhere with words for those who can't see it, small, and whole."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.pictures.__main__ import FOLDER, PICTURES, main
from tests.testcluster.addons.berth import ROOT

MOST_BYTES = 300_000
SVG = "{http://www.w3.org/2000/svg}"
SHOWN = re.compile(r'!\[(?P<words>[^\]]*)\]\((?P<file>[^)]+)\)|<img (?=[^>]*alt="(?P<alt>[^"]*)")[^>]*src="(?P<source>[^"]+)"')


def shown() -> dict[str, str]:
    """Picture -> the words in its place, of README and the pages of docs."""
    found: dict[str, str] = {}
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        for match in SHOWN.finditer(page.read_text()):
            file = (page.parent / (match["file"] or match["source"])).resolve()
            found[file.name] = match["words"] or match["alt"]
            assert file.exists(), f"{page.name} shows {file.name}, which is not there"
    return found


def test_every_picture_is_made_by_the_script_and_shown() -> None:
    """There are those that `python -m tests.pictures` names, no others, and README or a page of docs shows each."""
    there = sorted(file.name for file in FOLDER.iterdir())
    assert there == sorted(PICTURES)
    assert {*PICTURES} <= shown().keys()


def test_every_picture_has_words_in_its_place() -> None:
    """Whole sentences: what is seen on it."""
    assert {name: words for name, words in shown().items() if name in PICTURES and len(words.split()) < 6} == {}


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_small_and_whole(name: str) -> None:
    """Under 300 KB; a PNG of the size of a window, or SVG whose text is text, without scripts and without anything from elsewhere."""
    data = (FOLDER / name).read_bytes()
    assert len(data) < MOST_BYTES
    if name.endswith(".png"):
        assert data.startswith(b"\x89PNG\r\n\x1a\n")
        width, height = struct.unpack(">II", data[16:24])
        assert (width, data[-8:-4]) == (1200, b"IEND")
        assert height > 500
        return
    root = ElementTree.fromstring(data)
    assert root.tag == f"{SVG}svg"
    assert {one.tag.removeprefix(SVG) for one in root.iter()} <= {"svg", "title", "style", "g", "rect", "circle", "path", "text", "tspan"}
    assert not re.search(rb"href|url\(|@import|/tmp/|/root/|/home/", data)
    assert b"prefers-color-scheme:dark" in data
    assert len("".join(root.itertext())) > 500, "text is text"


def test_a_picture_that_there_is_not_is_not_made(capsys: pytest.CaptureFixture[str]) -> None:
    """A name that is misspelt is said, with those that there are."""
    assert main(["one-jobb.svg"]) == 2
    assert "there is no one-jobb.svg; there are one-job.svg" in capsys.readouterr().err


def test_no_picture_names_this_machine() -> None:
    """Recordings are of commands that a reader can type."""
    for file in Path(FOLDER).glob("*.svg"):
        assert ROOT.as_posix() not in file.read_text()
