"""`make test-minimum` tests with exactly the versions that pyproject.toml declares as minimum."""

from __future__ import annotations

import tomllib

import pytest
from packaging.requirements import Requirement

from tests.docs.test_pages import ROOT
from tests.minimum import minimum_requirements, pinned

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_every_dependency_is_pinned_to_its_minimum() -> None:
    lines = minimum_requirements(PROJECT)
    for line in PROJECT["dependencies"]:
        assert pinned(Requirement(line)) in lines


def test_a_dependency_without_a_minimum_is_refused() -> None:
    assert pinned(Requirement("numpy>=1.26,<3")) == "numpy==1.26"
    with pytest.raises(ValueError, match="numpy<3 must declare one minimum"):
        pinned(Requirement("numpy<3"))


def test_continuous_integration_runs_it() -> None:
    assert "run: make test-minimum" in (ROOT / ".github/workflows/ci.yml").read_text()
