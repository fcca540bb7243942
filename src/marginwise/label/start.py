"""Starting a session: items, features, store and settings put together."""

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
KEPT = ("goal", "seed", "holdout", "overlap")  # settings of a store, which do not change


def read_items(request: Request, labels: list[str] | None) -> tuple[Items, list[str] | None]:
    """Return the items of a request, and the labels that users named, checked."""
    items = open_items(request.items, request.columns, request.items_file)
    return items, checked_labels(items, labels) if labels else None


def open_store(request: Request, items: Items) -> LabelStore:
    """Open the store of a request, which must be one of these items."""
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
    """Return the settings of a session: those that the store has, or else those that are wanted.

    Parameters
    ----------
    store : LabelStore
        The store.
    items : Items
        The items.
    wanted : Settings
        Settings as the user gave them; its labels are not used.
    labels : list of str or None
        Labels that users named; None for those of the store, or else of the items.
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
    """Return a session, with its features.

    Parameters
    ----------
    request : Request
        What to label.
    settings : Settings
        How to ask; its labels are not used.
    labels : list of str or None
        All labels; None for those of the items or of the store.
    make_estimator : callable
        Returns what learns; called with the items and their features, which it may scale.
    stop : StoppingRule, default=None
        When to stop.
    scale : bool, default=True
        Whether columns of numbers are standardised, where items are rows of tables.
    verbose : int, default=0
        Whether to show progress while features are computed.
    report : callable, default=None
        Called with sentences for the user.
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
        features = make_features(items, request.features, verbose, scale=scale)
        estimator = make_estimator(items, features)
        if report is not None:
            noun = "item" if len(items) == 1 else "items"
            report(f"{items.name}: {len(items):,} {noun}, {features.origin}")
        session = Session(
            items, features.X, store, estimator=estimator, settings=settings, stop=stop
        )
        undone.pop_all()
    return session, features
