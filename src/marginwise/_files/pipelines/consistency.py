"""Consistency checks of fitted transformers, and their output widths.

Transformers do not validate their attributes: with a column number that is too large, they would
write beyond the end of a sparse matrix. Every failure is a ValueError that names the part.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginwise._files.pipelines.kinds import Nested
from marginwise._files.pipelines.packing import require

Values = dict[str, Any]

MOST_PRODUCTS = 2**24  # maximum number of polynomial features


def nothing(v: Values, nested: Nested) -> None:
    """Accept everything."""


def no_more(v: Values, nested: Nested) -> Values:
    """Derive nothing."""
    return {}


def same_width(v: Values, width: int | None, nested: Nested) -> int | None:
    found: int | None = v.get("n_features_in_", width)
    return found


# -- scalers -----------------------------------------------------------------------------------


def check_scaler(v: Values, nested: Nested) -> None:
    """Check that a scaler has the attributes that its parameters require."""
    for wanted, name in (
        ("with_mean", "mean_"),
        ("with_std", "scale_"),
        ("with_centering", "center_"),
        ("with_scaling", "scale_"),
    ):
        require(not v.get(wanted) or v[name] is not None, f"{name} must be there with {wanted}")


def check_quantiles(v: Values, nested: Nested) -> None:
    references, quantiles = v["references_"], v["quantiles_"]
    ascending = (references[:-1] <= references[1:]).all()
    require(ascending and (references >= 0).all() and (references <= 1).all(), "bad references_")
    with np.errstate(invalid="ignore"):
        require(not (quantiles[:-1] > quantiles[1:]).any(), "quantiles_ must not decrease")


def check_power(v: Values, nested: Nested) -> None:
    require(v["standardize"] == ("_scaler" in v), "_scaler must fit standardize")
    if "_scaler" in v:
        require(nested.expects(v["_scaler"]) == v["n_features_in_"], "_scaler has another width")


# -- encoders ----------------------------------------------------------------------------------


def check_categories(v: Values, nested: Nested) -> None:
    """Check the categories of an encoder, and which of them are infrequent."""
    categories = v["categories_"]
    require(len(categories) == v["n_features_in_"], "categories_ must be one list per feature")
    for one in categories:
        _check_order(one)
    grouped = _groups(v)
    require(grouped == ("_infrequent_indices" in v), "_infrequent_indices must fit the parameters")
    if grouped:
        infrequent = v["_infrequent_indices"]
        require(len(infrequent) == len(categories), "_infrequent_indices must be one per feature")
        for one, places in zip(categories, infrequent, strict=True):
            least = 1 if "unknown_value" in v and _is_nan(one[-1]) else 0
            require(places is None or _ascend(places, len(one) - least), "bad _infrequent_indices")


def _check_order(categories: NDArray[Any]) -> None:
    """Check that categories are distinct, sorted if they are searched, and NaN last."""
    require(len(categories) > 0, "categories_ must not be empty")
    known = categories[:-1] if _is_nan(categories[-1]) else categories
    require(not any(_is_nan(one) for one in known.tolist()), "NaN must be the last of categories_")
    if categories.dtype == object:
        require(len(set(known.tolist())) == len(known), "categories_ must be different")
    else:
        require((known[:-1] < known[1:]).all(), "categories_ must ascend")


def _is_nan(value: Any) -> bool:
    return isinstance(value, float | np.floating) and bool(value != value)


def _groups(v: Values) -> bool:
    return v["max_categories"] is not None or v["min_frequency"] is not None


def _ascend(places: NDArray[Any], size: int) -> bool:
    """Return whether these are ascending integers from 0 to `size` - 1."""
    inside = len(places) > 0 and places[0] >= 0 and places[-1] < size
    return bool(inside and (places[:-1] < places[1:]).all())


def derive_groups(v: Values, nested: Nested) -> Values:
    """Return the attributes that are derived from the infrequent categories of an encoder."""
    derived: Values = {"_infrequent_enabled": _groups(v)}
    if "unknown_value" in v:  # an OrdinalEncoder, which excludes missing values
        derived["_missing_indices"] = {
            k: len(one) - 1 for k, one in enumerate(v["categories_"]) if _is_nan(one[-1])
        }
    if _groups(v):
        left_out = derived.get("_missing_indices", {})
        derived["_default_to_infrequent_mappings"] = [
            None if places is None else _grouping(len(one) - (k in left_out), places)
            for k, (one, places) in enumerate(
                zip(v["categories_"], v["_infrequent_indices"], strict=True)
            )
        ]
    return derived


def _grouping(size: int, infrequent: NDArray[Any]) -> NDArray[np.int64]:
    """Return the codes of categories, where all infrequent categories share the last code."""
    frequent = np.ones(size, dtype=bool)
    frequent[infrequent] = False
    numbers = np.full(size, frequent.sum(), dtype=np.int64)
    numbers[frequent] = np.arange(frequent.sum())
    return numbers


def check_one_hot(v: Values, nested: Nested) -> None:
    check_categories(v, nested)
    sizes = _sizes(v)
    for name, limits in (
        ("_drop_idx_after_grouping", sizes),
        ("drop_idx_", [len(one) for one in v["categories_"]]),
    ):
        places = v[name]
        require((places is None) == (v["drop"] is None), f"{name} must fit drop")
        if places is not None:
            require(len(places) == len(sizes), f"{name} must be one per feature")
            for place, limit in zip(places.tolist(), limits, strict=True):
                whole = isinstance(place, int | np.int64) and not isinstance(place, bool)
                require(place is None or (whole and 0 <= place < limit), f"{name} is out of range")


def _sizes(v: Values) -> list[int]:
    """Return the number of categories per feature; the infrequent ones count as one."""
    infrequent = v.get("_infrequent_indices", [None] * len(v["categories_"]))
    return [
        len(one) - (0 if places is None else len(places) - 1)
        for one, places in zip(v["categories_"], infrequent, strict=True)
    ]


def derive_one_hot(v: Values, nested: Nested) -> Values:
    sizes, dropped = _sizes(v), v["_drop_idx_after_grouping"]
    if dropped is not None:
        pairs = zip(sizes, dropped.tolist(), strict=True)
        sizes = [size - (place is not None) for size, place in pairs]
    return {**derive_groups(v, nested), "_n_features_outs": sizes}


def one_hot_width(v: Values, width: int | None, nested: Nested) -> int:
    return sum(v["_n_features_outs"])


def check_ordinal(v: Values, nested: Nested) -> None:
    check_categories(v, nested)
    used = v["handle_unknown"] == "use_encoded_value"
    require(used == (v["unknown_value"] is not None), "unknown_value must fit handle_unknown")
    floating = np.dtype(v["dtype"]).kind == "f"
    for name in ("unknown_value", "encoded_missing_value"):
        gap = _is_nan(v[name]) and (name == "unknown_value" or _any_missing(v))
        require(floating or not gap, f"{name} is NaN, which dtype cannot hold")


def _any_missing(v: Values) -> bool:
    return any(_is_nan(one[-1]) for one in v["categories_"])


def check_bins(v: Values, nested: Nested) -> None:
    edges, sizes = v["bin_edges_"], v["n_bins_"]
    require(len(edges) == v["n_features_in_"], "bin_edges_ must be one array per feature")
    for one, size in zip(edges, sizes.tolist(), strict=True):
        require(size >= 1 and len(one) == size + 1, "bin_edges_ must fit n_bins_")
        require(not (one[:-1] > one[1:]).any(), "bin_edges_ must not decrease")
    encoded = v["encode"] != "ordinal"
    require(encoded == ("_encoder" in v), "_encoder must fit encode")
    if encoded:
        categories = vars(v["_encoder"]).get("categories_", [])
        right = [one.dtype != object and one.tolist() == [*range(len(one))] for one in categories]
        require(all(right), "_encoder must encode bins")
        require([len(one) for one in categories] == sizes.tolist(), "_encoder must fit n_bins_")


def bins_width(v: Values, width: int | None, nested: Nested) -> int | None:
    if "_encoder" not in v:
        return same_width(v, width, nested)
    return nested.gives(v["_encoder"], v["n_features_in_"])


# -- missing values ----------------------------------------------------------------------------


def check_imputer(v: Values, nested: Nested) -> None:
    indicator, statistics = v["indicator_"], v["statistics_"]
    require((indicator is not None) == v["add_indicator"], "indicator_ must fit add_indicator")
    if indicator is not None:
        there = vars(indicator)
        fits = there.get("_n_features") == v["n_features_in_"] and there.get("_precomputed") is True
        require(fits, "indicator_ must be fitted to as many features")
    if v["_fit_dtype"].kind != "O" and statistics.dtype == object:
        numbers = all(isinstance(one, int | float | np.number) for one in statistics)
        require(numbers, "statistics_ must be numbers")


def derive_imputer(v: Values, nested: Nested) -> Values:
    if nested.here >= (1, 8):
        return {"_fill_dtype": v["_fit_dtype"]}
    later = v["statistics_"].dtype == object and v["_fit_dtype"].kind != "O"
    require(not later, "statistics_ are those of scikit-learn 1.8 or later")
    return {}


def imputer_width(v: Values, width: int | None, nested: Nested) -> int:
    empty = 0 if v["keep_empty_features"] else sum(map(_is_nan, v["statistics_"].tolist()))
    more = 0 if v["indicator_"] is None else len(v["indicator_"].features_)
    return int(v["n_features_in_"] - empty + more)


def check_indicator(v: Values, nested: Nested) -> None:
    require(v["_n_features"] == v["n_features_in_"], "_n_features must be n_features_in_")
    features = v["features_"]
    fits = not len(features) or _ascend(features, v["n_features_in_"])
    require(fits, "features_ must be numbers of features")
    every = v["features"] == "all"
    require(not every or len(features) == v["n_features_in_"], "features_ must be all features")


def indicator_width(v: Values, width: int | None, nested: Nested) -> int:
    return len(v["features_"])


# -- text --------------------------------------------------------------------------------------


def check_vocabulary(v: Values, nested: Nested) -> None:
    table = v["vocabulary_"]
    _check_places(table, "vocabulary_")
    if "_tfidf" in v:
        require(nested.expects(v["_tfidf"]) == len(table), "_tfidf must fit vocabulary_")


def _check_places(table: dict[str, int], name: str) -> None:
    complete = len(table) > 0 and set(table.values()) == set(range(len(table)))
    require(complete, f"{name} must number its words")


def derive_stop_words(v: Values, nested: Nested) -> Values:
    """Return the attribute with which `fit` marks the stop words as checked."""
    return {"_stop_words_id": id(v["stop_words"])}


def vocabulary_width(v: Values, width: int | None, nested: Nested) -> int:
    return len(v["vocabulary_"])


def hashing_width(v: Values, width: int | None, nested: Nested) -> int:
    return int(v["n_features"])


def check_weights(v: Values, nested: Nested) -> None:
    require(v["use_idf"] or "idf_" not in v, "idf_ must fit use_idf")


# -- features ----------------------------------------------------------------------------------


def derive_polynomial(v: Values, nested: Nested) -> Values:
    degree = v["degree"]
    low, high = degree if isinstance(degree, tuple) else (0, degree)
    found = {
        "_min_degree": low,
        "_max_degree": high,
        "n_output_features_": _monomials(v, low, high),
        "_n_out_full": _monomials(v, 0, high),
    }
    require(found["_n_out_full"] <= MOST_PRODUCTS, "degree makes too many features")
    require(found["n_output_features_"] > 0, "degree makes no features")
    return found


def _monomials(v: Values, low: int, high: int) -> int:
    """Return the number of products of `low` to `high` features."""
    n = v["n_features_in_"]
    if v["interaction_only"]:
        total = sum(math.comb(n, k) for k in range(max(1, low), min(high, n) + 1))
    else:
        less = math.comb(n + low - 1, low - 1) if low > 0 else 1
        total = math.comb(n + high, high) - less
    return total + bool(v["include_bias"])


def polynomial_width(v: Values, width: int | None, nested: Nested) -> int:
    return int(v["n_output_features_"])


def components_width(v: Values, width: int | None, nested: Nested) -> int:
    return len(v["components_"])


def check_components(v: Values, nested: Nested) -> None:
    require(v["n_components_"] == len(v["components_"]), "components_ must be n_components_")


def check_variances(v: Values, nested: Nested) -> None:
    require(variances_width(v, None, nested) > 0, "variances_ leave no feature")


def variances_width(v: Values, width: int | None, nested: Nested) -> int:
    return int((v["variances_"] > v["threshold"]).sum())


def best_width(v: Values, width: int | None, nested: Nested) -> int:
    n = int(v["n_features_in_"])
    return n if v["k"] == "all" else min(int(v["k"]), n)
