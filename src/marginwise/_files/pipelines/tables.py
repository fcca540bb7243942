"""Consistency checks of fitted `TableEncoder` instances, and their output width."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from marginwise._files.pipelines.kinds import Nested
from marginwise._files.pipelines.packing import require

Values = dict[str, Any]

MEASURED = ("numeric", "boolean", "date")  # kinds of columns that are standardised
UNUSED = ("constant", "identifier", "row number", "dropped")
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
    require((v["scale_"] > 0).all(), "scale_ must be above 0")
    for one in v["categories_"]:
        fits = isinstance(one, list) and all(type(category) is str for category in one)
        require(fits and len(set(one)) == len(one), "categories_ must be different strings")
    for one in v["vectorizers_"]:
        require(nested.gives(one, None) is not None, "vectorizers_ must be fitted")
    require(table_width(v, None, nested) > 0, "it has no columns with features")


def table_width(v: Values, width: int | None, nested: Nested) -> int:
    """Return the number of features."""
    categories = sum(map(len, v["categories_"])) + int(np.sum(v["missing_"], dtype=int))
    terms = sum(nested.gives(one, None) or 0 for one in v["vectorizers_"])
    return len(v["mean_"]) + categories + terms + sum(v["sizes_"])
