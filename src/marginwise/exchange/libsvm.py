"""Reading and writing of LIBSVM model files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from marginwise._checks import (
    MOST_FEATURES,
    Rule,
    check_arguments,
    either,
    integer,
    none,
    positive,
    weights,
)
from marginwise._estimator.base import KernelModel
from marginwise._files.disk import StrPath, read_file, replace_file
from marginwise._warn import warn
from marginwise.exchange.libsvm_manifest import Manifest, Part, check_names, describe
from marginwise.exchange.libsvm_reading import Imported, solution_in
from marginwise.exchange.libsvm_text import ModelText, parse
from marginwise.exchange.libsvm_writing import (
    against_rest,
    binary,
    check_writable,
    in_pairs,
    integer_labels,
    kernel_of,
    one_class,
    solution_of,
)
from marginwise.one_class import ExactOneClassSVM


def _is_weights(value: Any) -> bool:
    return isinstance(value, Mapping) and weights()[0](value)


_RULES: dict[str, Rule] = {
    "C": either(none(), positive()),
    "class_weight": either(none(), (_is_weights, "a dict of class weights above 0")),
    "n_features": either(none(), integer(1, MOST_FEATURES)),
}


def to_libsvm(model: Any, path: StrPath) -> list[Path]:
    """Export a model in the format of LIBSVM.

    Programs that read LIBSVM model files, such as ``svm-predict``, compute the same decision
    values. Support vectors are written in the coordinates of the training rows, with one-based
    indices and 17 significant digits.

    Binary classifiers, one-vs-one classifiers and `ExactOneClassSVM` are written to a single file.
    One-vs-rest classifiers are written to one file per class with the labels 1 and -1, named `path`
    with the suffixes ``.0``, ``.1`` and so on, and to a manifest named `path` with the suffix
    ``.json``.

    Labels of LIBSVM are 32-bit integers. If the labels of the model are not, classes are numbered
    from 0 in the file, and the labels are stored in a manifest.

    Each file is replaced atomically, the manifest last. The manifest contains checksums of the
    other files.

    Parameters
    ----------
    model : estimator
        Fitted classifier or `ExactOneClassSVM` of this package. The kernel must be "linear", "rbf",
        "poly" or "sigmoid", and "rbf" for `ExactOneClassSVM`.
    path : str or path-like
        Destination, or prefix of the names of several files.

    Returns
    -------
    paths : list of Path
        Files that were written. Pass the last one, which is the manifest if there is one, to
        :func:`from_libsvm`.

    Raises
    ------
    ValueError
        If the format cannot represent the model.
    OSError
        If a file cannot be written.

    See Also
    --------
    from_libsvm : Import a LIBSVM model.
    marginwise.save : Save the complete state of a model.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from marginwise import OnlineSVC
    >>> from marginwise.exchange import to_libsvm
    >>> model = OnlineSVC(gamma=1.0).fit([[0.0], [1.0]], [-1, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     (path,) = to_libsvm(model, Path(folder, "model.txt"))
    ...     print(path.read_text().split("rho")[0])
    svm_type c_svc
    kernel_type rbf
    gamma 1
    nr_class 2
    total_sv 2
    <BLANKLINE>
    """
    if not isinstance(model, KernelModel):
        raise ValueError(
            f"to_libsvm writes estimators of this package, got {type(model).__name__}."
        )
    target = Path(os.fspath(path))
    parts, manifest = _described(model._now(), target.name)
    written = []
    for name, content, _ in parts:
        written.append(_write(target.with_name(name), content))
    if manifest is not None:
        written.append(_write(target.with_name(f"{target.name}.json"), manifest))
    return written


def from_libsvm(
    path: StrPath,
    *,
    C: float | None = None,
    class_weight: Mapping[Any, float] | None = None,
    n_features: int | None = None,
) -> Any:
    """Import a model from a LIBSVM model file.

    A classifier is imported as an :class:`~marginwise.OnlineSVC` with the decision function of the
    file in every binary problem; `partial_fit` can continue its training. It stores the support
    vectors, with ids in the order of the file. Other models are imported as a
    :class:`~marginwise.CompressedSVC`, which can predict but not learn: one-class models, with the
    classes -1 and 1, and coefficients that are not the solution of a support vector classifier with
    a bias, such as those of an exported `GapSVC`.

    Decision values differ from those of LIBSVM by about 1e-7 times the sum of ``|alpha K|``,
    because kernel values are rounded to single precision.

    Parameters
    ----------
    path : str or path-like
        Model file of LIBSVM 2 or 3 (``c_svc``, ``nu_svc`` or ``one_class``), or manifest written by
        :func:`to_libsvm`. The file may come from an untrusted source.
    C : float, default=None
        Value of C that the model was trained with, which `partial_fit` continues to use. Model
        files do not contain C. By default, it is the largest coefficient, which equals C if any
        support vector is at its upper bound.
    class_weight : dict, default=None
        Class weights that the model was trained with. None means that all classes have weight 1.
    n_features : int, default=None
        Number of features. By default, the largest index in the file.

    Returns
    -------
    model : OnlineSVC or CompressedSVC
        Imported model. It is one-vs-one (``multiclass="ovo"``), as in LIBSVM, unless a manifest
        describes a one-vs-rest model.

    Raises
    ------
    DataError
        If the content is not a valid model. The message begins with the file and the line.
    OSError
        If a file does not exist, cannot be read or is not a regular file.

    Warns
    -----
    UserWarning
        If the file contains probability parameters, which are ignored.

    See Also
    --------
    to_libsvm : Export a model in the format of LIBSVM.
    marginwise.OnlineSVC.from_svc : Create a model from a fitted scikit-learn ``SVC``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import make_moons
    >>> from marginwise import OnlineSVC
    >>> from marginwise.exchange import from_libsvm, to_libsvm
    >>> X, y = make_moons(500, noise=0.2, random_state=0)
    >>> model = OnlineSVC(C=10, gamma=1.0).fit(X[:300], y[:300])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     *_, path = to_libsvm(model, Path(folder, "model.txt"))
    ...     read = from_libsvm(path)
    >>> bool((abs(read.decision_function(X) - model.decision_function(X)) < 1e-4).all())
    True
    >>> read.partial_fit(X[300:400], y[300:400]).finish().score(X[400:], y[400:])
    0.99
    """
    check_arguments(_RULES, C=C, class_weight=class_weight, n_features=n_features)
    source = Path(os.fspath(path))
    found = _found(source, n_features)
    if found.text.ignored:
        warn(
            f"{os.fspath(path)} has {' and '.join(found.text.ignored)}, from which probabilities "
            "are computed; they are not read. Calibrate the model on rows that it has not seen."
        )
    return found.model(C, class_weight)


# -- writing -----------------------------------------------------------------------------------


def _described(model: Any, name: str) -> tuple[list[Part], bytes | None]:
    """Return the files of a model, with names derived from `name`, and the manifest, if any."""
    check_is_fitted(model)
    engine = model._fitted()
    model._require_rows()
    check_writable(model, engine)
    if isinstance(model, ExactOneClassSVM):
        return [(name, engine.at_once(one_class), {})], None
    found = engine.at_once(lambda engine: solution_of(model, engine))
    if len(found) == 0 or len(model.classes_) < 2:
        raise ValueError(
            f"this {type(model).__name__} has no support vectors of two classes yet, and LIBSVM "
            "has no models without. Fit it to more rows."
        )
    kernel, classes = kernel_of(engine), model.classes_
    numbers = integer_labels(classes)
    ovr = len(classes) > 2 and not engine.plan.pairs
    if numbers is None or ovr:
        check_names(classes)
    labels = list(range(len(classes))) if numbers is None else numbers
    if ovr:
        parts = [against_rest(kernel, found, k, f"{name}.{k}") for k in range(len(classes))]
    else:
        write = in_pairs if len(classes) > 2 else binary
        parts = [(name, write(kernel, found, labels), {})]
    needed = ovr or numbers is None
    return parts, describe(model, engine.plan.features, parts, ovr) if needed else None


def _write(path: Path, content: bytes) -> Path:
    replace_file(path, lambda file: file.write(content))
    return path


# -- reading -----------------------------------------------------------------------------------


def _read(path: Path) -> bytes:
    return read_file(path, lambda _: None, 0)


def _found(path: Path, n_features: int | None) -> Imported:
    """Return the content of a model file, or of the files of a manifest."""
    data = _read(path)
    name = os.fspath(path)
    if data.lstrip()[:1] != b"{":
        return _single(parse(data, name, n_features), name)
    manifest = Manifest(data, path)
    if n_features not in (None, manifest.features):
        raise ValueError(f"n_features={n_features}, but {name} has {manifest.features} features.")
    if manifest.ovr:
        text, solution = manifest.one_vs_rest(_read)
        return Imported(text, name, manifest.classes, solution, ovr=True)
    found = _single(manifest.single(_read), name)
    found.classes = manifest.classes
    return found


def _single(text: ModelText, name: str) -> Imported:
    classes, solution = solution_in(text)
    return Imported(text, name, classes, solution)
