"""`info`, `forget`, `export` and `import`: commands on model files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from marginwise.cli.contents import contents_of
from marginwise.cli.group import main
from marginwise.cli.labelled import is_store
from marginwise.cli.labels import describe_store
from marginwise.cli.options import force_option
from marginwise.cli.output import Console, check_free, save_model, with_console, write_blocks
from marginwise.cli.reading import Layout, layout_options, lines_of, load_model, placed
from marginwise.cli.training import described

FORMATS = {
    ".onnx": "onnx",
    ".model": "libsvm",
    ".libsvm": "libsvm",
    ".h": "c",
    ".c": "c",
    ".json": "json",
}


@main.command(example=["marginwise info model.mwz", "marginwise info train.csv --json"])
@click.argument("file")
@layout_options
@with_console
def info(file: str, console: Console, layout: Layout) -> None:
    """Describe FILE: a model, a checkpoint, data or a label store."""
    path = placed(file)
    if is_store(path):
        describe_store(path, console)
        return
    report = contents_of(path, layout) | {"file": file}
    console.give(report, (f"{key}: {value}" for key, value in report.items()))


@main.command(
    example=[
        "marginwise train customers.csv exact.mwz --estimator ExactSVC --groups customer",
        "marginwise forget exact.mwz --groups gone.txt --receipt receipt.json",
    ]
)
@click.argument("model")
@click.option("--groups", metavar="FILE", help="File with the groups to remove, one per line.")
@click.option(
    "--ids", metavar="FILE", help=("File with the ids of the rows to remove, one per line.")
)
@click.option("--log", metavar="FILE", help="Removal log.  [default: MODEL.removals.jsonl]")
@click.option("--receipt", metavar="OUT", help="JSON file to write the receipt to.")
@click.option(
    "--compare",
    is_flag=True,
    help=("Compare with a model fitted from scratch to the remaining rows."),
)
@click.option(
    "--allow-local",
    is_flag=True,
    help=(
        "Remove rows even if the kernel is not positive semi-definite, so that their influence may "
        "remain."
    ),
)
@click.option("--salt", help="Text that is hashed with each id and group.  [default: random]")
@force_option
@with_console
def forget(model: str, receipt: str | None, force: bool, console: Console, **given: Any) -> None:
    """Remove rows from MODEL exactly and print a receipt.

    The resulting model is the one that was never trained on these rows. MODEL must be an exact
    estimator whose kernel is positive semi-definite; the file is replaced, and the removal is
    logged next to it. Files of ids or groups have one entry per line; - is standard input.
    """
    from marginwise.removal import remove_from_file

    check_free(receipt, force)
    which = [name for name in ("ids", "groups") if given[name] is not None]
    if len(which) != 1:
        raise click.UsageError("pass either --groups FILE or --ids FILE.")
    given[which[0]] = lines_of(given[which[0]])
    text = remove_from_file(model, as_text=True, **given).to_json()
    if receipt is not None:
        write_blocks(receipt, [f"{text}\n"])
    console.give(json.loads(text), text)


@main.command(
    example=[
        "marginwise train digits.svm digits.mwz -c 10 -g 0.5",
        "marginwise export digits.mwz digits.model",
    ]
)
@click.argument("model")
@click.argument("out")
@click.option(
    "--format",
    "kind",
    type=click.Choice(["onnx", "libsvm", "c", "json"]),
    help="Format of OUT.  [default: determined by the suffix]",
)
@force_option
@with_console
def export(model: str, out: str, kind: str | None, force: bool, console: Console) -> None:
    """Export MODEL to a format of other programs.

    onnx writes ONNX and requires marginwise[onnx]; libsvm writes the text format of LIBSVM; c
    writes a C header without dependencies; json writes the support vectors. The suffixes are .onnx,
    .model or .libsvm, .h or .c, and .json.
    """
    from marginwise import exchange

    check_free(out, force)
    kind = kind or FORMATS.get(Path(out).suffix.lower())
    if kind is None:
        raise click.UsageError(
            f"the suffix of {out} is none of {', '.join(FORMATS)}: pass --format."
        )
    writers: dict[str, Any] = {
        "onnx": exchange.to_onnx,
        "libsvm": exchange.to_libsvm,
        "c": exchange.to_c,
        "json": exchange.to_json,
    }
    writers[kind](load_model(model), out)
    console.give({"model": model, "out": out, "format": kind}, f"{out}: {kind}")


@main.command(
    "import",
    example=[
        "marginwise import digits.model imported.mwz",
        "marginwise predict imported.mwz digits.svm",
    ],
)
@click.argument("file")
@click.argument("model")
@click.option("--C", "-c", "C", type=float, help="Value of C that the model was trained with.")
@click.option("--features", "n_features", type=click.IntRange(1), help="Number of features.")
@force_option
@with_console
def import_(file: str, model: str, force: bool, console: Console, **given: Any) -> None:
    """Import a LIBSVM model from FILE and write it to MODEL."""
    from marginwise.exchange import from_libsvm

    console.check_output(model)
    check_free(model, force)
    fitted = from_libsvm(placed(file), **given)
    save_model(fitted, model)
    report = {"model": model, **described(fitted)}
    console.give_beside(
        model,
        report,
        f"{model}: {report['estimator']}, {report['support_vectors']:,} support vectors",
    )
