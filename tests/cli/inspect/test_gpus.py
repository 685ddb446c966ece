"""`berth gpus` shows the catalog as tables that people and grep can read."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.main import main
from cli.output.table import OutputTable


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert main(["gpus", *words]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out.splitlines()


def row(lines: list[str], first: str) -> str:
    return next(line.strip() for line in lines if line.split()[:1] == [first])


def test_the_catalog_is_one_aligned_table(capsys: pytest.CaptureFixture[str]) -> None:
    """One line a model: family, memory, slices with their counts, and the lowest price with its machine."""
    lines = printed(capsys)
    assert lines[0].split()[:3] == ["MODEL", "FAMILY", "MEMORY"]
    assert row(lines, "H200").split() == [
        "H200", "hopper", "141", "GB", "1g.18gb(7)", "1g.35gb(4)", "2g.35gb(3)", "3g.71gb(2)", "4g.71gb(1)", "7g.141gb(1)",
        "7.91", "aws", "p5en.48xlarge",
    ]  # fmt: skip
    assert row(lines, "A40").split() == ["A40", "ampere", "48", "GB", "-", "-", "-"]
    starts = {line.index("ampere") for line in lines if " ampere " in line}
    assert starts == {lines[0].index("FAMILY")}
    assert not any(line != line.rstrip() for line in lines)


def test_the_table_says_where_its_prices_hold(capsys: pytest.CaptureFixture[str]) -> None:
    """Prices are called indicative, with region and date."""
    assert "Prices are indicative: AWS us-east-1, on demand, 2026-07-20" in "\n".join(printed(capsys))


def test_a_model_shows_labels_slices_and_machines(capsys: pytest.CaptureFixture[str]) -> None:
    """Everything about one model that a policy or a pod can name."""
    lines = printed(capsys, "A100-40GB")
    text = "\n".join(lines)
    assert lines[0] == "A100-40GB (group A100): nvidia, family ampere, compute capability 8.0, 40 GB, 40960 MiB reported by its driver"
    assert "karpenter.k8s.aws/instance-gpu-name          a100" in text
    assert "cloud.google.com/gke-accelerator             nvidia-tesla-a100" in text
    assert row(lines, "1g.5gb+me").split() == ["1g.5gb+me", "nvidia.com/mig-1g.5gb.me", "1", "5", "GB", "4864", "MiB"]
    assert "p4d.24xlarge               p4d            8     21.96  2.74" in text


def test_a_figure_that_is_not_verified_is_a_dash(capsys: pytest.CaptureFixture[str]) -> None:
    """Usable memory of H200 slices is known from third parties only, so none is shown."""
    assert row(printed(capsys, "H200"), "1g.18gb").split() == ["1g.18gb", "nvidia.com/mig-1g.18gb", "7", "18", "GB", "-"]


def test_a_machine_that_a_platform_never_makes_is_not_among_its_labels(capsys: pytest.CaptureFixture[str]) -> None:
    """Karpenter on Azure skips a size for GB300, AKS has it."""
    lines = [line.split() for line in printed(capsys, "GB300")]
    name = "Standard_ND128isr_NDR_GB300_v6"
    assert any(line[:1] == ["aks"] and name in line for line in lines)
    assert any(line[:1] == ["karpenter-azure"] for line in lines)
    assert not any(line[:1] == ["karpenter-azure"] and name in line for line in lines)


def test_a_group_shows_each_of_its_models_whatever_the_case(capsys: pytest.CaptureFixture[str]) -> None:
    """`berth gpus a100` is both memory sizes."""
    lines = printed(capsys, "a100")
    assert [line.split()[0] for line in lines if "(group A100)" in line] == ["A100-40GB", "A100-80GB"]


def test_a_model_without_anything_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing known is said in words, not by an empty table."""
    assert printed(capsys, "Gaudi2")[1:] == [
        "resource habana.ai/gaudi", "", "LABELS", "  none known", "", "MIG", "  none", "", "MACHINES", "  none known",
    ]  # fmt: skip


def test_an_unknown_model_is_denied_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2, the wrong name and the right one."""
    assert main(["gpus", "H10O"]) == 2
    assert capsys.readouterr().err == 'berth: no GPU "H10O" in the catalog; did you mean "H100"?\n'


def test_a_file_laid_over_is_in_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A new GPU and a renamed slice show like shipped ones."""
    mine = tmp_path / "mine.yaml"
    mine.write_text(
        "gpus: [{model: B400, vendor: nvidia, family: blackwell, memoryGB: 300, mig: {1g.40gb: 7}}]\n"
        "resources: [{name: nvidia.com/gpu-40gb, vendor: nvidia, kind: mig, profile: 1g.40gb}]\n"
        "machines: [{cloud: aws, type: p9.xlarge, model: B400, count: 2, usdPerHour: 3}]\n"
    )
    assert row(printed(capsys, "--catalog", str(mine)), "B400").split()[4:] == ["1g.40gb(7)", "1.50", "aws", "p9.xlarge"]
    assert "nvidia.com/gpu-40gb" in row(printed(capsys, "B400", "--catalog", str(mine)), "1g.40gb")


def test_a_bad_file_is_denied(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2 with the file and the place in it."""
    mine = tmp_path / "mine.yaml"
    mine.write_text("gpus: [{model: T4, memoryGB: x}]\n")
    assert main(["gpus", "--catalog", str(mine)]) == 2
    assert capsys.readouterr().err == f'berth: {mine}: gpus[0].memoryGB: must be a whole number, found the text "x"; write memoryGB: 1\n'


def test_a_table_of_nothing_is_its_head() -> None:
    """Columns are as wide as what is in them."""
    assert OutputTable(("A", "LONG"), []).text() == ["A  LONG"]
    assert OutputTable(("A", "B"), [("xyz", "")]).text() == ["A    B", "xyz"]
