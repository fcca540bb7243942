"""The transformers that model files support: an explicit table by class.

A row lists the parameters and fitted attributes of a class with their kinds, and the consistency
check. Only classes in the table are written and read.
"""

from __future__ import annotations

from marginwise._checks import (
    MOST_FEATURES,
    boolean,
    count,
    either,
    non_negative,
    none,
    one_of,
    positive,
    real,
)
from marginwise._files.pipelines import compositions, consistency, tables
from marginwise._files.pipelines.kinds import (
    FLOATING,
    any_of,
    array,
    dtype,
    estimator,
    estimators_of,
    function,
    nan,
    pair,
    scalar,
)
from marginwise._files.pipelines.lists import each, sequence, sequences, vocabulary, words
from marginwise._files.pipelines.preprocessing import PREPROCESSING
from marginwise._files.pipelines.rows import (
    BOOL,
    COUNT,
    FEATURES,
    FITTED,
    JOBS,
    NONE,
    NUMBERS,
    RANDOM,
    REAL,
    SOLVERS,
    VERBOSE,
    WIDTH,
    Row,
    choice,
    encoding,
    maybe,
    pattern,
    template,
    weights,
)

_TEXT = {
    "analyzer": choice("word", "char", "char_wb"),
    "binary": BOOL,
    "decode_error": choice("strict", "ignore", "replace"),
    "dtype": dtype(),
    "encoding": scalar(encoding()),
    "input": choice("content"),
    "lowercase": BOOL,
    "ngram_range": pair(count(1, 10**6)),
    "preprocessor": NONE,
    "stop_words": any_of(NONE, choice("english"), words()),
    "strip_accents": scalar(either(none(), one_of("ascii", "unicode"))),
    "token_pattern": scalar(pattern()),
    "tokenizer": NONE,
}
_COUNTED = {
    **_TEXT,
    "max_df": scalar(non_negative()),
    "max_features": maybe(scalar(count(1))),
    "min_df": scalar(non_negative()),
    "vocabulary": any_of(NONE, words(), vocabulary()),
}
_NORM = {"norm": scalar(either(none(), one_of("l1", "l2", "max")))}
_WEIGHTED = {
    "norm": scalar(either(none(), one_of("l1", "l2"))),
    "smooth_idf": BOOL,
    "sublinear_tf": BOOL,
    "use_idf": BOOL,
}
_PROJECTED = {
    "components_": array(*FLOATING, sides=("n_components_", "n_features_in_")),
    "explained_variance_": array(*FLOATING, sides=("n_components_",), missing=True),
    "explained_variance_ratio_": array(*FLOATING, sides=("n_components_",), missing=True),
    "singular_values_": array(*FLOATING, sides=("n_components_",)),
}
_NORMALIZER = choice("auto", "QR", "LU", "none", "OR")

_TEXTS = {
    "CountVectorizer": Row(
        "sklearn.feature_extraction.text",
        _COUNTED,
        {"vocabulary_": vocabulary(), "fixed_vocabulary_": BOOL},
        check=consistency.check_vocabulary,
        derived=consistency.derive_stop_words,
        width=consistency.vocabulary_width,
    ),
    "TfidfVectorizer": Row(
        "sklearn.feature_extraction.text",
        {**_COUNTED, **_WEIGHTED},
        {
            "vocabulary_": vocabulary(),
            "fixed_vocabulary_": BOOL,
            "_tfidf": estimator("TfidfTransformer"),
        },
        check=consistency.check_vocabulary,
        derived=consistency.derive_stop_words,
        width=consistency.vocabulary_width,
    ),
    "TfidfTransformer": Row(
        "sklearn.feature_extraction.text",
        _WEIGHTED,
        {**FITTED, "idf_": array(*FLOATING, sides=FEATURES)},
        optional=frozenset({"idf_"}),
        check=consistency.check_weights,
    ),
    "HashingVectorizer": Row(
        "sklearn.feature_extraction.text",
        {
            **_TEXT,
            **_NORM,
            "alternate_sign": BOOL,
            "n_features": WIDTH,
        },
        derived=consistency.derive_stop_words,
        width=consistency.hashing_width,
        stateless=True,
    ),
}

_PROJECTIONS = {
    "PCA": Row(
        "sklearn.decomposition",
        {
            "copy": BOOL,
            "iterated_power": any_of(choice("auto"), COUNT),
            "n_components": scalar(either(none(), count(), positive(1.0), one_of("mle"))),
            "n_oversamples": scalar(count(1)),
            "power_iteration_normalizer": _NORMALIZER,
            "random_state": RANDOM,
            "svd_solver": choice("auto", *SOLVERS),
            "tol": scalar(non_negative()),
            "whiten": BOOL,
        },
        {
            **FITTED,
            **_PROJECTED,
            "mean_": array(*FLOATING, sides=FEATURES),
            "n_components_": COUNT,
            "n_samples_": COUNT,
            "noise_variance_": scalar(either(real(), nan())),
            "_fit_svd_solver": choice(*SOLVERS),
        },
        check=consistency.check_components,
        width=consistency.components_width,
    ),
    "TruncatedSVD": Row(
        "sklearn.decomposition",
        {
            "algorithm": choice("randomized", "arpack"),
            "n_components": scalar(count(1)),
            "n_iter": COUNT,
            "n_oversamples": scalar(count(1)),
            "power_iteration_normalizer": _NORMALIZER,
            "random_state": RANDOM,
            "tol": scalar(non_negative()),
        },
        {
            **FITTED,
            "components_": array(*FLOATING, sides=("n_components", "n_features_in_")),
            **{
                name: array(*FLOATING, sides=("n_components",), missing=True)
                for name in ("explained_variance_", "explained_variance_ratio_", "singular_values_")
            },
        },
        width=consistency.components_width,
    ),
    "VarianceThreshold": Row(
        "sklearn.feature_selection",
        {"threshold": scalar(non_negative())},
        {**FITTED, "variances_": NUMBERS},
        check=consistency.check_variances,
        width=consistency.variances_width,
    ),
    "SelectKBest": Row(
        "sklearn.feature_selection",
        {
            "k": any_of(choice("all"), COUNT),
            "score_func": function(
                "sklearn.feature_selection", "f_classif", "chi2", "mutual_info_classif"
            ),
        },
        {
            **FITTED,
            "scores_": NUMBERS,
            "pvalues_": maybe(NUMBERS),
        },
        width=consistency.best_width,
    ),
}

_COMPOSITIONS = {
    "ColumnTransformer": Row(
        "sklearn.compose",
        {
            "force_int_remainder_cols": any_of(BOOL, choice("deprecated")),
            "n_jobs": JOBS,
            "remainder": compositions.remainder(),
            "sparse_threshold": REAL,
            "transformer_weights": maybe(weights()),
            "transformers": compositions.transformers(),
            "verbose": VERBOSE,
            "verbose_feature_names_out": any_of(BOOL, scalar(template())),
        },
        {
            **FITTED,
            "sparse_output_": BOOL,
            "fitted": compositions.steps(compositions.WORDS),
            "rest": compositions.columns(),
        },
        optional=frozenset({"sparse_output_"}),
        derived=compositions.derive_columns,
        width=compositions.columns_width,
        parts=compositions.column_parts,
        until={"force_int_remainder_cols": ((1, 9), "deprecated")},
    ),
    "FeatureUnion": Row(
        "sklearn.pipeline",
        {
            "n_jobs": JOBS,
            "transformer_list": compositions.steps(compositions.WORDS),
            "transformer_weights": maybe(weights()),
            "verbose": VERBOSE,
            "verbose_feature_names_out": BOOL,
        },
        check=compositions.check_union,
        width=compositions.union_width,
        stateless=True,
    ),
    "Pipeline": Row(
        "sklearn.pipeline",
        {
            "memory": NONE,
            "steps": compositions.steps(),
            "transform_input": NONE,
            "verbose": BOOL,
        },
        check=compositions.check_chain,
        width=compositions.chain_width,
        stateless=True,
    ),
}

_COLUMNS = any_of(NONE, words(), sequence())

_OWN = {
    "StreamPipeline": Row(
        "marginwise.data",
        {"memory": NONE, "steps": compositions.steps(), "verbose": BOOL},
        {"transform_input": NONE},
        check=compositions.check_chain,
        width=compositions.chain_width,
        stateless=True,
    ),
    "TableEncoder": Row(
        "marginwise.data",
        {
            **dict.fromkeys(("numeric", "categorical", "text", "drop"), _COLUMNS),
            "max_categories": scalar(count(1)),
            "scale": BOOL,
            "unseen": choice("ignore", "error"),
            "missing": _COLUMNS,
            "decimal": choice("auto", ".", ","),
        },
        {
            **FITTED,
            "kinds_": words(),
            **dict.fromkeys(("mean_", "scale_", "fill_"), array("float64", sides=("",))),
            "categories_": sequences(),
            "missing_": each(boolean()),
            "vectorizers_": estimators_of("TfidfVectorizer"),
            "sizes_": each(count(1, MOST_FEATURES)),
            "notations_": words(),
            "tokens_": words(),
            "sparse_": BOOL,
        },
        optional=frozenset({"notations_", "tokens_"}),
        added={"missing": None, "decimal": "auto"},
        check=tables.check_table,
        derived=tables.without_spelling,
        width=tables.table_width,
        unstored=frozenset({"_profile", "_unchecked"}),
        tabular=True,
    ),
}

TABLE: dict[str, Row] = {
    **PREPROCESSING,
    **_TEXTS,
    **_PROJECTIONS,
    **_COMPOSITIONS,
    **_OWN,
}
