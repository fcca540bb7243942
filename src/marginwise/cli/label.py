"""`label`: a page for labelling items, and a model that learns from each answer."""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import os
import webbrowser
from dataclasses import dataclass, replace
from typing import Any

import click
import numpy as np

from marginwise.active import STRATEGIES
from marginwise.cli.group import Refused, main
from marginwise.cli.options import packed
from marginwise.cli.output import Console, with_console
from marginwise.cli.reading import MISSING
from marginwise.cli.recipes import CLASSIFIERS, Recipe, recipe_options
from marginwise.cli.scaling import ranges_of
from marginwise.label import label_studio
from marginwise.label.features import Features
from marginwise.label.item_files import Columns
from marginwise.label.items import Items
from marginwise.label.queue import Settings
from marginwise.label.security import Address, App
from marginwise.label.server import fetch, listening, make_app, new_token, serve
from marginwise.label.session import FILE, Session
from marginwise.label.start import GOALS, Request, start

TEXT_DEFAULTS = {"C": 10.0, "gamma": 1.0}  # for TF-IDF features, whose rows have length 1
OTHER_DEFAULTS = {"C": 10.0}
SHARE = click.FloatRange(0, 0.5)
LEAST_TOKEN = 16  # minimum length of a token from the environment


@dataclass(frozen=True)
class Service:
    """Settings of the server.

    Parameters
    ----------
    host, port
        Address to listen on.
    browse : bool
        Whether to open a browser.
    path : str or None
        Path whose response is printed, without serving.
    label_studio : bool
        Whether to serve as an ML backend of Label Studio as well.
    """

    host: str
    port: int
    browse: bool
    path: str | None
    label_studio: bool


def _packed_request(**given: Any) -> Request:
    names = [name for text in given.pop("text_column") for name in text.split(",") if name]
    label, image, missing = (given.pop(key) for key in ("label_column", "image_column", "missing"))
    return Request("", Columns(label, tuple(names), image, missing), **given)


def _packed_settings(labels: str | None, annotator: str | None, **given: Any) -> Any:
    named = None if labels is None else [name.strip() for name in labels.split(",")]
    who = _user() if annotator is None else annotator.strip()
    if who in ("", FILE):
        raise click.UsageError(
            f"--annotator is {annotator!r}; expected a name other than {FILE!r}, under which the "
            "labels of --label-column are stored."
        )
    return named, {"annotator": who, **given}


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # no user name, as in some containers
        return "me"


request_options = packed(
    "request",
    _packed_request,
    [
        click.Option(
            ["--store"], metavar="FILE", default="labels.db", show_default=True,
            help="Label store. If the file exists, labelling continues.",
        ),
        click.Option(
            ["--text-column"], metavar="COLUMNS", multiple=True,
            help="Text column, or several columns separated by commas, which are joined.  "
                "[default: columns that look like text]",
        ),
        click.Option(
            ["--image-column"], metavar="COLUMN",
            help="Column with image paths, relative to the folder of ITEMS.",
        ),
        click.Option(
            ["--label-column"], metavar="COLUMN",
            help="Column with existing labels, which the model learns first. For svmlight and "
                "array files, any name selects their labels.",
        ),
        MISSING,
        click.Option(
            ["--items-file"], metavar="FILE",
            help="Table or folder to show if ITEMS contains only features, in the same order.",
        ),
        click.Option(
            ["--features"], metavar="MODULE:FUNCTION",
            help="Function that receives the list of items and returns an array of features, such "
            "as embeddings.",
        ),
    ],
)  # fmt: skip
session_options = packed(
    "asking",
    _packed_settings,
    [
        click.Option(
            ["--labels"], metavar="NAMES",
            help="All labels, separated by commas, in the order of their shortcut keys.  [default: "
                "labels of the store or of --label-column]",
        ),
        click.Option(
            ["--annotator"], metavar="NAME",
            help=(
                "Name of the annotator. Several annotators can share one store.  [default: user "
                "name]"
            ),
        ),
        click.Option(
            ["--goal"], type=click.Choice(list(GOALS)), default="learn", show_default=True,
            help="learn asks for the most informative labels; find shows the most likely items of "
                "the first label first and estimates how many remain.",
        ),
        click.Option(
            ["--strategy"], type=click.Choice(list(STRATEGIES)), default="active",
            show_default=True, help="Query strategy for --goal learn.",
        ),
        click.Option(
            ["--holdout"], type=SHARE, default=0.0, show_default=True,
            help="Fraction of the questions that measure the error and are not learned.",
        ),
        click.Option(
            ["--overlap"], type=SHARE, default=0.0, show_default=True,
            help=(
                "Fraction of the questions that are shown to all annotators to measure agreement."
            ),
        ),
    ],
)  # fmt: skip
service_options = packed(
    "service",
    Service,
    [
        click.Option(
            ["--host"], default="127.0.0.1", show_default=True,
            help=(
                "Address to listen on. Addresses other than the default can be reached from the "
                "network."
            ),
        ),
        click.Option(
            ["--port"], type=click.IntRange(0, 65535), default=0, show_default=True,
            help="Port to listen on; 0 selects a free port.",
        ),
        click.Option(
            ["--open/--no-open", "browse"], default=True,
            help="Whether to open the page in a browser.  [default: open]",
        ),
        click.Option(
            ["--get", "path"], metavar="PATH",
            help="Print the response to a GET request, such as /api/state, and exit.",
        ),
        click.Option(
            ["--label-studio"], is_flag=True,
            help="Also serve as an ML backend of Label Studio. The password is the token, which "
                "MARGINWISE_TOKEN sets.",
        ),
    ],
)  # fmt: skip


@main.command(
    example=[
        "marginwise label messages.csv --labels ham,spam --text-column text",
        "marginwise label photos/ --labels cat,dog,neither --store pets.db",
        "marginwise label studies.csv --labels relevant,other --goal find",
    ]
)
@click.argument("items")
@request_options
@session_options
@service_options
@recipe_options(CLASSIFIERS, without=("pool_size", "selection", "stop"))
@with_console
def label(
    items: str,
    request: Request,
    asking: Any,
    service: Service,
    recipe: Recipe,
    console: Console,
) -> None:
    """Label ITEMS in the browser while a model learns from each answer.

    ITEMS is a CSV, JSON Lines, Parquet, svmlight, .npy or .npz file, or a folder of text files or
    images. Answers are stored immediately. To resume, run the same command again.
    """
    labels, given = asking
    session, _ = start(
        replace(request, items=items),
        Settings((), seed=recipe.seed, **given),
        labels,
        lambda items, features: estimator_for(recipe, items, scaled(recipe, features)),
        scale=recipe.scale != "none",
        verbose=console.verbose,
        report=console.say,
    )
    try:
        with contextlib.closing(session):
            run(session, service, console)
    except KeyboardInterrupt:
        console.say("stopped; all answers are stored, and the same command continues")
        raise


def scaled(recipe: Recipe, features: Features) -> Features:
    """Scale given or user-computed features in the same way as `train`; return the features."""
    if not features.is_given:
        return features
    fixed = recipe.scale == "auto" and not isinstance(recipe.parameters.get("gamma", "scale"), str)
    scaler = ranges_of([features.X]).choose("none" if fixed else recipe.scale).scaler
    if scaler is not None:
        features.X = scaler.transform(features.X).astype(np.float32)
        features.steps = [*features.steps, ("scaler", scaler)]
    return features


def estimator_for(recipe: Recipe, items: Items, features: Features) -> Any:
    """Return the estimator, with defaults that depend on the kind of the items."""
    usual: dict[str, Any] = {}
    if recipe.estimator == "OnlineSVC":
        text = items.kind == "text" and not features.is_given
        usual = TEXT_DEFAULTS if text else OTHER_DEFAULTS
    more = {key: value for key, value in usual.items() if key not in recipe.parameters}
    return recipe.make(Console(quiet=True), **more)


def run(session: Session, service: Service, console: Console) -> None:
    """Serve the page of a session until the command is interrupted, or print one response."""
    if service.path is not None:
        address = Address("127.0.0.1", 80, new_token())
        app = app_for(session, address, service)
        status, body = asyncio.run(fetch(app, address, service.path))
        if status >= 400:
            raise Refused(f"{service.path}: {status} {body.decode(errors='replace')}")
        click.echo(body, nl=False)
        return
    with listening(service.host, service.port) as opened:
        address = Address(service.host, opened.getsockname()[1], token())
        console.say(f"answers are stored in {session.store.path}; press Ctrl-C to stop")

        def ready() -> None:
            console.give({"url": address.url, "store": str(session.store.path)}, address.url)
            if service.browse:
                webbrowser.open(address.url)

        serve(app_for(session, address, service), opened, ready)


def app_for(session: Session, address: Address, service: Service) -> App:
    """Return the application, with the routes of the ML backend if requested."""
    more = (label_studio.routes(session), label_studio.BODIES) if service.label_studio else ()
    return make_app(session, address, *more)


def token() -> str:
    """Return the token from the environment, or a random token."""
    given = os.environ.get("MARGINWISE_TOKEN", "")
    if given and (len(given) < LEAST_TOKEN or not given.isascii() or not given.isprintable()):
        raise Refused(
            f"MARGINWISE_TOKEN must have {LEAST_TOKEN} or more printable ASCII characters, "
            "such as python -c 'import secrets; print(secrets.token_urlsafe(24))' prints."
        )
    return given or new_token()
