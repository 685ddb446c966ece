"""Suggested policies as files: one each, with a comment that says why."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from pathlib import Path

from analysis.scan.suggestions.written import WrittenSuggestion, comment
from cli.output import stderr
from documents import yaml_writer
from documents.printable import printable
from policies.document import InputError

WIDTH = 118


def write(folder: str, found: Iterable[WrittenSuggestion]) -> None:
    """Write them into a folder, which is made if it is not there.

    Raises InputError, and writes nothing, if the folder has another file of such a name.
    """
    place = Path(folder)
    texts = {place / f"{one.suggestion.name}.yaml": format_suggestion(one) for one in found}
    if not texts:
        stderr.say("found no GPU node and no GPU pod, so there is no policy to suggest")
        return
    try:
        taken = [file for file, content in texts.items() if file.exists() and file.read_text() != content]
        if taken:
            more = f", as do {len(taken) - 1} more of these files" if len(taken) > 1 else ""
            message = f"exists with different content{more}; nothing was written; choose another folder, or move the file"
            raise InputError(file=str(taken[0]), message=message)
        place.mkdir(exist_ok=True)
        for file, content in texts.items():
            file.write_text(content)
    except OSError as error:
        raise InputError(
            file=folder, message=f"cannot be written: {error.strerror or error}; choose a folder that you can write to"
        ) from None
    stderr.say(f"wrote {len(texts)} policies in Audit to {folder}; to preview them: berth audit --policies {folder}")


def format_suggestion(one: WrittenSuggestion) -> str:
    """Return a policy as YAML with its comment."""
    lines = [line for sentence in comment(one) for line in textwrap.wrap(printable(sentence), WIDTH)]
    return "".join(f"# {line}\n" for line in lines) + yaml_writer.write_yaml(one.suggestion.manifest())
