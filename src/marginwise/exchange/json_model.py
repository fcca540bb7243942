"""Export of models as JSON, with everything that predictions depend on."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from typing import Any

from marginwise._engine.plan import WITH_GAMMA
from marginwise._files.disk import replace_file
from marginwise.calibration import Isotonic, Sigmoid
from marginwise.exchange.scaling import split
from marginwise.exchange.snapshot import Snapshot, snapshot

FORMAT, VERSION = "marginwise-model", 1
PARAMETERS = {"poly": ("gamma", "coef0", "degree"), "sigmoid": ("gamma", "coef0")}


def to_json(model: Any, path: str | os.PathLike[str] | None = None) -> str:
    """Export a fitted model as JSON.

    The JSON object has the following members:

    - ``format`` ("marginwise-model"), ``version`` (1), ``estimator``, ``n_features``, and
      ``feature_names``, a list of strings or null;
    - ``scaling``: null, or an object of two lists; features are first replaced by
      ``(x - shift) * factor``;
    - ``center``: null, or a list that is then subtracted from the features;
    - ``kernel``: its ``name`` and, if it has them, ``gamma``, ``coef0`` and ``degree``;
    - ``support_vectors``, one list per vector, and ``dual_coef``, one list per binary problem. The
      value of a binary problem is the sum of coefficients times kernel values plus its
      ``intercept``. With ``coef`` (the linear kernel), it is the sum of weights times features plus
      its ``intercept``, and both are empty;
    - ``classes``: the labels, or null for a one-class model;
    - ``multiclass``: "binary" (positive values favour the second class), "ovr" (the class of the
      largest value), "ovo" (votes of the pairs (0, 1), (0, 2), ..., whose second class is the
      positive one) or "one_class" (``total / 2`` times the kernel of x with itself is subtracted;
      values of 0 or more are inside);
    - ``probabilities``: null, or an object with the ``curves`` of the binary problems and whether
      the most probable class is predicted (``decides``).

    Parameters
    ----------
    model : estimator or Pipeline
        Fitted estimator of this package, or a pipeline of scalers that ends in one. The kernel must
        not be callable or precomputed.
    path : str or path-like, default=None
        File to write. An existing file is replaced atomically. None writes no file.

    Returns
    -------
    text : str
        Model as JSON text.

    Raises
    ------
    ValueError
        If the model cannot be exported. The message states the reason.

    See Also
    --------
    to_onnx : Convert a model to ONNX.
    to_c : Export a small model as C source.

    Examples
    --------
    >>> import json
    >>> from marginwise import OnlineSVC
    >>> from marginwise.exchange import to_json
    >>> model = OnlineSVC(gamma=1.0, random_state=0).fit([[0.0], [1.0]], ["no", "yes"])
    >>> read = json.loads(to_json(model))
    >>> read["kernel"], read["support_vectors"]
    ({'name': 'rbf', 'gamma': 1.0}, [[0.0], [1.0]])
    """
    last, scaling, names = split(model)
    described = {**_described(snapshot(last)), "feature_names": names}
    if scaling is not None:
        shift, factor = scaling
        described["scaling"] = {"shift": shift.tolist(), "factor": factor.tolist()}
    try:
        text = json.dumps(described, allow_nan=False)
    except TypeError as error:
        raise ValueError(
            f"the labels {described['classes']!r:.80} cannot be written as JSON; expected numbers "
            "or strings. Fit the model with such labels."
        ) from error
    if path is not None:
        replace_file(path, lambda file: file.write(text.encode("utf-8")))
    return text


def _described(model: Snapshot) -> dict[str, Any]:
    center, vectors = model.center, model.vectors
    if model.kernel == "rbf" and center is not None:  # distances do not depend on it
        vectors, center = vectors + center, None
    names = PARAMETERS.get(model.kernel, ("gamma",) if model.kernel in WITH_GAMMA else ())
    return {
        "format": FORMAT,
        "version": VERSION,
        "estimator": model.estimator,
        "n_features": model.features,
        "feature_names": None,
        "scaling": None,
        "center": None if center is None else center.tolist(),
        "kernel": {"name": model.kernel, **{name: getattr(model, name) for name in names}},
        "support_vectors": vectors.tolist(),
        "dual_coef": model.weights.tolist(),
        "coef": None if model.coef is None else model.coef.tolist(),
        "intercept": model.intercepts.tolist(),
        "classes": None if model.classes is None else model.classes.tolist(),
        "multiclass": _multiclass(model),
        "total": model.total,
        "probabilities": _probabilities(model),
    }


def _multiclass(model: Snapshot) -> str:
    if model.classes is None:
        return "one_class"
    return "binary" if model.problems == 1 else "ovo" if model.pairs else "ovr"


def _probabilities(model: Snapshot) -> dict[str, Any] | None:
    if model.calibrator is None:
        return None
    curves = [_curve(curve) for curve in model.calibrator.curves]
    return {"decides": model.by_probability, "curves": curves}


def _curve(curve: Sigmoid | Isotonic) -> dict[str, Any]:
    """Return a calibration curve: a sigmoid with weight `share`, and steps on each side of 0."""
    smooth = curve.sigmoid if isinstance(curve, Isotonic) else curve
    sigmoid = asdict(smooth)
    if isinstance(curve, Sigmoid):
        return {"sigmoid": sigmoid, "share": 1.0}
    sides = {
        side: {
            "at": getattr(curve, side).X_thresholds_.tolist(),
            "value": getattr(curve, side).y_thresholds_.tolist(),
        }
        for side in ("above", "below")
    }
    return {"sigmoid": sigmoid, "share": curve.share, **sides}
