"""Encoding and decoding of pipelines according to the table of transformers."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import sklearn

from marginwise._checks import current
from marginwise._files.engine_state import require_names
from marginwise._files.format import estimators
from marginwise._files.pipelines.compositions import plain_list
from marginwise._files.pipelines.kinds import RefusedError
from marginwise._files.pipelines.packing import mapping, require
from marginwise._files.pipelines.rows import NEWEST, OLDEST, Row, Version
from marginwise._files.pipelines.table import TABLE

PIPELINE = "Pipeline"  # the name in files
PIPELINES = (PIPELINE, "StreamPipeline")
KEYS = {"scikit-learn", "pipeline"}
MOST_DEPTH = 16  # of nested pipelines
OUTPUT = "_sklearn_output_config"  # the attribute that `set_output` sets
OUTPUTS = ("default", "pandas", "polars")
# Attributes that transformers cache and recompute when they are needed.
NOTES = ("_stop_words_id", "_transformers_feature_names_out")
_NO_ROW = Row("", {})  # for classes that are not in the table


def is_pipeline(model: Any) -> bool:
    """Return whether a model is a scikit-learn Pipeline or ours, but not another subclass."""
    name = type(model).__name__
    return name in PIPELINES and type(model) is _class_of(name)


def describe_pipeline(model: Any) -> dict[str, Any]:
    """Return the checked state of a pipeline that ends in one of our estimators.

    Raises a ValueError that names a part that files do not support.
    """
    codec = Codec(sklearn.__version__)
    try:
        plain = codec.encode(model, "")
        again = codec.decode(plain, "")
    except RefusedError as error:
        raise ValueError(str(error)) from error
    lost = difference(model, again)
    require(lost is None, f"{lost} is not as it would be read")
    _require_end(model)
    return {"scikit-learn": sklearn.__version__, "pipeline": plain}


def restore_pipeline(state: Mapping[str, Any]) -> Any:
    """Create a pipeline from a state in a file."""
    require_names(KEYS, state, "parts")
    version = state["scikit-learn"]
    require(isinstance(version, str), "scikit-learn must be the number of a version")
    try:
        pipeline = Codec(version).decode(state["pipeline"], "")
    except RefusedError as error:
        raise ValueError(str(error)) from error
    require(is_pipeline(pipeline), "it does not contain a Pipeline")
    _require_end(pipeline)
    return pipeline


def _require_end(pipeline: Any) -> None:
    """Raise ValueError unless a pipeline ends in one of our estimators."""
    last: Any = pipeline
    while is_pipeline(last):
        last = last.steps[-1][1] if last.steps else None
    known = estimators()
    name = type(last).__name__
    require(
        known.get(name) is type(last),
        f"it ends in {last if last is None or isinstance(last, str) else name}; expected one of "
        f"{', '.join(known)} as the last step",
    )


def _class_of(name: str) -> Any:
    return getattr(importlib.import_module(TABLE[name].module), name)


def _version_of(text: str) -> Version:
    """Return the first two numbers of a version, such as 1.9.1 or 1.10rc1."""
    found = re.match(r"(\d{1,4})\.(\d{1,4})", text, re.ASCII)
    if found is None:
        raise ValueError(f"{text!r:.20} is not a version of scikit-learn")
    return int(found[1]), int(found[2])


# -- parts -------------------------------------------------------------------------------------


class Codec:
    """Converter of estimators to plain values and back, which implements `Nested`.

    Parameters
    ----------
    version : str
        Version of scikit-learn that the plain values come from.
    """

    def __init__(self, version: str) -> None:
        self.version = version
        self.minor = _version_of(version)
        self.here = _version_of(sklearn.__version__)
        self.path: list[str] = []
        self.written: dict[int, Any] = {}  # our estimators, by the identity of their states

    # -- writing

    def encode(self, estimator: Any, where: str) -> Any:
        """Encode a transformer or, at the end of a pipeline, one of our estimators."""
        name = type(estimator).__name__
        known = estimators()
        if known.get(name) is type(estimator):
            return self._at(where, name, lambda: self._encode_own(estimator))
        if name not in TABLE or type(estimator) is not _class_of(name):
            raise self._unknown(where, name)
        return self._at(where, name, lambda: self._encode(estimator, TABLE[name]))

    def _encode(self, estimator: Any, row: Row) -> Any:
        name = type(estimator).__name__
        parameters = estimator.get_params(deep=False)
        require_names(self._expected(row, self.here), parameters, "parameters")
        values = {key: v for key, v in vars(estimator).items() if key not in _left_out(estimator)}
        output = values.pop(OUTPUT, None)
        attributes = {key: v for key, v in values.items() if key not in parameters}
        if attributes:
            attributes = {key: v for key, v in attributes.items() if key not in row.computed}
            if row.parts is not None:
                attributes = row.parts(values)
            _require_attributes(row, attributes)
        return {
            "class": name,
            "parameters": self._each(row.parameters, parameters, "encode"),
            "attributes": self._each(row.attributes, attributes, "encode"),
            "output": output,
        }

    def _each(self, kinds: Mapping[str, Any], values: Mapping[str, Any], way: str) -> Any:
        """Encode or decode values according to their kinds."""
        done = {}
        for key, value in values.items():
            try:
                done[key] = getattr(kinds[key], way)(value, self)
            except RefusedError:
                raise
            except ValueError as error:
                raise ValueError(f"{key} {error}") from error
        return done

    # -- reading

    def decode(self, plain: Any, where: str) -> Any:
        """Invert `encode`; raise ValueError if the plain values are invalid."""
        require(len(self.path) <= MOST_DEPTH, "it is too deep")
        name = plain.get("class") if isinstance(plain, dict) else None
        require(isinstance(name, str), "a part is not an estimator")
        if name in estimators():
            return self._at(where, str(name), lambda: self._decode_own(plain))
        if name not in TABLE:
            raise self._unknown(where, str(name)[:40])
        return self._at(where, str(name), lambda: self._decode(plain, TABLE[str(name)]))

    def _decode(self, plain: Any, row: Row) -> Any:
        name, parameters, attributes, output = mapping(
            plain, "class", "parameters", "attributes", "output"
        )
        self._check_version(row)
        require(isinstance(parameters, dict) and isinstance(attributes, dict), "must have dicts")
        added = {key: value for key, value in row.added.items() if key not in parameters}
        require_names(self._expected(row, self.minor) - added.keys(), parameters, "parameters")
        given = self._adapted(row, added | self._each(row.parameters, parameters, "decode"))
        estimator = _class_of(name)(**given)
        values = dict(given)
        if attributes:
            _require_attributes(row, attributes)
            values.update(self._each(row.attributes, attributes, "decode"))
            _check_sides(row, values)
        if attributes or row.stateless:
            row.check(values, self)
            values.update(row.derived(values, self))
        vars(estimator).update(values)
        if output is not None:
            fits = isinstance(output, dict) and output.keys() <= {"transform"}
            require(fits and set(output.values()) <= set(OUTPUTS), "set_output has other values")
            setattr(estimator, OUTPUT, output)
        return estimator

    # -- our estimators

    def _encode_own(self, model: Any) -> dict[str, Any]:
        require(
            not callable(model.kernel),
            "its kernel is a Python function, and files contain no code",
        )
        state = model._stored_state()
        self.written[id(state)] = model
        return {"class": type(model).__name__, "state": state}

    def _decode_own(self, plain: Any) -> Any:
        name, state = mapping(plain, "class", "state")
        require(isinstance(state, dict), "its state must be a dict")
        kind, written = estimators()[name], self.written.get(id(state))
        state = current(state, kind)
        kind._check_state(state)
        if written is not None:  # decoding only to check what is saved
            return written
        model = kind.__new__(kind)
        model.__setstate__(state)
        return model

    # -- widths

    def expects(self, estimator: Any) -> int | None:
        """Return the number of features that an estimator was fitted with, or None."""
        name = type(estimator).__name__
        key = "steps" if name in PIPELINES else "transformer_list"
        if key not in TABLE.get(name, _NO_ROW).parameters:
            found: int | None = vars(estimator).get("n_features_in_")
            return None if TABLE.get(name, _NO_ROW).tabular else found
        inner = [step for _, step in vars(estimator)[key] if not isinstance(step, str | None)]
        widths = [self.expects(step) for step in inner]
        if key == "steps":
            return widths[0] if widths else None
        return next((width for width in widths if width is not None), None)

    def gives(self, estimator: Any, width: int | None) -> int | None:
        """Return the number of output columns of an estimator, or None."""
        row = TABLE.get(type(estimator).__name__)
        if row is None:
            return None
        values = vars(estimator)
        fitted = row.stateless or any(key in values for key in row.attributes)
        return row.width(values, width, self) if fitted else None

    def is_model(self, estimator: Any) -> bool:
        """Return whether this is one of our estimators, or a pipeline that ends in one."""
        if type(estimator).__name__ in PIPELINES:
            parts = estimator.steps
            return bool(parts) and self.is_model(parts[-1][1])
        return type(estimator).__name__ in estimators()

    # -- versions

    def _expected(self, row: Row, version: Version) -> set[str]:
        """Return the parameters that a class has in a version of scikit-learn."""
        later = {key for key, (first, _) in row.since.items() if version < first}
        gone = {key for key, (end, _) in row.until.items() if version >= end}
        return set(row.parameters) - later - gone

    def _adapted(self, row: Row, parameters: dict[str, Any]) -> dict[str, Any]:
        """Convert parameters of another version to the installed one."""
        expected = self._expected(row, self.here)
        usual = {key: value for key, (_, value) in (*row.since.items(), *row.until.items())}
        for key in parameters.keys() - expected:
            fits = key in row.until or parameters[key] == usual[key]
            require(fits, f"{key} of scikit-learn {self.version} is not in {sklearn.__version__}")
        added = {key: usual[key] for key in expected - parameters.keys()}
        return added | {key: value for key, value in parameters.items() if key in expected}

    def _check_version(self, row: Row) -> None:
        if self.minor == self.here or row.module.startswith("marginwise"):
            return
        low, high = sorted((self.minor, self.here))
        known = low >= OLDEST and high <= NEWEST
        require(
            known and not any(low < change <= high for change in row.changed),
            f"it was saved with scikit-learn {self.version}, whose attributes are not known to be "
            f"those of scikit-learn {sklearn.__version__}, which is installed",
        )

    # -- places

    def _at(self, where: str, name: str, act: Callable[[], Any]) -> Any:
        """Run a function for a part, and name the part in errors."""
        self.path += [where] if where else []
        try:
            return act()
        except RefusedError:
            raise
        except ValueError as error:
            place = f"step {' > '.join(self.path)} ({name}): " if self.path else ""
            raise RefusedError(f"{place}{error}") from error
        finally:
            if where:
                self.path.pop()

    def _unknown(self, where: str, name: str) -> RefusedError:
        place = " > ".join([*self.path, where])
        return RefusedError(
            f"step {place} is a {name}, which model files cannot hold; they hold "
            f"{', '.join(sorted(TABLE))}, and as the last step one of {', '.join(estimators())}"
        )


def _left_out(estimator: Any) -> frozenset[str]:
    """Return the attributes of a transformer that files do not contain."""
    return TABLE.get(type(estimator).__name__, _NO_ROW).unstored.union(NOTES)


def _require_attributes(row: Row, attributes: Mapping[str, Any]) -> None:
    optional = {*row.optional, "feature_names_in_"}
    expected = {key for key in row.attributes if key in attributes or key not in optional}
    require_names(expected, attributes, "attributes")


def _check_sides(row: Row, values: dict[str, Any]) -> None:
    """Check the shapes of arrays against the expected counts."""
    for key, kind in row.attributes.items():
        value = values.get(key)
        if kind.sides and isinstance(value, np.ndarray):
            expected = tuple(
                values[side] if side else size
                for side, size in zip(kind.sides, value.shape, strict=True)
            )
            require(value.shape == expected, f"{key} must have the shape {expected}")


# -- comparison --------------------------------------------------------------------------------


def difference(one: Any, two: Any, name: str = "it") -> str | None:
    """Return the name of the first part in which two pipelines differ, or None."""
    if isinstance(two, list | tuple):
        one = plain_list(one)
        if not isinstance(one, list | tuple) or len(one) != len(two):
            return name
        return _first(difference(a, b, name) for a, b in zip(one, two, strict=True))
    if type(one) is not type(two):
        return name
    if isinstance(one, np.ndarray):
        if one.dtype == two.dtype == object and one.shape == two.shape:
            return difference(one.tolist(), two.tolist(), name)
        same = one.dtype == two.dtype and np.array_equal(one, two, equal_nan=one.dtype.kind == "f")
        return None if same else name
    if isinstance(one, dict):
        same = list(one) == list(two)
        return _first(difference(one[key], two[key], name) for key in one) if same else name
    if isinstance(one, np.random.RandomState):
        return None  # equal, because its state was stored
    if hasattr(one, "get_params"):
        own = type(one) in estimators().values()
        return None if own else _first(_differences(one, two))
    return None if one == two or (one != one and two != two) else name


def _differences(one: Any, two: Any) -> Iterator[str | None]:
    """Yield the differences between the attributes of two transformers."""
    first, second, left_out = vars(one), vars(two), _left_out(one)
    for key in sorted((first.keys() | second.keys()) - left_out):
        name = f"{key} of {type(one).__name__}"
        there = key in first and key in second
        yield difference(first[key], second[key], name) if there else name


def _first(found: Iterator[str | None]) -> str | None:
    return next((name for name in found if name is not None), None)
