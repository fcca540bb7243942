"""Rows of the table of transformers, and kinds of values that many of them share."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from marginwise._checks import (
    MOST_FEATURES,
    Rule,
    boolean,
    count,
    either,
    instance,
    is_integer,
    is_real,
    non_negative,
    none,
    one_of,
    real,
)
from marginwise._files.pipelines import consistency
from marginwise._files.pipelines.kinds import FLOATING, WHOLE, Kind, Nested, any_of, array, scalar
from marginwise._files.pipelines.lists import arrays, names
from marginwise._files.pipelines.packing import require

Values = dict[str, Any]
Version = tuple[int, int]

OLDEST: Version = (1, 6)  # version of scikit-learn that the table supports
NEWEST: Version = (1, 9)
MOST_PATTERN = 1000  # maximum length of a regular expression
MOST_JOBS = 32
MOST_DEGREE = 100


@dataclass(frozen=True)
class Row:
    """Description of a class of transformers.

    Parameters
    ----------
    module : str
        Module that contains the class; it is imported only when needed.
    parameters, attributes : dict of str to Kind
        Parameters and fitted attributes of its instances.
    optional : frozenset of str
        Attributes that a fitted instance may lack.
    check : callable
        Raises ValueError unless the values of a fitted instance are consistent.
    derived : callable
        Returns attributes that can be derived from the others and are not stored.
    computed : frozenset of str
        Names of the derived attributes.
    width : callable
        Returns the number of columns of the output of a fitted instance, given its values and the
        number of columns of the input. Each number is None if it is unknown.
    parts : callable
        Returns the stored parts of a fitted instance, if they differ from its attributes.
    unstored : frozenset of str
        Attributes that a loaded instance neither has nor needs.
    tabular : bool
        Whether the input is a table instead of an array, so that columns are not features.
    stateless : bool
        Whether an instance without attributes counts as fitted.
    changed : tuple of versions
        Versions of scikit-learn whose instances are incompatible with the previous version.
    added : dict
        Parameters that files from before their introduction lack, and the corresponding values.
    since, until : dict
        Parameters that only some versions have: the version that introduced or removed the
        parameter, and the value that corresponds to the behaviour of the other versions.
    """

    module: str
    parameters: Mapping[str, Kind]
    attributes: Mapping[str, Kind] = field(default_factory=dict)
    optional: frozenset[str] = frozenset()
    check: Callable[[Values, Nested], None] = consistency.nothing
    derived: Callable[[Values, Nested], Values] = consistency.no_more
    computed: frozenset[str] = frozenset()
    width: Callable[[Values, int | None, Nested], int | None] = consistency.same_width
    parts: Callable[[Values], Values] | None = None
    unstored: frozenset[str] = frozenset()
    tabular: bool = False
    stateless: bool = False
    changed: tuple[Version, ...] = ()
    added: Mapping[str, Any] = field(default_factory=dict)
    since: Mapping[str, tuple[Version, Any]] = field(default_factory=dict)
    until: Mapping[str, tuple[Version, Any]] = field(default_factory=dict)


# -- kinds and rules ---------------------------------------------------------------------------


def choice(*options: str) -> Kind:
    return scalar(one_of(*options))


def maybe(kind: Kind) -> Kind:
    return any_of(NONE, kind)


def _value() -> Rule:
    """Return the rule for placeholders and replacements of missing values."""
    kinds = (type(None), bool, int, float, str, np.bool_, np.number, np.str_)
    return lambda v: isinstance(v, kinds), "a number, a string, NaN or None"


def _jobs() -> Rule:
    return (
        lambda v: is_integer(v) and v != 0 and -(2**10) <= v <= MOST_JOBS,
        f"an integer other than 0, at most {MOST_JOBS}",
    )


def weights() -> Kind:
    """Return the kind of dicts from the names of transformers to their weights."""

    def check(value: Any) -> Any:
        fits = type(value) is dict and all(type(name) is str for name in value)
        if not fits or not all(is_real(weight) for weight in value.values()):
            raise kind.wrong(value)
        return value

    def decode(plain: Any, _: Nested) -> Any:
        require(isinstance(plain, list) and all(len(item) == 2 for item in plain), "must be pairs")
        return check(dict(plain))

    kind = Kind(
        "a dict of weights",
        lambda value, _: [[name, weight] for name, weight in check(value).items()],
        decode,
    )
    return kind


def pattern() -> Rule:
    """Return the rule for regular expressions that split texts into tokens."""

    def test(value: Any) -> bool:
        if not isinstance(value, str) or len(value) > MOST_PATTERN:
            return False
        try:
            return re.compile(value).groups <= 1
        except (re.error, OverflowError, RecursionError):
            return False

    return test, f"a regular expression of at most {MOST_PATTERN} characters and one group"


def encoding() -> Rule:
    def test(value: Any) -> bool:
        try:
            return isinstance(value, str) and isinstance(b"a".decode(value, "replace"), str)
        except (LookupError, ValueError):
            return False

    return test, "the name of an encoding of text"


def template() -> Rule:
    """Return the rule for format strings that only concatenate names."""

    def test(value: Any) -> bool:
        if not isinstance(value, str):
            return False
        try:
            parts = list(string.Formatter().parse(value))
        except ValueError:
            return False
        known = (None, "transformer_name", "feature_name")
        return all(name in known and not spec and not how for _, name, spec, how in parts)

    return test, "a format of transformer_name and feature_name"


BOOL = scalar(boolean())
NONE = scalar(none())
REAL = scalar(real())
VALUE = scalar(_value())
COUNT = scalar(count())
JOBS = maybe(scalar(_jobs()))
RANDOM = scalar(
    either(none(), count(0, 2**32 - 1), instance(np.random.RandomState, "a RandomState"))
)
VERBOSE = scalar(either(boolean(), count()))
FEATURES = ("n_features_in_",)
WIDTH = scalar(count(1, MOST_FEATURES))
NUMBERS = array(*FLOATING, sides=FEATURES, missing=True)
SEEN = any_of(scalar(non_negative()), array(*WHOLE, *FLOATING, sides=FEATURES))
FITTED = {"n_features_in_": WIDTH, "feature_names_in_": names()}
CATEGORIES = arrays(*WHOLE, *FLOATING, "bool", "str", "object")
SOLVERS = ("full", "covariance_eigh", "arpack", "randomized")
QUANTILES = (
    "inverted_cdf",
    "averaged_inverted_cdf",
    "closest_observation",
    "interpolated_inverted_cdf",
    "hazen",
    "weibull",
    "linear",
    "median_unbiased",
    "normal_unbiased",
    "warn",
)
