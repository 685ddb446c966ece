"""Compare what Berth says of public manifests with what a reader of them expected.

    python -P -m tests.public_manifests.compare COPIES [--write first|now] [--texts DIR]

COPIES holds the files, named by the first 16 digits of their SHA-256. --write fills a column of manifests.tsv.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import io
import json
import re
from pathlib import Path
from typing import Any

import yaml

from cli.main import main as run_berth

HERE = Path(__file__).parent
TABLE = HERE / "manifests.tsv"
LIBRARY = HERE.parents[1] / "policies" / "library"
STATUSES = {
    "admitted": "admitted|used as facts .* and admitted",
    "facts": "used as facts",
    "denied": "denied",
    "podless": "not checked: it names .* but it creates no pods|not checked: it creates no pods",
    "unchecked": "not checked: it names .*(?:but its kind is not in the catalog|; there is no kind)",
}
EDITED = {key: key.removesuffix("s") for key in ("tolerations", "affinity", "annotations", "labels", "selectors", "resources")}
EDITED["terminationGracePeriodSeconds"] = "grace"


def read_table(path: Path = TABLE) -> list[dict[str, str]]:
    """Return the rows of the table, in order."""
    names, *rows = (line.split("\t") for line in path.read_text().splitlines())
    return [dict(zip(names, row, strict=True)) for row in rows]


def write_table(rows: list[dict[str, str]], path: Path = TABLE) -> None:
    """Write the rows back."""
    path.write_text("\n".join(["\t".join(rows[0]), *("\t".join(row.values()) for row in rows)]) + "\n")


def call_berth(*arguments: str) -> tuple[str, str]:
    """Run a command in this process and return its standard output and standard error."""
    output, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors), contextlib.suppress(SystemExit):
        run_berth(list(arguments))
    return output.getvalue(), errors.getvalue()


def list_edits(before: Any, after: Any, at: str = "") -> set[str]:
    """Return the kinds of difference between two values, named by the nearest known key."""
    if before == after:
        return set()
    if isinstance(after, dict) and (isinstance(before, dict) or (before is None and not at)):
        before = before or {}
        return {edit for key in {*before, *after} for edit in list_edits(before.get(key), after.get(key), EDITED.get(key, at))}
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return {edit for old, new in zip(before, after, strict=True) for edit in list_edits(old, new, at)}
    return {at or "other"}


def classify(errors: str) -> set[str]:
    """Return the statuses that `berth try` gave to the documents."""
    statuses = set()
    for said in re.findall(r'^\S+?(?: document \d+)?: \w+ "[^"]*": (.*)$', errors, re.MULTILINE):
        statuses.add(next((status for status, pattern in STATUSES.items() if re.match(pattern, said)), "none"))
    return statuses


def observe_try(path: Path, platforms: str) -> tuple[str, str]:
    """Return what `berth try` does to a file, in the form of the table, and its text."""
    arguments = ("try", str(path), "--platforms", platforms, "-o", "json", "--policies")
    output, errors = call_berth(*arguments, str(LIBRARY))
    counted = call_berth(*arguments, str(HERE / "count.yaml"))[1]
    pods = [count or "?" for count in re.findall(r"BERTH-1(?:12[^\n]*?requests (?:at least )?(\d+)|18)", counted)]
    documents = [document for document in yaml.safe_load_all(path.read_text()) if isinstance(document, dict)]
    after = json.loads(output or "{}")
    items = after.get("items", [after] if after else [])
    edits = sorted(set().union(*(list_edits(old, new) for old, new in zip(documents, items, strict=len(documents) == len(items)))))
    statuses = classify(errors)
    verdict = next((status for status in ("denied", "unchecked", "admitted", "facts", "podless") if status in statuses), "none")
    codes = sorted(set(re.findall(r"BERTH-(\d{3})", errors)))
    return f"pods={','.join(pods) or '-'}; verdict={verdict}; edits={','.join(edits) or '-'}; codes={','.join(codes) or '-'}", errors


def observe_scan(path: Path) -> tuple[str, str]:
    """Return the kinds of finding of `berth scan --from` on a file, in the form of the table, and its text."""
    output, errors = call_berth("scan", "--from", str(path), "-o", "json")
    kinds = sorted({finding["kind"] for finding in json.loads(output)["findings"]}) if output else ["error"]
    return f"findings={','.join(kinds) or '-'}", errors + call_berth("scan", "--from", str(path))[0]


def parse(text: str) -> dict[str, str]:
    """Return the fields of an expected or observed outcome."""
    return dict(field.split("=", 1) for field in text.split("; "))


def find_differences(expected: str, observed: str) -> list[str]:
    """Return the fields in which an observed outcome is not the expected one."""
    wanted, seen = parse(expected), parse(observed)
    differences: list[str] = [
        name for name in ("pods", "verdict") if name in wanted and wanted[name] != "*" and seen.get(name) not in wanted[name].split("|")
    ]
    for name in ("edits", "findings"):
        entries = [] if wanted.get(name, "-") == "-" else wanted[name].split(",")
        present = [] if seen.get(name, "-") == "-" else seen[name].split(",")
        patterns = [entry.removesuffix("?") for entry in entries]
        lacking = any(not entry.endswith("?") and not fnmatch.filter(present, entry) for entry in entries)
        extra = any(not any(fnmatch.fnmatch(entry, pattern) for pattern in patterns) for entry in present)
        if name in wanted and (lacking or extra):
            differences.append(name)
    codes = seen.get("codes", "-").split(",")
    if "codes" in wanted and not set(wanted["codes"].split("|")) & set(codes):
        differences.append("codes")
    return differences + ["not"] * bool(set(wanted.get("not", "").split(",")) & set(codes))


def main() -> None:
    """Run the comparison of all rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("copies", type=Path)
    parser.add_argument("--write", choices=["first", "now"])
    parser.add_argument("--texts", type=Path)
    options = parser.parse_args()
    differing = {"yes": 0, "no": 0}
    for row in (rows := read_table()):
        path = options.copies / f"{row['sha256'][:16]}.yaml"
        observed, text = observe_try(path, row["platforms"]) if row["command"] == "try" else observe_scan(path)
        expected = row["expected"] if row["corrected"] == "-" else row["corrected"]
        differences = find_differences(expected, observed)
        if differences:
            differing[row["judged"]] += 1
            print(f"{row['number']} {row['path'].rsplit('/', 1)[-1]}: {','.join(differences)}: {expected} | {observed}")
        if options.write:
            row[options.write] = f"{'as expected' if not differences else 'differs'}: {observed}"
        if options.texts:
            (options.texts / f"{int(row['number']):03}.txt").write_text(text)
    print(f"differ: {differing['yes']} of the judged, {differing['no']} of the others, of {len(rows)}")
    if options.write:
        write_table(rows)


if __name__ == "__main__":
    main()
