"""Consistency checks of fitted `TableEncoder` instances, and their output width."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np

from marginwise._files.pipelines.kinds import Nested
from marginwise._files.pipelines.packing import require

Values = dict[str, Any]

MEASURED = ("numeric", "boolean", "date")  # kinds of columns that are standardised
UNUSED = ("constant", "identifier", "row number", "dropped")
_NOTATION = re.compile(r"([.,]\S{0,3})?")  # of numbers in strings: decimal mark and sign
KINDS = (*MEASURED, *UNUSED, "categorical", "text", "vector")


def check_table(v: Values, nested: Nested) -> None:
    """Check that the attributes match the number of columns of each kind."""
    kinds = v["kinds_"]
    require("feature_names_in_" in v, "feature_names_in_ is missing")
    require(len(kinds) == v["n_features_in_"], "kinds_ must be one per column")
    require(set(kinds) <= set(KINDS), "kinds_ must be kinds of columns")
    counts = Counter("numeric" if kind in MEASURED else kind for kind in kinds)
    for name, kind in (
        ("mean_", "numeric"),
        ("scale_", "numeric"),
        ("fill_", "numeric"),
        ("categories_", "categorical"),
        ("missing_", "categorical"),
        ("vectorizers_", "text"),
        ("sizes_", "vector"),
    ):
        require(len(v[name]) == counts[kind], f"{name} must be one per {kind} column")
    notations = v.get("notations_", [""] * len(kinds))
    require(len(notations) == len(kinds), "notations_ must be one per column")
    require(all(map(_NOTATION.fullmatch, notations)), "notations_ must be notations of numbers")
    require((v["scale_"] > 0).all(), "scale_ must be above 0")
    for one in v["categories_"]:
        fits = isinstance(one, list) and all(type(category) is str for category in one)
        require(fits and len(set(one)) == len(one), "categories_ must be different strings")
    for one in v["vectorizers_"]:
        require(nested.gives(one, None) is not None, "vectorizers_ must be fitted")
    require(table_width(v, None, nested) > 0, "it has no columns with features")


def without_spelling(v: Values, nested: Nested) -> Values:
    """Return the attributes that old files lack, in which all strings are in plain notation."""
    usual = {"notations_": [""] * len(v["kinds_"]), "tokens_": []} if "kinds_" in v else {}
    return {key: value for key, value in usual.items() if key not in v}


def table_width(v: Values, width: int | None, nested: Nested) -> int:
    """Return the number of features."""
    categories = sum(map(len, v["categories_"])) + int(np.sum(v["missing_"], dtype=int))
    terms = sum(nested.gives(one, None) or 0 for one in v["vectorizers_"])
    return len(v["mean_"]) + categories + terms + sum(v["sizes_"])
