"""documents.files: paths to texts and policies, each failure in one clear line."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import pytest

from documents import files
from documents.files import read_catalog, read_documents, read_paths, read_policies, stamp

POLICY = "apiVersion: berth.dev/v1alpha1\nkind: ClusterGPUPolicy\nmetadata: {name: NAME}\nspec: {default: {gracePeriod: 1m}}\n"


def test_folder_is_its_yaml_files_by_name(tmp_path: Path) -> None:
    """A folder stands for the YAML and JSON files directly in it, sorted."""
    for name in ("b.yml", "a.yaml", "c.json", "d.txt", ".hidden"):
        (tmp_path / name).write_text(name)
    (tmp_path / "inner").mkdir()
    texts, errors = read_paths([str(tmp_path)])
    assert [(Path(file).name, text) for file, text in texts] == [("a.yaml", "a.yaml"), ("b.yml", "b.yml"), ("c.json", "c.json")]
    assert errors == []


def test_what_is_named_as_a_policy_and_is_no_file_is_told(tmp_path: Path) -> None:
    """A guardrail must not vanish because its file is a folder, a pipe or a link to nowhere."""
    (tmp_path / "a.yaml").write_text("a")
    (tmp_path / "folder.yaml").mkdir()
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "gone.yaml").symlink_to("nowhere")
    (tmp_path / "loop.yaml").symlink_to("loop.yaml")
    texts, errors = read_paths([str(tmp_path)])
    assert [text for _, text in texts] == ["a"]
    assert [(Path(error.file).name, error.message.partition(";")[0]) for error in errors] == [
        ("folder.yaml", "is not a regular file"),
        ("gone.yaml", "is a link to nowhere, which does not exist"),
        ("loop.yaml", "cannot be read: Too many levels of symbolic links"),
        ("pipe.yaml", "is not a regular file"),
    ]


def test_a_stamp_changes_when_a_file_turns_bad(tmp_path: Path) -> None:
    """Gone, replaced, or now a link to nowhere: each is a change, so that it is read and told."""
    file = tmp_path / "a.yaml"
    file.write_text("a")
    stamps = [stamp([str(tmp_path)])]
    file.unlink()
    file.symlink_to("nowhere")
    stamps.append(stamp([str(tmp_path)]))
    file.unlink()
    stamps.append(stamp([str(tmp_path)]))
    assert len(set(stamps)) == 3
    assert stamp([str(tmp_path)]) == stamps[-1]


def test_file_named_twice_is_read_once(tmp_path: Path) -> None:
    """A file given by name and by its folder is one file."""
    (tmp_path / "a.yaml").write_text("x")
    assert len(read_paths([str(tmp_path), str(tmp_path / "a.yaml")])[0]) == 1


def test_missing_file_names_the_nearest(tmp_path: Path) -> None:
    """A file that is not there is told, with the one that was probably meant; the others are read."""
    (tmp_path / "training.yaml").write_text("x")
    texts, errors = read_paths([str(tmp_path / "trainin.yaml"), str(tmp_path / "zz" / "zz"), str(tmp_path / "training.yaml")])
    assert len(texts) == 1
    assert [str(error) for error in errors] == [
        f'berth: {tmp_path}/trainin.yaml: there is no such file or folder; did you mean "{tmp_path}/training.yaml"?',
        f"berth: {tmp_path}/zz/zz: there is no such file or folder",
    ]


def test_folder_without_yaml(tmp_path: Path) -> None:
    """A folder without YAML is an error, not silence."""
    (tmp_path / "README.md").write_text("x")
    assert [str(error) for error in read_paths([str(tmp_path)])[1]] == [
        f"berth: {tmp_path}: the folder has no .yaml, .yml or .json file; folders in it are not searched"
    ]


def test_file_that_is_not_text(tmp_path: Path) -> None:
    """Bytes that are not UTF-8 are told with their line."""
    (tmp_path / "a.yaml").write_bytes(b"a: b\nc: \xff\n")
    assert [str(error) for error in read_paths([str(tmp_path)])[1]] == [
        f"berth: {tmp_path}/a.yaml, line 2: is not UTF-8: byte 0xff; save the file as UTF-8"
    ]


def test_file_that_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file beyond the bound is rejected before it fills memory."""
    monkeypatch.setattr(files, "_MOST_BYTES", 2**20)
    (tmp_path / "a.yaml").write_bytes(b"a" * (2**20 + 1))
    assert [str(error) for error in read_paths([str(tmp_path)])[1]] == [f"berth: {tmp_path}/a.yaml: is larger than 1 MiB"]


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dash is standard input."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a: 1")))
    assert read_paths(["-"]) == ([("-", "a: 1")], [])


def test_unreadable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that the system does not give out says why."""

    def deny(file: str) -> bytes:
        raise PermissionError(13, "Permission denied", file)

    monkeypatch.setattr(files, "_bytes", deny)
    (tmp_path / "a.yaml").write_text("x")
    assert [str(error) for error in read_paths([str(tmp_path)])[1]] == [f"berth: {tmp_path}/a.yaml: is not readable by this user"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may list every folder")
def test_unreadable_folder(tmp_path: Path) -> None:
    """A folder that may not be listed says so."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0)
    assert [str(error) for error in read_paths([str(closed)])[1]] == [f"berth: {closed}: is not readable by this user"]


def test_other_reasons_are_the_systems(tmp_path: Path) -> None:
    """What the system rejects for another reason is told in its words."""
    (tmp_path / "loop.yaml").symlink_to(tmp_path / "loop.yaml")
    (error,) = read_paths([str(tmp_path / "loop.yaml")])[1]
    assert "cannot be read: Too many levels of symbolic links" in str(error)


def test_documents_of_many_files(tmp_path: Path) -> None:
    """Documents come in the order of the files, and one bad file does not hide the others."""
    (tmp_path / "a.yaml").write_text("a: 1\n---\nb: 2\n")
    (tmp_path / "b.yaml").write_text("a: [\n")
    (tmp_path / "c.json").write_text('{"c": 3}')
    found, errors = read_documents([str(tmp_path)])
    assert [document.value for document in found] == [{"a": 1}, {"b": 2}, {"c": 3}]
    assert [error.file for error in errors] == [f"{tmp_path}/b.yaml"]


def test_policies_of_many_files(tmp_path: Path) -> None:
    """Policies of all files make one set; bad files, bad policies and doubts are told together."""
    (tmp_path / "a.yaml").write_text(POLICY.replace("NAME", "one"))
    (tmp_path / "b.yaml").write_text("\ta: 1")
    (tmp_path / "c.yaml").write_text(POLICY.replace("NAME", "one"))
    (tmp_path / "d.yaml").write_text(POLICY.replace("NAME", "two").replace("gracePeriod: 1m", "instanceFamilies: {in: [zz9]}"))
    policy_set, errors, warnings = read_policies([str(tmp_path)], read_catalog())
    assert [policy.name for policy in policy_set.policies] == ["one", "two"]
    assert [str(error).removeprefix(f"berth: {tmp_path}/") for error in errors] == [
        "b.yaml, line 1: found a tab; indent with spaces",
        f"c.yaml, metadata.name: ClusterGPUPolicy/one is already defined in {tmp_path}/a.yaml; rename or remove one",
    ]
    assert [str(warning).removeprefix(f"berth: {tmp_path}/") for warning in warnings] == [
        'd.yaml, spec.default.instanceFamilies.in[0]: unknown instance family "zz9", kept as written'
    ]
