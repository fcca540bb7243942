"""The size of the package, the number of its names, and the files that a call passes through.

Each limit is the value of today. A change that makes a value smaller lowers its limit. A new
capability may raise a limit; the commit says by how much and why.

    python -m tests.test_house      print all counts
    python -m tests.walks           print all walks
"""

from __future__ import annotations

import ast
import inspect
import io
import subprocess
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import marginwise

PACKAGE = Path(marginwise.__file__).parent
ROOT = Path(__file__).parents[1]
MODEL = {"_model", "_engine"}  # the packages that know the core and the arrays of a state
ARRAYS = {"rank", "trail", "inherited"}  # arrays of a state, whose names nothing else has
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}

LIMITS = {
    "lines": 52_108,
    "lines of code": 32_181,
    "modules": 273,
    "classes": 321,
    "class names in two modules": 17,
    "module names twice": 24,
    "constants with several values": 58,
    "longest module": 705,
    "modules that know .native or ._engine": 33,
    "modules that spell arrays of a state": 16,
    "private names of other packages": 124,
    "own classes in the longest MRO": 14,
    "own classes in the longest MRO on Dask": 18,
}
EDGES = {
    "fit": 20,
    "fit-active": 20,
    "partial_fit": 18,
    "predict": 8,
    "save": 30,
    "load": 42,
    "forget": 10,
    "learn_from": 78,
    "train": 224,
    "train-tuned": 284,
    "predict-file": 158,
    "read-csv": 84,
    "learn-csv": 140,
    "removal": 100,
    "teach": 46,
    "undo": 22,
    "load-learner": 106,
    "fit-stop": 33,
    "tune": 66,
    "label-answer": 106,
    "label-undo": 56,
}
FILES = {"label-answer": 30, "label-undo": 20}

# -- counting --------------------------------------------------------------------------------------


@cache
def sources() -> dict[Path, str]:
    """Return the modules of the package and their text."""
    return {
        path.relative_to(PACKAGE): path.read_text(encoding="utf-8")
        for path in sorted(PACKAGE.rglob("*.py"))
    }


@cache
def trees() -> dict[Path, ast.Module]:
    return {path: ast.parse(text) for path, text in sources().items()}


def package_of(path: Path) -> str:
    """Return the package, or the module at the top, to which a module belongs."""
    return path.parts[0] if len(path.parts) > 1 else path.stem


def code_lines(text: str, tree: ast.Module) -> int:
    """Count the lines with code: without comments, docstrings and empty lines."""
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in LAYOUT:
            found.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree):
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        if documented and ast.get_docstring(node, clean=False):
            first = node.body[0]
            found.difference_update(range(first.lineno, (first.end_lineno or 0) + 1))
    return len(found)


def nodes(kind: type) -> Iterator[tuple[Path, Any]]:
    """Yield the nodes of a kind, with their modules."""
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, kind):
                yield path, node


def homes_of_classes() -> dict[str, set[Path]]:
    found = defaultdict(set)
    for path, node in nodes(ast.ClassDef):
        found[node.name].add(path)
    return found


def homes_of_modules() -> dict[str, set[Path]]:
    found = defaultdict(set)
    for path in sources():
        if path.stem != "__init__":
            found[path.stem].add(path)
    return found


def values_of_constants() -> dict[str, set[str]]:
    """Return the values of each constant that a module defines by a literal or by arithmetic."""
    plain = ast.Constant | ast.BinOp | ast.UnaryOp | ast.Tuple
    found = defaultdict(set)
    for tree in trees().values():
        for node in tree.body:
            if isinstance(node, ast.Assign) and isinstance(node.value, plain):
                for target in node.targets:
                    if isinstance(target, ast.Name) and target.id.isupper():
                        found[target.id].add(ast.unparse(node.value))
    return found


def foreign_private_names() -> int:
    """Count the uses of private attributes that another package defines."""
    homes = defaultdict(set)
    for path, node in nodes(ast.FunctionDef):
        homes[node.name].add(package_of(path))
    for path, node in nodes(ast.Attribute):
        if isinstance(node.ctx, ast.Store):
            homes[node.attr].add(package_of(path))
    found = 0
    for path, node in nodes(ast.Attribute):
        private = node.attr.startswith("_") and not node.attr.startswith("__")
        own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
        found += private and not own and package_of(path) not in homes[node.attr]
    return found


def own_classes(names: list[Any]) -> int:
    """Return the number of classes of this package in the longest MRO."""
    orders = (inspect.getmro(kind) for kind in names if inspect.isclass(kind))
    return max(sum(kind.__module__.startswith("marginwise") for kind in mro) for mro in orders)


def counts() -> dict[str, int]:
    lengths = [text.count("\n") for text in sources().values()]
    classes, names = homes_of_classes(), homes_of_modules()
    inside = {
        path
        for path, node in nodes(ast.Attribute)
        if node.attr in ("native", "_engine") and package_of(path) not in MODEL | {"_training"}
    }
    spelled = {
        path
        for path, node in nodes(ast.Constant)
        if node.value in ARRAYS and package_of(path) not in MODEL
    }
    return {
        "lines": sum(lengths),
        "lines of code": sum(code_lines(sources()[path], tree) for path, tree in trees().items()),
        "modules": len(lengths),
        "classes": sum(map(len, classes.values())),
        "class names in two modules": sum(len(homes) > 1 for homes in classes.values()),
        "module names twice": sum(len(homes) > 1 for homes in names.values()),
        "constants with several values": sum(len(v) > 1 for v in values_of_constants().values()),
        "longest module": max(lengths),
        "modules that know .native or ._engine": len(inside),
        "modules that spell arrays of a state": len(spelled),
        "private names of other packages": foreign_private_names(),
        "own classes in the longest MRO": own_classes(
            [getattr(marginwise, name) for name in marginwise.__all__]
        ),
    }


# -- limits ----------------------------------------------------------------------------------------


def test_counts_stay_within_their_limits() -> None:
    exceeded = {
        name: f"{found:,}, at most {LIMITS[name]:,}"
        for name, found in counts().items()
        if found > LIMITS[name]
    }
    assert not exceeded, f"reduce {exceeded}"


def test_estimators_on_dask_stay_within_their_limit() -> None:
    pytest.importorskip("distributed")
    from marginwise.dask import DaskGapSVC, DaskOnlineSVC

    found = own_classes([DaskGapSVC, DaskOnlineSVC])
    assert found <= LIMITS["own classes in the longest MRO on Dask"]


def test_docstrings_and_comments_are_not_code() -> None:
    text = (
        '"""Module."""\n\n# why\ndef f():\n    """Return.\n\n    More.\n    """\n    return (\n1)\n'
    )
    assert code_lines(text, ast.parse(text)) == 3


def walked() -> dict[str, list[int]]:
    """Return the edges, files and switches of every walk, counted in a new process."""
    command = [sys.executable, "-W", "error", "-m", "tests.walks"]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = (line.split() for line in done.stdout.splitlines())
    return {line[0]: [int(word) for word in line[1:]] for line in lines if line[0] in EDGES}


def test_calls_pass_through_few_files() -> None:
    pytest.importorskip("pyarrow", reason="tables are read with pyarrow")
    found = walked()
    assert found.keys() == EDGES.keys()
    exceeded = {
        name: f"{edges} edges and {files} files; `python -m tests.walks {name}` prints the way"
        for name, (edges, files, _) in found.items()
        if not 0 < edges <= EDGES[name] or files > FILES.get(name, files)
    }
    assert not exceeded, f"shorten {exceeded}"


if __name__ == "__main__":
    for name, found in counts().items():
        print(f"{name:42} {found:7,} {LIMITS[name]:7,}")
