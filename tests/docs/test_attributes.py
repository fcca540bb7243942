"""Fitted attributes are documented: in the reference, and in the docstring of their class."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import marginwise
from marginwise.active import ActiveLearner, BudgetRule, MarginRule
from marginwise.dask import DaskGapSVC, DaskOnlineSVC
from marginwise.inspect import CompressionDisplay, MarginDisplay, TuningDisplay
from marginwise.invariance import ImageDeformer
from tests.dask_support import cluster
from tests.docs.test_docstrings import ESTIMATORS as WITH_RULES
from tests.docs.test_docstrings import ROOT, parsed
from tests.support import blobs

ESTIMATORS = [name for name in WITH_RULES if name != "ImageDeformer"]
LEARNING = set(ESTIMATORS) - {"CompressedSVC"}
GROUPS = {"all": LEARNING, "classifiers": LEARNING - {"ExactOneClassSVM"}}
DISPLAYS = {
    "CompressionDisplay": lambda: CompressionDisplay([1, 2], [0.5, 0.25]),
    "MarginDisplay": lambda: MarginDisplay([1.0]),
    "TuningDisplay": lambda: TuningDisplay([[1.0]], Cs=[1.0], gammas=[1.0]),
}
DASK = {"DaskGapSVC": DaskGapSVC, "DaskOnlineSVC": DaskOnlineSVC}
OTHERS = ("ActiveLearner", "BudgetRule", "ImageDeformer", "MarginRule", *DISPLAYS)
X, Y = blobs(60, 0, classes=3)


@cache
def examples(name: str) -> list[Any]:
    """Objects that have, together, all attributes that their class can have."""
    if name == "ActiveLearner":
        learner = ActiveLearner(marginwise.OnlineSVC(gamma=0.5), X, random_state=0)
        return [learner.run(lambda row: int(Y[row]), max_labels=5)]
    if name in DISPLAYS:
        pytest.importorskip("matplotlib").use("Agg")
        return [DISPLAYS[name]().plot()]
    if name in OTHERS:
        rules = {"BudgetRule": BudgetRule, "MarginRule": MarginRule}
        return [rules[name](None) if name in rules else ImageDeformer((4, 4), fields=5)]
    if name in DASK:
        return examples_on_dask(DASK[name])
    kind, frame = getattr(marginwise, name), pd.DataFrame(X, columns=["a", "b"])
    if name == "CompressedSVC":
        made = [marginwise.OnlineSVC(kernel=k, calibration="sigmoid") for k in ("rbf", "linear")]
        return [model.fit(frame, Y).compress(frame, Y, max_vectors=4) for model in made]
    wanted = {"record": True, "loss": "ramp", "calibration": "sigmoid"}
    given = {key: value for key, value in wanted.items() if key in kind().get_params()}
    made = [kind(kernel=kernel, **given) for kernel in ("rbf", "linear")]
    grouped = {"groups": Y} if hasattr(kind, "forget") else {}
    return [model.set_params(**centred(model)).fit(frame, Y, **grouped) for model in made]


def examples_on_dask(kind: Any) -> list[Any]:
    """Models of a few rows, of data frames of Dask."""
    frame = dd.from_pandas(pd.DataFrame(X, columns=["a", "b"]).assign(label=Y), npartitions=3)
    wanted = {"record": True, "loss": "ramp", "center": True, "calibration": "sigmoid"}
    with cluster(1) as client:
        given = {key: value for key, value in wanted.items() if key in kind().get_params()}
        made = [kind(kernel=kernel, client=client, **given) for kernel in ("rbf", "linear")]
        return [model.fit(frame[["a", "b"]], frame["label"]) for model in made]


def centred(model: Any) -> dict[str, bool]:
    return {"center": True} if "center" in model.get_params() else {}


def attributes(name: str) -> set[str]:
    """Public attributes that end in an underscore, of a class."""
    names = {found for thing in examples(name) for found in dir(thing) if hasattr(thing, found)}
    return {found for found in names if found.endswith("_") and not found.startswith("_")}


def table() -> dict[str, dict[str, str]]:
    """Types of the attributes in the reference, by class and attribute."""
    text = (ROOT / "docs" / "api" / "attributes.md").read_text(encoding="utf-8")
    found: dict[str, dict[str, str]] = {name: {} for name in [*ESTIMATORS, *OTHERS]}
    for names, kind, owners, _ in re.findall(
        r"^\| (`\w+_`.*?) \| (.+?) \| (.+?) \| (.+?) \|$", text, re.M
    ):
        for owner in GROUPS.get(owners) or re.findall(r"`(\w+)`", owners):
            found[owner] |= dict.fromkeys(re.findall(r"`(\w+)`", names), kind)
    return found


@pytest.mark.parametrize("name", [*ESTIMATORS, *OTHERS])
def test_the_reference_lists_the_attributes(name: str) -> None:
    assert set(table()[name]) == attributes(name)


@pytest.mark.parametrize("name", [*ESTIMATORS, *OTHERS])
def test_the_docstring_lists_the_attributes(name: str) -> None:
    listed = parsed(type(examples(name)[0]))["Attributes"]
    assert {item.name for item in listed if item.name.endswith("_")} == attributes(name)
    assert all(item.type and item.desc for item in listed)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_shapes_are_those_documented(name: str) -> None:
    """Of a model of three classes; in the reference, unless a class documents a single number."""
    for model in examples(name):
        sizes = {"1": 1, "n_vectors_": getattr(model, "n_vectors_", 0)}
        sizes |= {"n_SV": len(getattr(model, "support_", ()))}
        sizes |= {"n_stored": len(getattr(model, "ids_", ()))}
        problems = 1 if name == "ExactOneClassSVM" else 3
        sizes |= {"n_problems": problems, "n_classes": problems}
        sizes |= {"n_features": 2, "n_features_in_": 2, "n_samples": len(X)}
        sizes |= {"n_suspects": len(getattr(model, "suspects_", ()))}
        documented = {item.name: item.type for item in parsed(type(model))["Attributes"]}
        for kinds in (documented, table()[name]):
            for attribute, kind in kinds.items():
                shape = re.search(r"of shape \((.*?),?\)", kind)
                if shape and hasattr(model, attribute) and attribute != "path_":
                    expected = tuple(sizes[size] for size in shape[1].split(", "))
                    assert np.shape(getattr(model, attribute)) == expected, attribute
                elif kind in ("int", "float", "dict"):
                    value = getattr(model, attribute, None)
                    assert value is None or type(value).__name__ == kind, attribute
