"""Features of items: given ones, TF-IDF, images, encoded columns, or a user-defined function."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfVectorizer

from marginwise.data import DataError, TableEncoder
from marginwise.label.images import image_features
from marginwise.label.items import Items
from marginwise.progress import Progress

MOST_TERMS = 20_000
MANY = 1000  # from this number of texts on, terms must occur in at least two


@dataclass
class Features:
    """Features of items, and the fitted transformers that compute them.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_items, n_features)
        The features.
    steps : list of (str, transformer)
        Fitted pipeline steps that precede the model. Empty if the features were given or computed
        by a function.
    origin : str
        Short description of the features.
    is_given : bool
        Whether the features were given or computed by a user-defined function.
    """

    X: Any
    steps: list[tuple[str, Any]] = field(default_factory=list)
    origin: str = "features as given"
    is_given: bool = False


def make_features(
    items: Items,
    function: str | None = None,
    verbose: int = 0,
    *,
    scale: bool = True,
    missing: Sequence[str] = (),
) -> Features:
    """Return the features of items.

    Parameters
    ----------
    items : Items
        The items.
    function : str, default=None
        ``module:function`` that computes an array from the list of items, which are texts, paths
        of images, or dicts of columns.
    verbose : int, default=0
        Whether to show progress.
    scale : bool, default=True
        Whether to standardise numeric columns if the items are rows of a table.
    missing : sequence of str, default=()
        Values to treat as missing if the items are rows of a table.

    Returns
    -------
    features : Features
        One row per item.
    """
    if function is not None:
        return Features(_plugged(items, function), [], function, is_given=True)
    if items.given is not None:
        return Features(items.given, is_given=True)
    if items.kind == "image":
        with Progress(len(items), verbose, unit="image") as progress:
            X: Any = image_features(items.content.values(), progress.count)
        return Features(X, [], "images")
    if items.kind == "text":
        return _terms(items, verbose)
    encoder = TableEncoder(scale=scale, missing=missing).fit(items.table)
    return Features(encoder.transform(items.table), [("encoder", encoder)], "encoded columns")


def _terms(items: Items, verbose: int) -> Features:
    """Return TF-IDF features of texts."""
    vectorizer = TfidfVectorizer(
        sublinear_tf=True,
        min_df=2 if len(items) >= MANY else 1,
        max_features=MOST_TERMS,
        dtype=np.float32,
    )
    try:
        with Progress(len(items), verbose, unit="text") as progress:
            X = vectorizer.fit_transform(_counted(items, progress))
    except ValueError as error:  # empty vocabulary
        raise DataError(
            f"{items.name}: the texts have no words of two letters or more; expected texts. Name "
            "their column by --text-column, or compute features by --features."
        ) from error
    return Features(sp.csr_array(X), [("terms", vectorizer)], f"TF-IDF, {X.shape[1]:,} terms")


def _counted(items: Items, progress: Progress) -> Iterator[str]:
    for k, text in enumerate(items.content.texts, 1):  # type: ignore[attr-defined]
        yield text.as_py()
        if k % 1000 == 0:
            progress.count(1000)
    progress.count(len(items) % 1000)


# -- user-defined functions ------------------------------------------------------------------------


def _plugged(items: Items, name: str) -> Any:
    """Return the features that a user-defined function computes, after checking them."""
    function = _function(name)
    try:
        made = function(items.content.values())
    except Exception as error:
        raise ValueError(
            f"--features {name} raised {type(error).__name__}: {error}. It is called with a list "
            f"of {len(items):,} items; correct the function."
        ) from error
    X = made.tocsr() if sp.issparse(made) else np.asarray(made)
    if X.ndim != 2 or X.shape[0] != len(items) or X.dtype.kind not in "fiub":
        raise ValueError(
            f"--features {name} returned an array of shape {X.shape} and type {X.dtype}; expected "
            f"numbers of shape ({len(items)}, number of features), one row per item."
        )
    X = X.astype(np.float32)
    finite = np.isfinite(X.data if sp.issparse(X) else X)
    if not finite.all():
        raise ValueError(
            f"--features {name} returned values that are not finite numbers; replace NaN and "
            "infinity in the function."
        )
    return X


def _function(name: str) -> Callable[[list[Any]], Any]:
    """Import a function; modules of the current folder are available."""
    module, _, attribute = name.partition(":")
    if not module or not attribute:
        raise ValueError(f"--features must be MODULE:FUNCTION, got {name!r}.")
    before = list(sys.path)
    sys.path.insert(0, os.getcwd())
    try:
        loaded = importlib.import_module(module)
    except ImportError as error:
        raise ValueError(
            f"--features {name}: the module {module!r} cannot be imported ({error}). Install it, "
            "or run the command in its folder."
        ) from error
    finally:
        sys.path[:] = before
    found = getattr(loaded, attribute, None)
    if not callable(found):
        raise ValueError(
            f"--features {name}: the module {module!r} has no function {attribute!r}; expected one "
            "that receives the list of items and returns an array with a row for each."
        )
    made: Callable[[list[Any]], Any] = found
    return made
