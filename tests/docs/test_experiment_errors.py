"""What the reproduction command says if something is wrong, and what it keeps."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from reproduce import command, data, pages, registry, store
from reproduce.experiment import Experiment

ROOT = Path(__file__).parents[2]
RUN = ["none/figure0", "-q"]


class Squares:
    """An experiment of two cases and two seeds, which calls a function before each run."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.before: Any = lambda name, seed: None
        self.calls: list[tuple[str, int]] = []
        self.experiment = Experiment(
            "none", "Figure 0", "Squares", "", cases=self.cases, run=self.run, seeds=2
        )
        monkeypatch.setattr(registry, "load", lambda name: self.experiment)
        monkeypatch.setattr(registry, "select", lambda names: list(names))

    def cases(self, quick: bool) -> dict[str, Any]:
        return {"a": {"power": 2}, "b": {"power": 3}}

    def run(self, case: dict[str, Any], seed: int, data: Path, quick: bool) -> dict[str, Any]:
        self.before(case["name"], seed)
        self.calls.append((case["name"], seed))
        return {"value": (seed + 2) ** case["power"]}


@pytest.fixture
def squares(monkeypatch: pytest.MonkeyPatch) -> Squares:
    return Squares(monkeypatch)


def runs(path: Path) -> dict[str, list[str]]:
    cases = json.loads(path.read_text(encoding="utf-8"))["cases"]
    return {name: sorted(case["runs"]) for name, case in cases.items()}


DAMAGED = [
    "",
    "{",
    "[]",
    "null",
    '{"cases": {}}',
    '{"made": [], "cases": {"a": 3}}',
    '{"made": [], "cases": {"a": {"settings": null, "runs": {}}}}',
    '{"made": [], "cases": {"a": {"settings": {"power": 2}, "runs": {"x": {}}}}}',
    '{"made": [], "cases": {"a": {"settings": {"power": 2}, "runs": {"0": 1}}}}',
]


@pytest.mark.parametrize("content", DAMAGED)
def test_damaged_results_are_kept_and_named(
    content: str, squares: Squares, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "none" / "figure0.json"
    path.parent.mkdir()
    path.write_text(content, encoding="utf-8")
    assert command.main([*RUN, "--out", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert f"none/figure0: {path} cannot be read (" in said
    assert "Restore it with git, or delete it" in said
    assert path.read_text(encoding="utf-8") == content
    assert squares.calls == []


def test_the_list_shows_damaged_results(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(store, "RESULTS", tmp_path)
    (tmp_path / "bordes2005").mkdir()
    (tmp_path / "bordes2005" / "figure10.json").write_text("{")
    assert command.main(["--data", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "unreadable results stored" in said
    assert "0 of 50 runs stored" in said


def test_errors_inside_an_experiment_are_not_taken_for_a_wrong_name(
    squares: Squares, tmp_path: Path
) -> None:
    def fail(name: str, seed: int) -> None:
        raise KeyError("column")

    squares.before = fail
    with pytest.raises(KeyError, match="column"):
        command.main([*RUN, "--out", str(tmp_path)])


def test_two_runs_at_once_keep_the_results_of_both(squares: Squares, tmp_path: Path) -> None:
    given = [*RUN, "--out", str(tmp_path)]

    def other_process(name: str, seed: int) -> None:
        if (name, seed) == ("a", 0):
            squares.before = lambda name, seed: None
            assert command.main([*given, "--only", "b", "--seeds", "3"]) == 0

    squares.before = other_process
    assert command.main([*given, "--only", "a"]) == 0
    assert squares.calls[:3] == [("b", 0), ("b", 1), ("b", 2)]
    assert runs(tmp_path / "none" / "figure0.json") == {"a": ["0", "1"], "b": ["0", "1", "2"]}


def test_many_writers(tmp_path: Path) -> None:
    code = "import sys; from pathlib import Path; from reproduce.store import Store\n"
    code += "for k in range(20): Store(Path(sys.argv[1])).add(sys.argv[2], {'x': 1}, k, {})"
    path = tmp_path / "one.json"
    writers = [
        subprocess.Popen([sys.executable, "-c", code, path, name], cwd=ROOT) for name in "abc"
    ]
    assert [one.wait(timeout=120) for one in writers] == [0, 0, 0]
    assert {name: len(seeds) for name, seeds in runs(path).items()} == dict.fromkeys("abc", 20)
    assert [one.name for one in tmp_path.iterdir()] == ["one.json"]


def test_results_that_cannot_be_written(
    squares: Squares, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.touch()
    assert command.main([*RUN, "--out", str(file)]) == 1
    assert "figure0.json cannot be written: " in capsys.readouterr().err
    assert squares.calls == []  # noticed before anything was measured


def test_a_full_disk_keeps_what_was_stored(
    squares: Squares,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def full(self: Path, text: str, **_: Any) -> None:
        self.touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    def fill(name: str, seed: int) -> None:
        if (name, seed) == ("b", 0):
            monkeypatch.setattr(Path, "write_text", full)

    squares.before = fill
    assert command.main([*RUN, "--out", str(tmp_path)]) == 1
    assert "cannot be written: [Errno 28] No space left" in capsys.readouterr().err
    assert [one.name for one in (tmp_path / "none").iterdir()] == ["figure0.json"]
    assert runs(tmp_path / "none" / "figure0.json") == {"a": ["0"]}


def test_missing_packages_are_named(
    squares: Squares,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def resample(name: str, seed: int) -> None:
        import_module("imblearn.under_sampling")

    for name in [*sys.modules, "imblearn"]:
        if name.partition(".")[0] == "imblearn":
            monkeypatch.setitem(sys.modules, name, None)
    squares.before = resample
    assert command.main([*RUN, "--out", str(tmp_path)]) == 1
    assert "needs imblearn: pip install 'marginwise[reproduce]'" in capsys.readouterr().err
    monkeypatch.setattr(command, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match="2"):
        command.main([*RUN, "--out", str(tmp_path), "--plot", str(tmp_path)])
    assert "--plot needs matplotlib" in capsys.readouterr().err


@pytest.mark.parametrize("given", [["--quick"], ["--seeds", "2"], ["--only", "all"], ["--fresh"]])
def test_options_of_runs_need_a_name(given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        command.main(given)
    assert "name the experiments to run, for example all" in capsys.readouterr().err


@pytest.mark.skipif(os.name == "nt", reason="pipes are closed differently on Windows")
@pytest.mark.parametrize("module", ["reproduce", "reproduce.data"])
def test_output_that_nobody_reads(module: str, tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    given = [sys.executable, "-m", module, "--data", str(tmp_path)]
    done = subprocess.run(given, cwd=ROOT, stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert done.stderr == ""
    assert done.returncode == 1


def test_without_a_data_folder_a_command_makes_the_files(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(data, "data_folder", lambda given: None)
    assert command.main(["bordes2005/figure10", "-q"]) == 1
    given = capsys.readouterr().err.strip().rpartition("python -m reproduce.data ")[2].split()
    options = data.arguments(given)
    assert options.download
    assert [source.file for source in data.chosen(options.only)] == ["banana.npz"]


SLOW_TO_END = """
import time
try:
    open("started", "w").close()
    time.sleep(60)
except KeyboardInterrupt:
    time.sleep(1.5)
    open("stored", "w").close()
    raise SystemExit(130)
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no process groups with SIGINT")
def test_an_interrupt_waits_until_results_are_stored(tmp_path: Path) -> None:
    (tmp_path / "reproduce").mkdir()
    (tmp_path / "reproduce" / "__main__.py").write_text(SLOW_TO_END)
    (tmp_path / "pyproject.toml").touch()
    code = "from marginwise.cli import main; main()"
    given = [sys.executable, "-c", code, "reproduce", "all"]
    with subprocess.Popen(given, cwd=tmp_path, start_new_session=True) as running:
        for _ in range(600):
            if (tmp_path / "started").exists():
                break
            time.sleep(0.1)
        os.killpg(running.pid, signal.SIGINT)
        assert running.wait(timeout=60) == 130
    assert (tmp_path / "stored").exists()


def test_newer_results_are_not_replaced(
    squares: Squares, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    older = squares.experiment
    squares.experiment = replace(older, version=2)
    assert command.main([*RUN, "--out", str(tmp_path)]) == 0
    path = tmp_path / "none" / "figure0.json"
    before = path.read_bytes()
    squares.experiment = older
    assert command.main([*RUN, "--out", str(tmp_path)]) == 1
    assert "has results of version 2 of this experiment" in capsys.readouterr().err
    assert path.read_bytes() == before


# -- pages -----------------------------------------------------------------------------------------


def test_pages_without_results(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(store, "RESULTS", tmp_path)
    assert pages.main(["--docs", str(tmp_path / "docs")]) == 0
    page = (tmp_path / "docs" / "results" / "bordes2005.md").read_text(encoding="utf-8")
    assert page.count("Not measured yet.") == len(pages.of_paper("bordes2005"))
    assert "**confirmed**" not in page
    assert not (tmp_path / "docs" / "images").exists()


def test_pages_name_damaged_results(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(store, "RESULTS", tmp_path)
    (tmp_path / "wang2009").mkdir()
    (tmp_path / "wang2009" / "figure2.json").write_text("{")
    docs = tmp_path / "docs"
    for given in ([], ["--only", "bordes2006"]):
        with pytest.raises(SystemExit, match="2"):
            pages.main(["--docs", str(docs), *given])
    said = capsys.readouterr().err
    assert "figure2.json cannot be read" in said
    assert "no experiment 'bordes2006'" in said
    assert not docs.exists()


def test_claims_that_cannot_be_imported_are_not_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> None:
        raise ModuleNotFoundError("No module named 'absent'", name="absent")

    monkeypatch.setattr(pages.importlib, "import_module", fail)
    monkeypatch.setattr(pages, "of_paper", lambda paper: [])
    with pytest.raises(ModuleNotFoundError, match="absent"):
        pages.claims_of("bordes2005")


def test_pictures_that_cannot_be_written_are_refused_before_measuring(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(command, "run_all", lambda *given: pytest.fail("measured"))
    with pytest.raises(SystemExit, match="2"):
        command.main(["bordes2005/figure10", "--plot", str(tmp_path / "file")])
    with pytest.raises(SystemExit, match="2"):
        command.main(["bordes2005/figure10", "--json"])
    with pytest.raises(SystemExit, match="2"):
        pages.main(["--docs", str(tmp_path / "file")])
    said = capsys.readouterr().err
    assert f"--plot {tmp_path / 'file'} cannot be written" in said
    assert "--json lists the experiments" in said
    assert f"--docs {tmp_path / 'file'} cannot be written" in said


@pytest.mark.parametrize(
    "case", ['{"settings": 5, "runs": {}}', '{"settings": {}, "runs": {"x": {}}}']
)
def test_results_of_wrong_types_are_damaged(case: str, tmp_path: Path) -> None:
    path = tmp_path / "figure1.json"
    path.write_text(f'{{"made": [], "cases": {{"a": {case}}}}}')
    with pytest.raises(store.DamagedResultsError, match="cannot be read"):
        store.Store(path)


def test_folders_of_originals_that_do_not_exist(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="is not a folder; --originals names"):
        data.main(["--originals", str(tmp_path / "absent"), "--data", str(tmp_path)])


def test_footers_name_all_dates() -> None:
    made = [{"date": "2026-11-18", "numpy": "2.4"}, {"date": "2026-11-16", "numpy": "2.4"}]
    assert pages.listed(made, "date") == "2026-11-16 and 2026-11-18"
    assert pages.listed(made, "numpy") == "2.4"
    assert pages.listed(made, "cpu") == "unknown"
