"""The command that installs an extra fits how the package was installed."""

from __future__ import annotations

import json
import sys
import tomllib
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest

from marginwise import _extras
from marginwise._extras import install
from marginwise.cli import main
from tests.support import runner


@pytest.fixture
def installed_as(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that sets how the package was installed, as pip records it."""

    class Distribution:
        def __init__(self, record: str | None) -> None:
            self._record = record

        def read_text(self, name: str) -> str | None:
            return self._record if name == "direct_url.json" else None

    def set_to(record: str | None) -> None:
        monkeypatch.setattr(_extras, "distribution", lambda name: Distribution(record))

    return set_to


@pytest.mark.parametrize("editable", [True, False])
def test_an_installation_from_a_folder_names_it(
    installed_as: Any, tmp_path: Path, editable: bool
) -> None:
    clone = tmp_path / "the clone"
    clone.mkdir()
    info = {"editable": True} if editable else {}
    installed_as(json.dumps({"url": clone.as_uri(), "dir_info": info}))
    assert install("tables") == f"pip install '.[tables]' in {clone}"
    clone.rmdir()
    assert install("tables") == "pip install 'marginwise[tables]'"


@pytest.mark.parametrize(
    "record",
    [
        None,
        json.dumps({"url": "https://example.com/marginwise.whl", "archive_info": {}}),
        json.dumps({"url": "file:///tmp/marginwise.whl", "archive_info": {}}),
        json.dumps({"dir_info": {}}),
        "no JSON",
    ],
)
def test_other_installations_are_extended_by_name(installed_as: Any, record: str | None) -> None:
    installed_as(record)
    assert install("plot") == "pip install 'marginwise[plot]'"


def test_a_package_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(_extras, "distribution", missing)
    assert install("plot") == "pip install 'marginwise[plot]'"


def test_train_on_a_table_without_pyarrow_names_the_command(
    installed_as: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed_as(None)
    path = tmp_path / "rows.csv"
    path.write_text("a,label\n1,x\n2,y\n")
    for name in [name for name in sys.modules if name.partition(".")[0] == "pyarrow"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    done = runner().invoke(main, ["train", str(path), str(tmp_path / "model.mwz"), "-q"])
    assert done.exit_code == 1
    assert done.stderr.endswith("Run pip install 'marginwise[tables]'.\n")


def test_all_extras_of_users_are_in_all() -> None:
    pyproject = Path(__file__).parents[2] / "pyproject.toml"
    extras = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    assert extras["parquet"] == ["marginwise[tables]"]
    (joined,) = extras["all"]
    others = {"all", "parquet", "asreview", "bench", "dev", "docs", "reproduce"}
    assert set(joined[len("marginwise[") : -1].split(",")) == set(extras) - others
