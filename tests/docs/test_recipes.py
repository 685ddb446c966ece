"""docs/recipes.md is run as it stands: its files are written, its commands are typed, and what it shows must come out.

A ```yaml block whose first line is a comment with a file name is that file. Each ```sh block is one `berth try`; the ```text
block after it is what the command says (standard error), the ```diff block what it shows (standard output).
BERTH_WRITE_RECIPES=1 writes what comes out into the page instead: read the difference before you keep it.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from cli.main import BAD_INPUT, main
from webhook.files import read_catalog, read_policies

PAGE = Path(__file__).parents[2] / "docs" / "recipes.md"
SWITCH = "BERTH_WRITE_RECIPES"
COUNT = 16
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
NAME = re.compile(r"# ([a-z0-9-]+\.yaml)\n")
COMMAND = re.compile(r"^```sh\n(?P<command>berth try .*?)\n```\n(?P<shown>(?:\n```(?:text|diff)\n.*?^```\n)*)", re.MULTILINE | re.DOTALL)
KINDS = ("kind: ClusterGPUPolicy", "kind: GPUPolicy", "kind: GPUNodeTemplate")
LEFT_ALONE = ("refused", "admitted as it is", "not judged")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One command and what the page shows under it."""

    command: str
    text: str
    diff: str
    start: int
    """offset in the page of what is shown"""
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    title: str
    body: str
    files: dict[str, str]
    trials: list[Trial] = field(default_factory=list)


def page() -> str:
    return PAGE.read_text(encoding="utf-8")


def files_of(text: str) -> dict[str, str]:
    """The named files of a part of the page."""
    yaml = [body for kind, body in BLOCK.findall(text) if kind == "yaml"]
    return {named.group(1): body for body in yaml if (named := NAME.match(body))}


def recipes() -> list[Recipe]:
    """The numbered sections in their order."""
    text = page()
    heads = [*re.finditer(r"^## (.*)$", text, re.MULTILINE)]
    ends = [*(head.start() for head in heads[1:]), len(text)]
    return [
        Recipe(title=head.group(1), body=text[head.end() : end], files=files_of(text[head.end() : end]), trials=list(trials(text, head.end(), end)))
        for head, end in zip(heads, ends, strict=True)
        if head.group(1)[0].isdigit()
    ]


def trials(text: str, start: int, end: int) -> Iterator[Trial]:
    for found in COMMAND.finditer(text, start, end):
        shown = dict(BLOCK.findall(found.group("shown")))
        command = found.group("command").replace("\\\n", " ")
        yield Trial(
            command=command, text=shown.get("text", ""), diff=shown.get("diff", ""), start=found.start("shown"), end=found.end("shown")
        )


RECIPES = recipes()
TRIALS = [trial for recipe in RECIPES for trial in recipe.trials]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with every file of the page, where the commands are typed."""
    for name, text in files_of(page()).items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def typed(command: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """(exit code, standard output, standard error) of a command of the page."""
    code = main(shlex.split(command)[1:])
    out, err = capsys.readouterr()
    return code, out, err


def test_the_page_has_its_recipes() -> None:
    """Sixteen, numbered in order, each with a policy, a command, and a word on what to watch."""
    assert [recipe.title.split(".")[0] for recipe in RECIPES] == [str(n) for n in range(1, COUNT + 1)]
    for recipe in RECIPES:
        assert any(kind in text for text in recipe.files.values() for kind in KINDS), recipe.title
        assert recipe.trials, recipe.title
        assert "**Watch:**" in recipe.body, recipe.title


def test_no_two_files_of_the_page_have_one_name() -> None:
    """A reader who saves them in one folder overwrites none."""
    names = [named.group(1) for kind, body in BLOCK.findall(page()) if kind == "yaml" and (named := NAME.match(body))]
    assert sorted(set(names)) == sorted(names)


def test_every_yaml_block_that_is_a_file_says_its_name() -> None:
    """No block is overlooked because its first line is something else."""
    assert [body[:40] for kind, body in BLOCK.findall(page()) if kind == "yaml" and not NAME.match(body)] == []


@pytest.mark.parametrize("name", [name for name, text in files_of(page()).items() if any(kind in text for kind in KINDS)])
def test_each_policy_is_understood(name: str, folder: Path) -> None:
    """Strictly, without a warning. A GPUPolicy may name a template of another file: the files of its recipe are read together."""
    together = next(recipe.files for recipe in RECIPES if name in recipe.files)
    paths = [file for file, text in together.items() if any(kind in text for kind in KINDS)]
    found, errors, warnings = read_policies(paths, read_catalog())
    assert (list(map(str, errors)), warnings) == ([], [])
    assert found.policies


@pytest.mark.parametrize("trial", TRIALS, ids=[trial.command for trial in TRIALS])
def test_each_command_shows_what_the_page_shows(trial: Trial, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """To the letter. To rewrite what the page shows: BERTH_WRITE_RECIPES=1."""
    if os.environ.get(SWITCH):
        pytest.skip(f"{SWITCH} is set: the page is being written")
    code, out, err = typed(trial.command, capsys)
    assert code != BAD_INPUT, err
    hint = f"docs/recipes.md shows something else; if the new one is right: {SWITCH}=1 python -m pytest {Path(__file__).name}"
    assert (err, out) == (trial.text, trial.diff), hint


@pytest.mark.parametrize("recipe", RECIPES, ids=[recipe.title for recipe in RECIPES])
def test_each_recipe_shows_both_sides(recipe: Recipe) -> None:
    """A pod that passes and one that is refused or left alone."""
    said = "".join(trial.text for trial in recipe.trials)
    assert "admitted" in said
    assert any(word in said for word in LEFT_ALONE)


@pytest.mark.parametrize("trial", TRIALS, ids=[trial.command for trial in TRIALS])
def test_what_is_admitted_is_admitted_again_as_it_is(trial: Trial, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The object with its edits gets no further ones: an author may keep the diff in the manifest."""
    words = shlex.split(trial.command)
    _, admitted, _ = typed(shlex.join(words).replace("-o diff", "-o yaml"), capsys)
    (folder / "again.yaml").write_text(admitted, encoding="utf-8")
    _, _, said = typed(shlex.join([*words[:-1], "again.yaml"]), capsys)
    assert "admitted with" not in said


@pytest.mark.skipif(not os.environ.get(SWITCH), reason=f"{SWITCH}=1 writes what comes out into docs/recipes.md")
def test_write_the_page(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Puts what each command says and shows under it, from the last to the first, so that offsets hold."""
    text = page()
    for trial in reversed(TRIALS):
        code, out, err = typed(trial.command, capsys)
        assert code != BAD_INPUT, err
        blocks = "".join(f"\n```{kind}\n{body}```\n" for kind, body in (("text", err), ("diff", out)) if body)
        text = text[: trial.start] + blocks + text[trial.end :]
    PAGE.write_text(text, encoding="utf-8")


def test_what_berth_cannot_say_names_what_can() -> None:
    """Each row has what is wanted, why not here, and what to use instead."""
    part = page().split("## What Berth can't say, and what can\n")[1]
    rows = [line.strip("|").split("|") for line in part.splitlines() if line.startswith("|")][2:]
    assert len(rows) >= 8
    assert [row for row in rows if len(row) != 3 or not all(cell.strip() for cell in row)] == []
