"""The table of transformers, its first part: scalers, encoders and imputers."""

from __future__ import annotations

from marginwise._checks import count, either, non_negative, none, one_of, positive, real, whole
from marginwise._files.pipelines import consistency
from marginwise._files.pipelines.kinds import (
    FLOATING,
    WHOLE,
    any_of,
    array,
    dtype,
    estimator,
    nan,
    pair,
    scalar,
)
from marginwise._files.pipelines.lists import arrays, sequence, sequences
from marginwise._files.pipelines.rows import (
    BOOL,
    CATEGORIES,
    FEATURES,
    FITTED,
    MOST_DEGREE,
    NONE,
    NUMBERS,
    QUANTILES,
    RANDOM,
    REAL,
    SEEN,
    VALUE,
    WIDTH,
    Row,
    choice,
    maybe,
)

_ENCODER = {
    "categories": any_of(choice("auto"), sequences()),
    "dtype": dtype(),
    "max_categories": maybe(scalar(count(1))),
    "min_frequency": maybe(scalar(either(count(1), positive(1.0)))),
}
_ENCODED = {
    **FITTED,
    "categories_": CATEGORIES,
    "_infrequent_indices": arrays("int64", gaps=True),
}
_GROUPED = frozenset({"_infrequent_indices"})
_GROUPS = frozenset({"_infrequent_enabled", "_default_to_infrequent_mappings"})

_SCALERS = {
    "StandardScaler": Row(
        "sklearn.preprocessing",
        {"copy": BOOL, "with_mean": BOOL, "with_std": BOOL},
        {
            **FITTED,
            "n_samples_seen_": SEEN,
            "mean_": maybe(NUMBERS),
            "var_": maybe(NUMBERS),
            "scale_": maybe(NUMBERS),
        },
        check=consistency.check_scaler,
    ),
    "MinMaxScaler": Row(
        "sklearn.preprocessing",
        {"clip": BOOL, "copy": BOOL, "feature_range": pair(real())},
        {
            **FITTED,
            "n_samples_seen_": SEEN,
            **dict.fromkeys(("scale_", "min_", "data_min_", "data_max_", "data_range_"), NUMBERS),
        },
    ),
    "MaxAbsScaler": Row(
        "sklearn.preprocessing",
        {"clip": BOOL, "copy": BOOL},
        {**FITTED, "n_samples_seen_": SEEN, "max_abs_": NUMBERS, "scale_": NUMBERS},
        since={"clip": ((1, 8), False)},
    ),
    "RobustScaler": Row(
        "sklearn.preprocessing",
        {
            "copy": BOOL,
            "quantile_range": pair(non_negative()),
            "unit_variance": BOOL,
            "with_centering": BOOL,
            "with_scaling": BOOL,
        },
        {**FITTED, "center_": maybe(NUMBERS), "scale_": maybe(NUMBERS)},
        check=consistency.check_scaler,
    ),
    "Normalizer": Row(
        "sklearn.preprocessing",
        {"copy": BOOL, "norm": choice("l1", "l2", "max")},
        FITTED,
        stateless=True,
    ),
    "Binarizer": Row(
        "sklearn.preprocessing", {"copy": BOOL, "threshold": REAL}, FITTED, stateless=True
    ),
    "QuantileTransformer": Row(
        "sklearn.preprocessing",
        {
            "copy": BOOL,
            "ignore_implicit_zeros": BOOL,
            "n_quantiles": scalar(count(1)),
            "output_distribution": choice("uniform", "normal"),
            "random_state": RANDOM,
            "subsample": maybe(scalar(count(1))),
        },
        {
            **FITTED,
            "n_quantiles_": scalar(count(1)),
            "references_": array("float64", sides=("n_quantiles_",)),
            "quantiles_": array(*FLOATING, sides=("n_quantiles_", "n_features_in_"), missing=True),
        },
        check=consistency.check_quantiles,
    ),
    "PowerTransformer": Row(
        "sklearn.preprocessing",
        {"copy": BOOL, "method": choice("yeo-johnson", "box-cox"), "standardize": BOOL},
        {**FITTED, "lambdas_": NUMBERS, "_scaler": estimator("StandardScaler")},
        optional=frozenset({"_scaler"}),
        check=consistency.check_power,
    ),
}

_ENCODERS = {
    "OneHotEncoder": Row(
        "sklearn.preprocessing",
        {
            **_ENCODER,
            "drop": any_of(NONE, choice("first", "if_binary"), sequence()),
            "feature_name_combiner": choice("concat"),
            "handle_unknown": choice("error", "ignore", "infrequent_if_exist", "warn"),
            "sparse_output": BOOL,
        },
        {
            **_ENCODED,
            "drop_idx_": maybe(array("object", sides=FEATURES)),
            "_drop_idx_after_grouping": maybe(array("object", sides=FEATURES)),
        },
        optional=_GROUPED,
        check=consistency.check_one_hot,
        derived=consistency.derive_one_hot,
        computed=_GROUPS | {"_n_features_outs"},
        width=consistency.one_hot_width,
    ),
    "OrdinalEncoder": Row(
        "sklearn.preprocessing",
        {
            **_ENCODER,
            "encoded_missing_value": scalar(either(whole(), nan())),
            "handle_unknown": choice("error", "use_encoded_value"),
            "unknown_value": scalar(either(none(), whole(), nan())),
        },
        _ENCODED,
        optional=_GROUPED,
        check=consistency.check_ordinal,
        derived=consistency.derive_groups,
        computed=_GROUPS | {"_missing_indices"},
    ),
    "KBinsDiscretizer": Row(
        "sklearn.preprocessing",
        {
            "dtype": maybe(dtype()),
            "encode": choice("onehot", "onehot-dense", "ordinal"),
            "n_bins": any_of(scalar(count(2)), sequence()),
            "quantile_method": choice(*QUANTILES),
            "random_state": RANDOM,
            "strategy": choice("uniform", "quantile", "kmeans"),
            "subsample": maybe(scalar(count(1))),
        },
        {
            **FITTED,
            "bin_edges_": arrays(*FLOATING, in_array=True),
            "n_bins_": array("int64", "int32", sides=FEATURES),
            "_encoder": estimator("OneHotEncoder"),
        },
        optional=frozenset({"_encoder"}),
        check=consistency.check_bins,
        width=consistency.bins_width,
        since={"quantile_method": ((1, 7), "linear")},
        changed=((1, 7), (1, 9)),
    ),
    "PolynomialFeatures": Row(
        "sklearn.preprocessing",
        {
            "degree": any_of(scalar(count(0, MOST_DEGREE)), pair(count(0, MOST_DEGREE))),
            "include_bias": BOOL,
            "interaction_only": BOOL,
            "order": choice("C", "F"),
        },
        FITTED,
        derived=consistency.derive_polynomial,
        computed=frozenset({"_min_degree", "_max_degree", "n_output_features_", "_n_out_full"}),
        width=consistency.polynomial_width,
    ),
    "FunctionTransformer": Row(
        "sklearn.preprocessing",
        {
            "accept_sparse": BOOL,
            "check_inverse": BOOL,
            "feature_names_out": scalar(either(none(), one_of("one-to-one"))),
            **dict.fromkeys(("func", "inverse_func", "kw_args", "inv_kw_args"), NONE),
            "validate": BOOL,
        },
        FITTED,
        stateless=True,
    ),
}

_IMPUTERS = {
    "SimpleImputer": Row(
        "sklearn.impute",
        {
            "add_indicator": BOOL,
            "copy": BOOL,
            "fill_value": VALUE,
            "keep_empty_features": BOOL,
            "missing_values": VALUE,
            "strategy": choice("mean", "median", "most_frequent", "constant"),
        },
        {
            **FITTED,
            "statistics_": array(*FLOATING, *WHOLE, "object", sides=FEATURES, missing=True),
            "indicator_": maybe(estimator("MissingIndicator")),
            "_fit_dtype": dtype(),
        },
        check=consistency.check_imputer,
        width=consistency.imputer_width,
        derived=consistency.derive_imputer,
        computed=frozenset({"_fill_dtype"}),
    ),
    "MissingIndicator": Row(
        "sklearn.impute",
        {
            "error_on_new": BOOL,
            "features": choice("missing-only", "all"),
            "missing_values": VALUE,
            "sparse": any_of(BOOL, choice("auto")),
        },
        {
            **FITTED,
            "_n_features": WIDTH,
            "_precomputed": BOOL,
            "features_": array("int64", "int32", sides=("",)),
        },
        check=consistency.check_indicator,
        width=consistency.indicator_width,
    ),
}

PREPROCESSING: dict[str, Row] = {**_SCALERS, **_ENCODERS, **_IMPUTERS}
