"""Run the commands of docs/recipes.md on a copy of docs/examples/recipes and compare their output with the page.

A ```yaml block whose first line is a comment with a file name shows that file of the folder. Each ```sh block is one `berth try`. The
```text block after it has standard error. A ```diff block, where there is one, has standard output.
BERTH_WRITE_RECIPES=1 writes the output into the page instead: read the difference before you commit it.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from cli.main import BAD_INPUT, main
from documents.files import read_catalog, read_policies

PAGE = Path(__file__).parents[2] / "docs" / "recipes.md"
EXAMPLES = PAGE.parent / "examples" / "recipes"
SWITCH = "BERTH_WRITE_RECIPES"
COUNT = 17
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
NAME = re.compile(r"# ([a-z0-9-]+\.yaml)\n")
COMMAND = re.compile(r"^```sh\n(?P<command>berth try .*?)\n```\n(?P<shown>(?:\n```(?:text|diff)\n.*?^```\n)*)", re.MULTILINE | re.DOTALL)
KINDS = ("kind: ClusterGPUPolicy", "kind: GPUPolicy", "kind: GPUNodeTemplate")
LEFT_ALONE = ("denied", "admitted unchanged", "not checked")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A command and the output that the page shows."""

    command: str
    text: str
    diff: str | None
    """None if the page leaves it out"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    title: str
    body: str
    files: dict[str, str]
    trials: tuple[Trial, ...]


def page() -> str:
    return PAGE.read_text(encoding="utf-8")


def files_of(text: str) -> dict[str, str]:
    """Return the files that a part of the page shows, by name."""
    yaml = [body for kind, body in BLOCK.findall(text) if kind == "yaml"]
    return {named.group(1): body for body in yaml if (named := NAME.match(body))}


def recipes() -> list[Recipe]:
    """Return the numbered sections in their order."""
    sections = re.split(r"^## ", page(), flags=re.MULTILINE)[1:]
    found = [section.partition("\n") for section in sections if section[0].isdigit()]
    return [Recipe(title=title, body=body, files=files_of(body), trials=tuple(trials(body))) for title, _, body in found]


def trials(part: str) -> Iterator[Trial]:
    for found in COMMAND.finditer(part):
        shown = dict(BLOCK.findall(found.group("shown")))
        yield Trial(command=command_of(found), text=shown.get("text", ""), diff=shown.get("diff"))


def command_of(found: re.Match[str]) -> str:
    """Return the command on one line."""
    return found.group("command").replace("\\\n", " ")


RECIPES = recipes()
TRIALS = [trial for recipe in RECIPES for trial in recipe.trials]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a copy of the folder of examples."""
    shutil.copytree(EXAMPLES, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def typed(command: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """Run a command and return its exit code, standard output and standard error."""
    code = main(shlex.split(command)[1:])
    out, err = capsys.readouterr()
    return code, out, err


def rewrite(command: str, text: str, diff: str) -> None:
    """Write the output of a command below it in the page."""
    blocks = "".join(f"\n```{kind}\n{body}```\n" for kind, body in (("text", text), ("diff", diff)) if body)
    old = page()
    found = next(found for found in COMMAND.finditer(old) if command_of(found) == command)
    PAGE.write_text(old[: found.start("shown")] + blocks + old[found.end("shown") :], encoding="utf-8")


def test_the_page_has_its_recipes() -> None:
    """Every recipe, numbered in order, has a policy, a command and a paragraph about its limits."""
    assert [recipe.title.split(".")[0] for recipe in RECIPES] == [str(n) for n in range(1, COUNT + 1)]
    for recipe in RECIPES:
        assert any(kind in text for text in recipe.files.values() for kind in KINDS), recipe.title
        assert recipe.trials, recipe.title
        assert "**Note:**" in recipe.body, recipe.title


def test_the_page_shows_the_files_of_the_folder() -> None:
    """Every policy is shown once, as it is in the folder; every other file is linked."""
    names = [match.group(1) for kind, body in BLOCK.findall(page()) if kind == "yaml" and (match := NAME.match(body))]
    assert sorted(set(names)) == sorted(names)
    files = {file.name: file.read_text(encoding="utf-8") for file in EXAMPLES.iterdir()}
    assert {name: files.get(name) for name in names} == files_of(page())
    assert [name for name in files if name not in names and name not in page()] == []
    assert {name for name, text in files.items() if any(kind in text for kind in KINDS)} - {*names} == {"everywhere.yaml"}


def test_every_yaml_block_says_its_file() -> None:
    """Every block begins with a comment that names its file, so none is skipped."""
    assert [body[:40] for kind, body in BLOCK.findall(page()) if kind == "yaml" and not NAME.match(body)] == []


@pytest.mark.parametrize("name", [name for name, text in files_of(page()).items() if any(kind in text for kind in KINDS)])
def test_each_policy_is_understood(name: str, folder: Path) -> None:
    """Policies are parsed strictly and without a warning; the files of a recipe together, since a GPUPolicy may name a template."""
    together = next(recipe.files for recipe in RECIPES if name in recipe.files)
    paths = [file for file, text in together.items() if any(kind in text for kind in KINDS)]
    found, errors, warnings = read_policies(paths, read_catalog())
    assert (list(map(str, errors)), warnings) == ([], [])
    assert found.policies


@pytest.mark.parametrize("trial", TRIALS, ids=[trial.command for trial in TRIALS])
def test_each_command_shows_what_the_page_shows(trial: Trial, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The output is equal to the page. BERTH_WRITE_RECIPES=1 rewrites the page."""
    code, out, err = typed(trial.command, capsys)
    assert code != BAD_INPUT, err
    if os.environ.get(SWITCH):
        rewrite(trial.command, err, out if trial.diff is not None else "")
        return
    hint = f"docs/recipes.md shows something else; if the output is right: {SWITCH}=1 python -m pytest tests/docs/test_recipes.py"
    assert err == trial.text, hint
    assert trial.diff in (None, out), hint


@pytest.mark.parametrize("recipe", RECIPES, ids=[recipe.title for recipe in RECIPES])
def test_each_recipe_shows_both_sides(recipe: Recipe) -> None:
    """A recipe shows a pod that is admitted and one that is denied or unchanged."""
    output = "".join(trial.text for trial in recipe.trials)
    assert "admitted" in output
    assert any(word in output for word in LEFT_ALONE)


@pytest.mark.parametrize("trial", TRIALS, ids=[trial.command for trial in TRIALS])
def test_what_is_admitted_is_admitted_again_as_it_is(trial: Trial, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The admitted object gets no further edits, so an author may commit the diff."""
    words = shlex.split(trial.command)
    _, admitted, _ = typed(shlex.join(words).replace("-o diff", "-o yaml"), capsys)
    (folder / "again.yaml").write_text(admitted, encoding="utf-8")
    _, _, output = typed(shlex.join([*words[:-1], "again.yaml"]), capsys)
    assert "admitted with" not in output


def test_what_berth_does_not_do_names_an_alternative() -> None:
    """Each row has a goal, the reason and an alternative."""
    part = page().split("## What Berth does not do\n")[1]
    rows = [line.strip("|").split("|") for line in part.splitlines() if line.startswith("|")][2:]
    assert len(rows) >= 8
    assert [row for row in rows if len(row) != 3 or not all(cell.strip() for cell in row)] == []


def test_every_link_on_the_page_leads_somewhere() -> None:
    """Links lead to headings of the page and to existing files."""
    heads = {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in re.findall(r"^#+ (.*)$", page(), re.MULTILINE)}
    links = [link for link in re.findall(r"\]\(([^)]+)\)", page()) if "://" not in link]
    assert [link for link in links if link.startswith("#") and link[1:] not in heads] == []
    assert [link for link in links if not link.startswith("#") and not (PAGE.parent / link.partition("#")[0]).exists()] == []
