"""Transformers that contain others: pipelines, unions, and column transformers."""

from __future__ import annotations

from collections import UserList
from collections.abc import Callable
from typing import Any

import numpy as np

from marginwise._checks import is_integer
from marginwise._files.pipelines.kinds import Kind, Nested
from marginwise._files.pipelines.lists import sequence
from marginwise._files.pipelines.packing import mapping, require

Values = dict[str, Any]

WORDS = ("drop", "passthrough")  # words that can replace transformers of columns and unions
SKIPPED = (None, "passthrough")  # values that can replace steps
REMAINDER = "remainder"
MOST_DENSE = 2**24  # maximum number of columns of a dense output: 128 MB per row


# -- parts -------------------------------------------------------------------------------------


def steps(words: tuple[str | None, ...] = SKIPPED) -> Kind:
    """Return the kind of lists of names and estimators (or words that replace them)."""

    def encode(value: Any, nested: Nested) -> Any:
        _check_names(value, 2)
        return [[name, _encode_step(step, name, nested, words)] for name, step in value]

    def decode(plain: Any, nested: Nested) -> Any:
        _check_names(plain, 2)
        return [(name, _decode_step(step, name, nested, words)) for name, step in plain]

    return Kind("a list of names and transformers", encode, decode)


def transformers() -> Kind:
    """Return the kind of lists of names, estimators and columns."""
    inner = columns()

    def encode(value: Any, nested: Nested) -> Any:
        _check_names(value, 3)
        return [
            [
                name,
                _encode_step(step, name, nested, WORDS),
                _of_columns(inner.encode, name, at, nested),
            ]
            for name, step, at in value
        ]

    def decode(plain: Any, nested: Nested) -> Any:
        _check_names(plain, 3)
        return [
            (
                name,
                _decode_step(step, name, nested, WORDS),
                _of_columns(inner.decode, name, at, nested),
            )
            for name, step, at in plain
        ]

    return Kind("a list of names, transformers and columns", encode, decode)


def remainder() -> Kind:
    """Return the kind of the parameter `remainder`."""
    return Kind(
        "a transformer",
        lambda value, nested: _encode_step(value, REMAINDER, nested, WORDS),
        lambda plain, nested: _decode_step(plain, REMAINDER, nested, WORDS),
    )


def _check_names(parts: Any, size: int) -> None:
    require(isinstance(parts, list | tuple), "must be a list")
    fits = all(isinstance(part, list | tuple) and len(part) == size for part in parts)
    require(fits, f"must be a list of tuples of {size}")
    given = [part[0] for part in parts]
    require(all(type(name) is str for name in given), "must have names that are strings")
    require(len(set(given)) == len(given), "has a name twice")
    require(not any("__" in name for name in given), "has names that contain '__'")


def _encode_step(step: Any, name: str, nested: Nested, words: tuple[str | None, ...]) -> Any:
    if step is None or isinstance(step, str):
        return _checked_word(step, words)
    return nested.encode(step, repr(name))


def _decode_step(plain: Any, name: str, nested: Nested, words: tuple[str | None, ...]) -> Any:
    if plain is None or isinstance(plain, str):
        return _checked_word(plain, words)
    return nested.decode(plain, repr(name))


def _checked_word(word: str | None, words: tuple[str | None, ...]) -> str | None:
    require(word in words, f"has {word!r:.40} in the place of a transformer")
    return word


def _of_columns(way: Callable[[Any, Nested], Any], name: str, at: Any, nested: Nested) -> Any:
    try:
        return way(at, nested)
    except ValueError as error:
        raise ValueError(f"has columns of {name!r:.40} that are refused: {error}") from error


# -- columns -----------------------------------------------------------------------------------


def columns() -> Kind:
    """Return the kind of columns: a name, a number, a slice, or a list of names, numbers or bools.

    A pandas index is converted to a list.
    """
    inner = sequence()

    def encode(value: Any, nested: Nested) -> Any:
        if type(value) is str or is_integer(value):
            return value
        if isinstance(value, slice):
            return {"slice": [value.start, value.stop, value.step]}
        if callable(value):
            raise kind.wrong(value)
        return inner.encode(plain_list(value), nested)

    def decode(plain: Any, nested: Nested) -> Any:
        if type(plain) is str or is_integer(plain):
            return plain
        if isinstance(plain, dict) and "slice" in plain:
            (ends,) = mapping(plain, "slice")
            require(isinstance(ends, list) and len(ends) == 3, "must be a slice")
            fits = all(end is None or type(end) is str or is_integer(end) for end in ends)
            require(fits, "must be a slice of names or numbers")
            return slice(*ends)
        return inner.decode(plain, nested)

    kind = Kind("columns by name, number or slice", encode, decode)
    return kind


def plain_list(value: Any) -> Any:
    """Convert list-like columns to a list.

    scikit-learn 1.6 has a class for the columns of the remainder, which warns when it is used.
    """
    if isinstance(value, UserList):
        return value.data
    like = type(value) not in (list, tuple, np.ndarray) and hasattr(value, "tolist")
    return value.tolist() if like else value


def resolve(at: Any, width: int, named: Any) -> list[int]:
    """Return column numbers in the same way as scikit-learn."""
    if isinstance(at, slice):
        return _resolve_slice(at, width, named)
    if isinstance(at, str) or is_integer(at):
        return [_resolve_one(at, width, named)]
    items = list(at)
    if items and all(isinstance(item, bool | np.bool_) for item in items):
        require(len(items) == width, "columns must be one bool per feature")
        return [number for number, item in enumerate(items) if item]
    return [_resolve_one(item, width, named) for item in items]


def _resolve_one(item: Any, width: int, named: Any) -> int:
    if isinstance(item, str):
        require(named is not None and item in named, f"column {item!r:.40} is unknown")
        return int(named.index(item))
    require(is_integer(item) and -width <= item < width, f"column {item!r:.40} is unknown")
    return int(item) % width


def _resolve_slice(at: slice, width: int, named: Any) -> list[int]:
    ends = [at.start, at.stop]
    if any(isinstance(end, str) for end in ends):  # slices of names include the last column
        fits = all(end is None or isinstance(end, str) for end in ends) and at.step is None
        require(fits, "a slice must be of names or of numbers")
        first = 0 if at.start is None else _resolve_one(at.start, width, named)
        last = width - 1 if at.stop is None else _resolve_one(at.stop, width, named)
        return list(range(first, last + 1))
    require(not isinstance(at.step, str) and at.step != 0, "a slice must have a step")
    return list(range(width))[at]


# -- pipelines and unions ----------------------------------------------------------------------


def follow(parts: list[tuple[str, Any]], width: int | None, nested: Nested) -> int | None:
    """Return the output width of a chain; raise ValueError if a part expects another width."""
    for name, step in parts:
        if step in SKIPPED:
            continue
        width = _through(step, name, width, nested)
    return width


def _through(step: Any, name: str, width: int | None, nested: Nested) -> int | None:
    expected = nested.expects(step)
    fits = width is None or expected is None or width == expected
    require(fits, f"{name!r:.40} expects {expected} features, but gets {width}")
    return nested.gives(step, expected if width is None else width)


def check_chain(v: Values, nested: Nested) -> None:
    _check_transformers(v["steps"][:-1], nested)
    follow(v["steps"], None, nested)


def _check_transformers(parts: list[tuple[str, Any]], nested: Nested) -> None:
    """Check that no part is one of our estimators, or ends in one."""
    for name, step in parts:
        fits = not nested.is_model(step)
        require(fits, f"has {type(step).__name__} as {name!r:.40}, which must be the last step")


def chain_width(v: Values, width: int | None, nested: Nested) -> int | None:
    return follow(v["steps"], width, nested)


def check_union(v: Values, nested: Nested) -> None:
    _check_transformers(v["transformer_list"], nested)
    expected = {nested.expects(step) for _, step in v["transformer_list"] if step not in WORDS}
    require(len(expected - {None}) <= 1, "transformers of a FeatureUnion have different widths")
    union_width(v, None, nested)


def union_width(v: Values, width: int | None, nested: Nested) -> int | None:
    total = 0
    for name, step in v["transformer_list"]:
        if step == "drop":
            continue
        more = width if step == "passthrough" else _through(step, name, width, nested)
        if more is None:
            return None
        total += more
    return total


# -- transformers of columns -------------------------------------------------------------------
#
# The parameters contain the columns. Therefore, only the names of the fitted transformers, the
# transformers, and the columns of the remainder are stored.


def column_parts(v: Values) -> Values:
    """Return the stored parts of a fitted ColumnTransformer."""
    stored = ("n_features_in_", "feature_names_in_", "sparse_output_")
    return {
        **{name: v[name] for name in stored if name in v},
        "fitted": [(name, step) for name, step, _ in v["transformers_"]],
        "rest": v["_remainder"][2],
    }


def derive_columns(v: Values, nested: Nested) -> Values:
    """Return the attributes of a fitted ColumnTransformer; raise if they are inconsistent."""
    found = _column_values(v)
    _check_fitted({**v, **found})
    _check_transformers([(name, step) for name, step, _ in found["transformers_"]], nested)
    return {**found, **_column_outputs({**v, **found}, nested)}


def _column_values(v: Values) -> Values:
    width, named = v["n_features_in_"], v.get("feature_names_in_")
    named = None if named is None else named.tolist()
    require(REMAINDER not in [name for name, _, _ in v["transformers"]], "has two remainders")
    indices = {name: resolve(at, width, named) for name, _, at in v["transformers"]}
    taken = set().union(*indices.values())
    indices[REMAINDER] = [number for number in range(width) if number not in taken]
    rest = v.pop("rest")
    fits = resolve(rest, width, named) == indices[REMAINDER]
    require(fits, "the columns of the remainder must be those that are left")
    planned = [(name, at) for name, _, at in v["transformers"]]
    planned += [(REMAINDER, rest)] if len(rest) else []
    found = v.pop("fitted")
    fits = [name for name, _ in found] == [name for name, _ in planned]
    require(fits, "must have one fitted transformer for each")
    pairs = zip(planned, [step for _, step in found], strict=True)
    return {
        "_columns": [at for _, _, at in v["transformers"]],
        "_transformer_to_input_indices": indices,
        "_remainder": (REMAINDER, v["remainder"], rest),
        "transformers_": [(name, step, at) for (name, at), step in pairs],
    }


def _check_fitted(v: Values) -> None:
    given = {name: step for name, step, _ in v["transformers"]} | {REMAINDER: v["remainder"]}
    for name, step, _ in v["transformers_"]:
        asked = given[name]
        same = type(asked).__name__ == type(step).__name__
        if asked == "passthrough":
            same = type(step).__name__ == "FunctionTransformer" or step == asked
        require(same and (asked == "drop") == (step == "drop"), f"{name!r:.40} is fitted otherwise")


def _column_outputs(v: Values, nested: Nested) -> Values:
    """Return the output columns of each transformer of a ColumnTransformer."""
    found, begin = {}, 0
    for name, step, _ in v["transformers_"]:
        indices = v["_transformer_to_input_indices"][name]
        if step == "drop" or not indices:
            continue
        width = _through(step, name, len(indices), nested)
        require(width is not None, f"{name!r:.40} is not fitted")
        found[name] = slice(begin, begin + int(width or 0))
        begin = found[name].stop
    if not found:
        return {}
    for name in (*(name for name, _, _ in v["transformers"]), REMAINDER):
        found.setdefault(name, slice(0, 0))
    require("sparse_output_" in v, "sparse_output_ is missing")
    require(v["sparse_output_"] or begin <= MOST_DENSE, "has too many columns to be dense")
    return {"output_indices_": found}


def columns_width(v: Values, width: int | None, nested: Nested) -> int:
    return max((part.stop for part in v.get("output_indices_", {}).values()), default=0)
