"""Export of small models as C source."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from marginwise._arrays import Float
from marginwise._checks import boolean, check_arguments, one_of
from marginwise._files.disk import replace_file
from marginwise.exchange import c_templates as parts
from marginwise.exchange.scaling import Scaling, split
from marginwise.exchange.snapshot import Snapshot, integer_labels, snapshot

MOST_BYTES = 64 << 20  # maximum size of the source without `force`
DIGITS = {"float": 9, "double": 17}
WIDTH = {"float": 16, "double": 25}  # maximum bytes of a number with sign and comma
SUFFIX = {"float": "f", "double": ""}
ROUNDING = {"float": 2e-6, "double": 1e-12}  # relative; smaller values of a sphere count as 0
A_LINE = 96
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# fmt: off
KEYWORDS = frozenset([
    "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else",
    "enum", "extern", "float", "for", "goto", "if", "inline", "int", "long", "register",
    "restrict", "return", "short", "signed", "sizeof", "static", "struct", "switch", "typedef",
    "union", "unsigned", "void", "volatile", "while",
])
# fmt: on


def to_c(
    model: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    name: str = "model",
    dtype: Literal["float", "double"] = "float",
    force: bool = False,
) -> str:
    """Export a fitted model as C99 source.

    The source is a header with constant arrays and functions that depends only on ``math.h`` and
    does not allocate memory. For ``name="model"``, the function ``int model_predict(const float
    *x)`` returns the index of the predicted class in ``model_classes`` (or 1 or -1 for
    `ExactOneClassSVM`). The function ``void model_decision(const float *x, float *out)`` writes the
    ``MODEL_DECISIONS`` values of the decision function.

    Parameters
    ----------
    model : estimator or Pipeline
        Fitted estimator of this package, or a pipeline that ends in one and whose other steps are
        scalers (`StandardScaler`, `MinMaxScaler`, `MaxAbsScaler`, `RobustScaler`, or `TableEncoder`
        of numbers). The kernel must not be callable or precomputed.
    path : str or path-like, default=None
        File to write, usually with the suffix ``.h``. An existing file is replaced atomically. None
        writes no file.
    name : str, default="model"
        Prefix of all identifiers in the source.
    dtype : {"float", "double"}, default="float"
        Type of features, constants and arithmetic.
    force : bool, default=False
        Whether to allow more than 64 MB of source, which takes long to compile.

    Returns
    -------
    source : str
        The source.

    Raises
    ------
    ValueError
        If the model cannot be exported. The message states the reason.

    See Also
    --------
    to_onnx : Convert a model to ONNX.
    to_json : Export a model as JSON.

    Examples
    --------
    >>> from marginwise import OnlineSVC
    >>> from marginwise.exchange import to_c
    >>> model = OnlineSVC(kernel="linear", random_state=0).fit([[0.0], [1.0]], ["no", "yes"])
    >>> source = to_c(model, name="answer")
    >>> [line for line in source.splitlines() if line.startswith("static inline")]
    ['static inline void answer_values(const float *x, float *f)',
     'static inline void answer_decision(const float *x, float *out)',
     'static inline int answer_predict(const float *x)']
    """
    check_arguments(
        {"dtype": one_of("float", "double"), "force": boolean(), "name": _identifier()},
        dtype=dtype,
        force=force,
        name=name,
    )
    last, scaling, names = split(model)
    taken = _folded(_without_probabilities(snapshot(last)))
    size = (taken.vectors.size + taken.weights.size) * WIDTH[dtype]
    if size > MOST_BYTES and not force:
        raise ValueError(
            f"the source of this {taken.estimator} would take about {size / 2**20:.0f} MB, more "
            f"than {MOST_BYTES >> 20} MB. Make the model smaller with compress, use to_onnx, or "
            "pass force=True."
        )
    source = _Writer(taken, scaling, name, dtype).source(names)
    if path is not None:
        replace_file(path, lambda file: file.write(source.encode("ascii")))
    return source


def _identifier() -> Any:
    def test(value: Any) -> bool:
        named = isinstance(value, str) and IDENTIFIER.fullmatch(value) is not None
        return named and value not in KEYWORDS

    return test, "a name of C (letters, digits and underscores)"


def _without_probabilities(model: Snapshot) -> Snapshot:
    if model.by_probability:
        raise ValueError(
            f"this {model.estimator} predicts the most probable class, and C source has no "
            "probabilities. Call set_params(calibration=None), so that the decision function "
            "decides, or use to_onnx."
        )
    return model


def _folded(model: Snapshot) -> Snapshot:
    """Fold the support vectors of linear and cosine kernels into one vector per problem."""
    if model.kernel == "cosine":
        norms = np.linalg.norm(model.vectors, axis=1, keepdims=True)
        units = np.divide(model.vectors, norms, out=np.zeros_like(model.vectors), where=norms > 0)
        return _with_rows(model, model.weights @ units)
    if model.kernel == "linear":
        rows = model.coef if model.coef is not None else model.weights @ model.vectors
        return _with_rows(model, rows)
    if model.kernel == "rbf" and model.center is not None:
        model = replace(model, vectors=model.vectors + model.center, center=None)
    if len(model.vectors) == 0:  # C has no empty arrays
        zeros = np.zeros((1, model.features)), np.zeros((model.problems, 1))
        return replace(model, vectors=zeros[0], weights=zeros[1])
    return model


def _with_rows(model: Snapshot, rows: Float) -> Snapshot:
    return replace(model, vectors=rows, weights=np.eye(model.problems), coef=rows)


class _Writer:
    """Source of one model."""

    def __init__(self, model: Snapshot, scaling: Scaling | None, name: str, dtype: str) -> None:
        self.model, self.name, self.dtype = model, name, dtype
        self.scaling = _with_centre(scaling, model.center)

    def source(self, names: list[str] | None) -> str:
        """Return the whole source; a comment lists the feature names."""
        model = self.model
        classes = 0 if model.classes is None else len(model.classes)
        sphere = "1 inside the sphere, -1 outside"
        words = {
            "name": self.name,
            "NAME": self.name.upper(),
            "real": self.dtype,
            "f": SUFFIX[self.dtype],
            "estimator": model.estimator,
            "kernel": model.kernel,
            "returned": "the index of a class in @name@_classes" if classes else sphere,
            "order": "" if names is None else _comment(names),
            "features": str(model.features),
            "problems": str(model.problems),
            "decisions": str(classes if classes > 2 else 1),
            "prepare": parts.PREPARE[self.scaling is not None],
            "body": self._body(),
            "gamma": self._number(model.gamma),
            "coef0": self._number(model.coef0),
            "degree": str(model.degree),
            "total": self._number(model.total),
            "rounding": self._number(ROUNDING[self.dtype]),
        }
        decision = parts.PAIRS if model.pairs else parts.DIRECT
        predict = parts.PREDICT["sphere" if not classes else "two" if classes == 2 else "more"]
        text = _filled(parts.VALUES + decision + predict, words)
        text = _filled(parts.HEADER, words) + self._arrays() + text
        return text + f"\n#endif /* {self.name.upper()}_H */\n"

    def _body(self) -> str:
        """Return the statements that add kernel values to the intercepts."""
        model, kernel = self.model, self.model.kernel
        sphere = model.classes is None
        squared = kernel in ("cosine", "tanimoto") or (sphere and kernel != "rbf")
        body = parts.SQUARE if squared else ""
        if model.coef is not None:
            body += parts.COSINE if kernel == "cosine" else parts.LINEAR
        else:
            inner = {
                "other": parts.OTHER.get(kernel, ""),
                "term": parts.TERM.get(kernel, parts.TERM["product"]),
                "transform": parts.TRANSFORM[kernel],
            }
            total = parts.SUM
            for word, text in inner.items():
                total = total.replace(f"@{word}@", text)
            body += total
        if sphere:
            body += parts.SPHERE.replace("@own@", parts.OWN[kernel])
        return body

    # -- arrays --------------------------------------------------------------------------------

    def _arrays(self) -> str:
        """Return the definitions of all constants."""
        model = self.model
        arrays = {}
        if self.scaling is not None:
            arrays["shift"], arrays["factor"] = self.scaling
            least = float(np.abs(self.scaling[1]).min())
            if self.dtype == "float" and least < float(np.finfo(np.float32).tiny):
                raise self._misfit(least)
        if model.coef is not None:
            arrays["coef"] = model.coef
        else:
            arrays["vectors"], arrays["weights"] = model.vectors, model.weights.T
        arrays["intercepts"] = model.intercepts
        listed = "".join(self._array(name, values) for name, values in arrays.items())
        count = f"#define {self.name.upper()}_VECTORS {len(model.vectors)}\n"
        return ("" if model.coef is not None else count) + self._classes() + listed

    def _array(self, what: str, values: Float) -> str:
        sides = "".join(f"[{n}]" for n in values.shape)
        lines: list[str] = []
        if values.ndim == 1:
            lines = _wrapped(self._numbers(values))
        else:
            for row in values:
                inner = _wrapped(self._numbers(row))
                lines += ["{" + inner[0], *inner[1:]]
                lines[-1] += "},"
        body = "\n".join(f"    {line}" for line in lines)
        return f"static const {self.dtype} {self.name}_{what}{sides} = {{\n{body}\n}};\n\n"

    def _number(self, value: float) -> str:
        return self._numbers(np.array([value]))[0]

    def _numbers(self, values: Float) -> list[str]:
        """Return constants that C parses as the same numbers."""
        with np.errstate(over="ignore"):
            rounded = values.astype(np.float32) if self.dtype == "float" else values
        if not np.isfinite(rounded).all():
            raise self._misfit(float(values[np.argmin(np.isfinite(rounded))]))
        form, suffix = f".{DIGITS[self.dtype]}g", SUFFIX[self.dtype]
        texts = [format(value, form) for value in rounded.tolist()]
        return [(t if "." in t or "e" in t else f"{t}.0") + suffix for t in texts]

    def _misfit(self, value: float) -> ValueError:
        return ValueError(
            f"the number {value!r} of the model does not fit into a {self.dtype} of C. Use "
            "dtype='double', or scale the features."
        )

    def _classes(self) -> str:
        classes = self.model.classes
        if classes is None:
            return ""
        count = f"#define {self.name.upper()}_CLASSES {len(classes)}\n"
        if classes.dtype.kind in "biuf":
            numbers = ", ".join(map(_long, integer_labels(classes).tolist()))
            return f"{count}static const long long {self.name}_classes[] = {{{numbers}}};\n\n"
        names = ", ".join(_quoted(str(label)) for label in classes.tolist())
        return f"{count}static const char *const {self.name}_classes[] = {{{names}}};\n\n"


def _filled(text: str, words: dict[str, str]) -> str:
    """Replace words between @ signs, including those in replacements."""
    while "@" in text:
        text = re.sub(r"@(\w+)@", lambda found: words[found[1]], text)
    return text


def _with_centre(scaling: Scaling | None, center: NDArray[Any] | None) -> Scaling | None:
    """Return a scaling that also subtracts a centre."""
    if center is None:
        return scaling
    if scaling is None:
        return center, np.ones_like(center)
    return scaling[0] + center / scaling[1], scaling[1]


def _wrapped(words: list[str]) -> list[str]:
    """Return lines of comma-separated words."""
    lines, line = [], ""
    for k, word in enumerate(words):
        piece = word + ("," if k + 1 < len(words) else "")
        if line and len(line) + len(piece) >= A_LINE:
            lines.append(line)
            line = ""
        line += f" {piece}" if line else piece
    return [*lines, line]


def _comment(names: list[str]) -> str:
    """Return comment lines that list the features, without characters that end the comment."""
    plain = [re.sub(r"[^A-Za-z0-9_ .-]", "?", name) for name in names]
    return "".join(f" * {line}\n" for line in ["The features, in this order:", *_wrapped(plain)])


def _long(label: int) -> str:
    """Return a C expression for an integer; the smallest integer has no literal."""
    return f"{label}LL" if label > -(2**63) else f"({label + 1}LL - 1)"


def _quoted(label: str) -> str:
    """Return a C string literal; all bytes other than plain ASCII are octal escapes."""
    safe = re.compile(rb"[A-Za-z0-9 _.,:;+*/=<>()\[\]{}|~^!@#$%&'-]")
    pieces = (bytes([byte]) for byte in label.encode("utf-8"))
    text = "".join(b.decode() if safe.match(b) else f"\\{b[0]:03o}" for b in pieces)
    return f'"{text}"'
