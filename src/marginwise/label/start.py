"""Starting a session from items, features, store and settings."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from marginwise._warn import warn
from marginwise.active import STRATEGIES, StoppingRule
from marginwise.label.features import Features, make_features
from marginwise.label.item_files import open_items
from marginwise.label.items import Items, checked_labels
from marginwise.label.opening import kept_if_used
from marginwise.label.queue import Settings
from marginwise.label.reopening import Request as Request
from marginwise.label.reopening import check_answers, item_set, remember
from marginwise.label.session import Session
from marginwise.label.store import LabelStore

GOALS = ("learn", "find")
KEPT = ("goal", "seed", "holdout", "overlap")  # settings that are fixed once they are stored


def read_items(request: Request, labels: list[str] | None) -> tuple[Items, list[str] | None]:
    """Return the items of a request, and the checked labels of the user."""
    items = open_items(request.items, request.columns, request.items_file)
    return items, checked_labels(items, labels) if labels else None


def open_store(request: Request, items: Items) -> LabelStore:
    """Open the store of a request; raise if it belongs to other items."""
    store = LabelStore.open(request.store)
    try:
        if store.items is None:  # answers were imported before the items were known
            check_answers(store, items)
        store.identify(item_set(items))
        remember(store, request)
    except BaseException:
        store.close()
        raise
    return store


def settled(
    store: LabelStore, items: Items, wanted: Settings, labels: list[str] | None
) -> Settings:
    """Return the settings of a session; stored settings take precedence over the wanted ones.

    Parameters
    ----------
    store : LabelStore
        The store.
    items : Items
        The items.
    wanted : Settings
        Settings of the user. Their labels are not used.
    labels : list of str or None
        Labels of the user. None uses the labels of the store or, if it has none, of the items.
    """
    meta = store.meta()
    stored = json.loads(meta["labels"]) if "labels" in meta else None
    named = labels or checked_labels(items, stored)
    used = {event.label for event in store.events() if event.label is not None}
    for label in sorted(used - set(named)):
        raise ValueError(
            f"{store.path}: some answers have the label {label!r}, which is not one of "
            f"{', '.join(named)}. Name it in --labels as well, or use another --store."
        )
    if stored != named:
        store.set_meta(labels=json.dumps(named))
    values = store.default_meta(**{name: json.dumps(getattr(wanted, name)) for name in KEPT})
    kept = {name: json.loads(value) for name, value in values.items()}
    for name, value in kept.items():
        if value != getattr(wanted, name):
            warn(f"{store.path} was started with {name} {value}, which stays as it is.")
    return replace(wanted, labels=tuple(named), **kept)


def start(
    request: Request,
    settings: Settings,
    labels: list[str] | None,
    make_estimator: Any,
    *,
    stop: StoppingRule | None = None,
    scale: bool = True,
    verbose: int = 0,
    report: Any = None,
) -> tuple[Session, Features]:
    """Return a session and its features.

    Parameters
    ----------
    request : Request
        Items to label, and the store of the answers.
    settings : Settings
        Settings of the user. Their labels are not used.
    labels : list of str or None
        All labels. None uses the labels of the store or, if it has none, of the items.
    make_estimator : callable
        Returns the classifier. It is called with the items and their features, and may scale them.
    stop : StoppingRule, default=None
        Rule that decides when to stop.
    scale : bool, default=True
        Whether to standardise numeric columns if the items are rows of a table.
    verbose : int, default=0
        Whether to show progress while features are computed.
    report : callable, default=None
        Called with messages for the user.
    """
    assert settings.goal in GOALS
    assert settings.strategy in STRATEGIES
    items, known = read_items(request, labels)
    for note in items.notes if report is not None else ():
        report(f"{items.name}: {note}")
    with kept_if_used(Path(request.store)), contextlib.ExitStack() as undone:
        store = open_store(request, items)
        undone.callback(store.close)
        settings = settled(store, items, settings, known)
        missing = request.columns.missing
        features = make_features(items, request.features, verbose, scale=scale, missing=missing)
        estimator = make_estimator(items, features)
        if report is not None:
            noun = "item" if len(items) == 1 else "items"
            report(f"{items.name}: {len(items):,} {noun}, {features.origin}")
        session = Session(
            items, features.X, store, estimator=estimator, settings=settings, stop=stop
        )
        undone.pop_all()
    return session, features
