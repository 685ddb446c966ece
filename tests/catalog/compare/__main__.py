"""Compare the catalog with what machine-readable sources say today, and list the rows that nobody has looked at for 90 days.

make catalog                                                     compares all
python -m tests.catalog.compare [--from MODULE=FOLDER] ...       reads a folder in place of a module that cannot be downloaded

The sources are Go modules, in the newest version that the module proxy serves; nothing of them is built or run. The exit code is 1 if a
row is missing, extra or different and ``exceptions.yaml`` gives no reason, 2 if a source could not be had, else 0.
"""

from __future__ import annotations

import argparse
import datetime
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import yaml

from documents.files import SHIPPED_CATALOG
from tests.catalog.compare import devices, machines, workloads
from tests.catalog.compare.machines import Raw
from tests.catalog.compare.modules import Module, NoModuleError, download
from tests.catalog.compare.rows import Comparison, Deliberate, Difference, undeclared

HERE = Path(__file__).parent
STALE = datetime.timedelta(days=90)
Check = Callable[[Raw, Module, str], Iterator[Comparison]]
CHECKS: dict[str, Check] = {
    machines.EC2: machines.ec2_types,
    machines.SAGEMAKER: machines.hyperpod_types,
    machines.KARPENTER_AWS: machines.karpenter_aws,
    machines.KARPENTER_AWS_PAGES: machines.karpenter_aws_pages,
    machines.AUTOSCALER: machines.autoscaler,
    machines.KARPENTER_AZURE: machines.karpenter_azure,
    machines.SKEWER: machines.skewer,
    devices.MIG_PARTED: devices.mig_profiles,
    devices.AMD_PLUGIN: devices.amd_products,
    devices.INTEL_PLUGIN: devices.intel_products,
    devices.HAMI: devices.hami_resources,
    devices.KARPENTER: devices.karpenter_keys,
    devices.API: devices.well_known_taints,
    devices.KUEUE: devices.kueue_keys,
    devices.KAI: devices.kai_keys,
}
"""What is compared with which module."""


def main(arguments: Sequence[str]) -> int:
    options = _parsed(arguments)
    raw = yaml.safe_load(SHIPPED_CATALOG.read_text(encoding="utf-8"))
    settings = yaml.safe_load((HERE / "exceptions.yaml").read_text(encoding="utf-8"))
    checks = CHECKS | dict.fromkeys(settings["definitions"], workloads.kinds)
    folders = {module: Path(folder) for module, folder in (text.split("=", 1) for text in options.folder)}
    try:
        modules, failed = download(checks, folders)
    except NoModuleError as error:
        print(error, file=sys.stderr)
        return 2
    comparisons: list[Comparison] = []
    for path, module in modules.items():
        try:
            comparisons += checks[path](raw, module, f"{path}@{module.version}")
        except NoModuleError as error:
            failed[path] = str(error)
    declared = [Deliberate(**entry) for entry in settings["exceptions"]]
    found = [difference for comparison in comparisons for difference in comparison.differences()]
    left, unused = undeclared(found, declared)
    _report(raw, comparisons, left)
    for entry in () if failed else unused:
        print(f"unused   exceptions.yaml: {entry.section} {entry.row} differs no more: {entry.reason}")
    for path, reason in sorted(failed.items()):
        print(f"not compared: {path}: {reason}", file=sys.stderr)
    if failed:
        print(f"{len(failed)} of {len(checks)} modules could not be had: is the Go module proxy reachable (GOPROXY)?", file=sys.stderr)
    return 1 if left or (unused and not failed) else 2 if failed else 0


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests.catalog.compare", description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--from", dest="folder", action="append", default=[], metavar="MODULE=FOLDER", help="read a folder in place of a module"
    )
    return parser.parse_args(arguments)


def _report(raw: Raw, comparisons: Sequence[Comparison], left: Sequence[Difference]) -> None:
    """Print the differences, the rows that are stale, and how many rows have which kind of source."""
    for difference in left:
        print(difference)
    compared = {(comparison.section, row) for comparison in comparisons for row in comparison.shared}
    kinds: Counter[str] = Counter()
    today = datetime.datetime.now(tz=datetime.UTC).date()
    for section, name, checked in rows_with_pages(raw):
        if names_of(name) & {row for of, row in compared if of == section}:
            kinds["compared with a module"] += 1
        elif checked is None:
            kinds["general knowledge, without a page"] += 1
        else:
            kinds["a page and a date"] += 1
            if today - checked > STALE:
                print(f"stale    {section} {name}: its page was read on {checked}")
                kinds["of these over 90 days old"] += 1
    for kind, count in kinds.items():
        print(f"{count:5} rows: {kind}")
    counts = Counter(difference.kind for difference in left)
    print(f"{counts['missing']} missing, {counts['extra']} extra, {counts['differs']} differing")


def names_of(name: str) -> set[str]:
    """Return the names under which a comparison may have a row: workloads have one for each API group."""
    return set(name.split(" "))


def rows_with_pages(raw: Raw) -> Iterator[tuple[str, str, datetime.date | None]]:
    """Yield section, name and the day on which its newest page was read, for each row; None: no page."""
    pages = raw["sources"]
    for section, records in raw.items():
        if section == "sources":
            continue
        for key, record in records.items() if isinstance(records, dict) else enumerate(records):
            days = [record["checked"]] if "checked" in record else []
            days += [pages[source]["checked"] for source in record["source"].split() if pages[source].get("checked")]
            yield section, _row_name(section, key, record), max(days, default=None)


def _row_name(section: str, key: object, record: Raw) -> str:
    if section == "workloads":
        return " ".join(f"{version.rpartition('/')[0]}/{record.get('kind', record['name'])}" for version in record["apiVersions"])
    if section == "migSets":
        return " ".join(record["profiles"])
    if section == "gpus":
        return " ".join((record["model"], *record.get("products", ())))
    if section == "reservedKeys":
        return " ".join(record["prefix"] + name for listed in ("labels", "annotations", "others") for name in record.get(listed, ()))
    if section == "machines":
        return str(record["type"] or record["attributes"]["accelerator"])
    return str(key) if isinstance(key, str) else str(next(iter(record.values())))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
