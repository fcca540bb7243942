"""Experiments of the papers: each runs with --quick; runs resume; errors are clear."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reproduce import command, pages, registry, runner
from reproduce.data import data_folder
from reproduce.experiment import Claim, Experiment, Results, Table
from reproduce.single_page import single_page
from reproduce.store import Store

ROOT = Path(__file__).parents[2]
MEASURED = [name for name in registry.names() if registry.measured(name) == name]


def need(name: str) -> None:
    experiment = registry.load(name)
    assert experiment.cases is not None
    files, folder = experiment.all_files(experiment.cases(True).values()), data_folder(None)
    lacking = [file for file in files if folder is None or not (folder / file).is_file()]
    if lacking:
        pytest.skip(f"the data folder {folder} lacks {', '.join(lacking)}")


@pytest.mark.parametrize("name", MEASURED)
def test_quick_run(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    if "ertekin2007" in name:
        pytest.importorskip("imblearn")
    need(name)
    showing = [one for one in registry.names() if registry.measured(one) == name]
    given = ["--quick", "--quiet", "--out", str(tmp_path), "--plot", str(tmp_path)]
    assert command.main([*showing, *given]) == 0
    said = capsys.readouterr().out
    assert said.count(command.SMOKE) == len(showing)
    stored = Store(tmp_path / f"{name}.json")
    cases = registry.load(name).cases
    assert cases is not None
    assert list(cases(True)) == stored.results().cases
    assert all(case["settings"]["quick"] for case in stored.content["cases"].values())
    for one in showing:
        claims = registry.load(one).claims(stored.results())
        assert all(isinstance(claim, Claim) for claim in claims)
        if registry.load(one).draw is not None:
            assert (tmp_path / f"{one.replace('/', '-')}.png").stat().st_size > 3_000


@pytest.mark.parametrize("name", registry.names())
def test_an_experiment_is_described(name: str) -> None:
    experiment = registry.load(name)
    assert name.startswith(f"{experiment.paper}/")
    assert len(experiment.text) > 60
    assert experiment.claims(Results({})) is not None
    assert registry.paper(experiment.paper).key == experiment.paper


def test_experiments_are_listed_in_the_order_of_the_papers() -> None:
    listed = [name for name in registry.names() if name.startswith("laskov2006/figure")]
    numbers = [int(name.removeprefix("laskov2006/figure")) for name in listed]
    assert numbers == sorted(numbers)
    assert numbers[-1] >= 10


@pytest.mark.parametrize("paper", registry.papers())
def test_a_paper_has_a_title(paper: str) -> None:
    assert len(registry.paper(paper).title) > 20


# -- the runner ------------------------------------------------------------------------------------


class Counting:
    """An experiment that counts its runs, and is interrupted at one of them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, stop_at: int | None = None) -> None:
        self.calls: list[tuple[str, int]] = []
        self.stop_at = stop_at
        self.experiment = Experiment(
            "none", "Figure 0", "Counting", "", cases=self.cases, run=self.run, seeds=2
        )
        monkeypatch.setattr(registry, "load", lambda name: self.experiment)
        monkeypatch.setattr(registry, "select", lambda names: list(names))

    def cases(self, quick: bool) -> dict[str, Any]:
        return {"a": {"power": 2}, "b": {"power": 3}, "once": {"power": 4, "seeds": 1}}

    def run(self, case: dict[str, Any], seed: int, data: Path, quick: bool) -> dict[str, Any]:
        if len(self.calls) == self.stop_at:
            raise KeyboardInterrupt
        self.calls.append((case["name"], seed))
        return {"value": (seed + 2) ** case["power"]}


def test_a_run_resumes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    one = Counting(monkeypatch)
    options = runner.Options(out=tmp_path, seeds=1, show_bar=False)
    assert runner.run("none/figure0", options).mean("a", "value") == 4
    assert one.calls == [("a", 0), ("b", 0), ("once", 0)]
    more = runner.run("none/figure0", runner.Options(out=tmp_path, show_bar=False))
    assert one.calls[3:] == [("a", 1), ("b", 1)]
    assert more.values("a", "value") == [4, 9]
    assert more.sd("once", "value") is None
    only = runner.Options(out=tmp_path, only=("b",), fresh=True, show_bar=False)
    runner.run("none/figure0", only)
    assert one.calls[5:] == [("b", 0), ("b", 1)]
    kept = json.loads((tmp_path / "none/figure0.json").read_text(encoding="utf-8"))
    assert {"date", "commit", "cpu", "marginwise"} <= kept["made"][0].keys()
    assert kept["cases"]["a"]["runs"]["0"]["total"]["wall"] >= 0


def test_other_settings_are_measured_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    one = Counting(monkeypatch)
    options = runner.Options(out=tmp_path, only=("a",), show_bar=False)
    runner.run("none/figure0", options)
    monkeypatch.setattr(one, "cases", lambda quick: {"a": {"power": 5}})
    one.experiment = Experiment(
        "none", "Figure 0", "Counting", "", cases=one.cases, run=one.run, seeds=1
    )
    assert runner.run("none/figure0", options).values("a", "value") == [32]


def test_an_interrupted_run_keeps_its_cases(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = Counting(monkeypatch, stop_at=2)
    assert command.main(["none/figure0", "--out", str(tmp_path), "-q"]) == 130
    assert "run again to continue" in capsys.readouterr().err
    assert Store(tmp_path / "none/figure0.json").results().cases == ["a", "b"]
    one.stop_at = None
    assert command.main(["none/figure0", "--out", str(tmp_path), "-q"]) == 0
    assert len(one.calls) == 5


# -- errors ----------------------------------------------------------------------------------------


def test_unknown_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["bordes2006"]) == 2
    assert "no experiment 'bordes2006'; expected all, a paper" in capsys.readouterr().err
    given = ["bordes2005/figure10", "--quick", "--only", "no", "--out", str(tmp_path)]
    assert command.main(given) == 1
    assert "has no case 'no'; expected 'online, 1', 'online, 1000'," in capsys.readouterr().err


def test_missing_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["bordes2005/figure10", "--quick", "--data", str(tmp_path), "--out", str(tmp_path)]
    assert command.main(given) == 1
    said = capsys.readouterr().err
    assert "lacks banana.npz" in said
    assert "python -m reproduce.data" in said


def test_listing_needs_no_heavy_package(tmp_path: Path) -> None:
    hidden = "import sys; sys.modules.update(dict.fromkeys(['imblearn', 'matplotlib', 'sklearn']))"
    code = f"{hidden}; from reproduce.command import main; main(['--data', {str(tmp_path)!r}])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    )
    assert done.returncode == 0, done.stderr
    assert "bordes2005/figure10  Figure 10." in done.stdout
    assert "lacks banana.npz" in done.stdout


# -- pages -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["index.md", *(f"{paper}.md" for paper in registry.papers())])
def test_pages_agree_with_the_results(name: str) -> None:
    path = ROOT / "docs" / "results" / name
    assert path.read_text(encoding="utf-8") == pages.pages()[name], "run python -m reproduce.pages"


def test_pictures_of_pages_exist() -> None:
    for name in registry.names():
        if registry.load(name).draw is not None and pages.results_of(name):
            picture = ROOT / "docs" / "images" / "results" / pages.picture(name)
            assert picture.is_file(), picture


def test_the_report_agrees_with_the_pages() -> None:
    path = ROOT / "docs" / "results" / pages.REPORT
    whole = pages.report(pages.pages(), path.parent)
    assert path.read_text(encoding="utf-8") == whole, "run python -m reproduce.pages"
    assert pages.REPORT not in whole


def test_the_report_needs_no_network() -> None:
    table = pages.markdown(Table(["", "x"], [["a|b", "1"]]))
    page = "\n".join(["# p", "", *table, "", "Some `code`, **bold** <text>."])
    shown = single_page({"p.md": page}, ROOT)
    assert '<h1 id="p">p</h1>' in shown
    assert "<td>a|b</td><td class=right>1</td>" in shown
    assert "<code>code</code>, <strong>bold</strong> &lt;text&gt;." in shown
    whole = pages.report(pages.pages(), ROOT / "docs" / "results")
    assert "http://" not in whole
    assert 'src="data:image/png;base64,' in whole
    assert 'src="../' not in whole
