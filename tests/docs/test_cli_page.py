"""The page of the command is made from the code, and its examples run."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path
from types import ModuleType

import click
import numpy as np
import pytest

from marginwise.cli import main
from marginwise.cli.commands import every_command
from marginwise.data import write_svmlight
from marginwise.label import Event, LabelStore
from marginwise.label.item_files import Columns, open_items
from marginwise.label.reopening import Request, item_set, remember
from tests.support import runner

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "guide" / "cli.md"
# What examples need besides the files that they write; some are not for a test.
NOT_RUN = re.compile(r"^marginwise label |completion\.sh|^marginwise reproduce \w|'part-\*|--dask")


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_cli", ROOT / "docs" / "make_cli.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_that_of_the_code() -> None:
    assert script().page() == PAGE.read_text(encoding="utf-8"), "run python docs/make_cli.py"


def test_every_command_is_described_with_an_example() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name, command in every_command(main).items():
        assert any(line.startswith(f"marginwise {name}") for line in command.example), name
        assert f"### marginwise {name}\n" in text
        for line in command.example:
            assert f"\n{line}\n" in text


def test_every_option_is_described() -> None:
    for name, command in every_command(main).items():
        for param in command.params:
            if isinstance(param, click.Option):
                assert len((param.help or "").split()) >= 1, f"{name} {param.opts}"


def test_help_texts_show_the_example() -> None:
    for name, command in every_command(main).items():
        shown = runner().invoke(main, [*name.split(), "--help"])
        assert shown.exit_code == 0
        assert "\n  ".join(["Example:", *command.example]) in shown.output


def write_files(folder: Path) -> None:
    """Write the files that examples read."""
    rng = np.random.default_rng(0)
    for name, columns in {
        "train": ["width", "colour", "label"],
        "test": ["width", "colour", "label"],
        "more": ["width", "colour", "label"],
        "new": ["width", "colour"],
        "customers": ["width", "colour", "customer", "label"],
    }.items():
        rows = []
        for k in range(120):
            up = k % 2
            values = {"width": f"{rng.normal() + 2 * up:.4f}", "colour": ["red", "blue"][k % 3 > 1]}
            values |= {"customer": f"c{k % 10}", "label": ["no", "yes"][up]}
            rows.append(",".join(values[column] for column in columns))
        (folder / f"{name}.csv").write_text("\n".join([",".join(columns), *rows]) + "\n")
    X = rng.random((80, 16))
    y = (X[:, 0] > 0.5).astype(int)
    np.savez(folder / "digits.npz", X=X, y=y)
    for name in ("train", "digits"):
        write_svmlight(X, y, folder / f"{name}.svm")
    (folder / "gone.txt").write_text("c3\n")
    write_store(folder)


def write_store(folder: Path) -> None:
    """Write messages, and a store with labels of some of them."""
    texts = [f"{['win cash prize', 'see you at lunch'][k % 2]} number {k}" for k in range(40)]
    names = [["spam", "ham"][k % 2] for k in range(40)]
    lines = [f"{text},{name}" for text, name in zip(texts, names, strict=True)]
    (folder / "messages.csv").write_text("\n".join(["text,label", *lines]) + "\n")
    request = Request(str(folder / "messages.csv"), Columns("label", ("text",)))
    items = open_items(request.items, request.columns)
    with LabelStore.open(folder / "labels.db", items=item_set(items)) as store:
        remember(store, request)
        for item, name in zip(items.ids[:20], names, strict=False):
            store.append(Event(kind="label", item=item, annotator="ann", label=name))


def test_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for library in ("matplotlib", "pyarrow"):
        pytest.importorskip(library)
    write_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    first = ["train", "test", "predict", "continue"]
    commands = every_command(main)
    last = ["labels import", "import"]
    for name in [*first, *sorted(commands.keys() - {*first, *last}), *last]:
        command = commands[name]
        for line in command.example:
            if NOT_RUN.search(line):
                continue
            words = shlex.split(line.partition(" > ")[0])[1:]
            if words[0] == "train" and Path(words[2]).exists():
                words.append("--force")
            done = runner().invoke(main, words)
            assert done.exit_code == 0, f"{line}: {done.output}"
