"""What is documented is what is there: parameters, options, examples, public names."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import marginwise

ROOT = Path(__file__).parents[2]
OPEN = ("marginwise.metrics", "marginwise.active.plot")  # users import from these themselves


def modules() -> Iterator[ModuleType]:
    yield marginwise
    for found in pkgutil.walk_packages(marginwise.__path__, "marginwise."):
        if not found.name.endswith(("._core", ".__main__")):
            yield importlib.import_module(found.name)


MODULES = list(modules())
CATALOGUES = [module for module in MODULES if hasattr(module, "__all__")]


def public_names(module: ModuleType) -> list[str]:
    """What a catalogue lists, or the functions and classes that an open module defines."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    return [
        name
        for name, thing in vars(module).items()
        if callable(thing) and not name.startswith("_") and thing.__module__ == module.__name__
    ]


NAMES = {
    name: getattr(module, name)
    for module in MODULES
    if module in CATALOGUES or module.__name__ in OPEN
    for name in public_names(module)
}
PUBLIC = {name: thing for name, thing in NAMES.items() if callable(thing)}
ESTIMATORS = {name: thing for name, thing in PUBLIC.items() if hasattr(thing, "_rules")}


def documented_parameters(thing: Any) -> list[str] | None:
    """The names under "Parameters" of a numpydoc docstring, or None if there is no such section."""
    text = inspect.getdoc(thing) or ""
    found = re.search(r"^Parameters\n-{3,}\n(.*?)(?=^\S[^\n]*\n-{3,}$|\Z)", text, re.M | re.S)
    return None if found is None else re.findall(r"^(\*{0,2}\w+)", found[1], re.M)


def parameters(thing: Any) -> list[str]:
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return [
        stars.get(p.kind, "") + p.name
        for p in inspect.signature(thing).parameters.values()
        if p.name not in ("self", "cls")
    ]


def methods(thing: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties that this project wrote."""
    for name, member in inspect.getmembers_static(thing):
        function = member.fget if isinstance(member, property) else member
        function = getattr(function, "__func__", function)
        module = getattr(function, "__module__", "") or ""
        if not name.startswith("_") and module.startswith("marginwise") and callable(function):
            yield name, function


def is_error(thing: Any) -> bool:
    return isinstance(thing, type) and issubclass(thing, Exception)


@pytest.mark.parametrize("name", PUBLIC)
def test_docstring_lists_the_parameters_of_the_signature(name: str) -> None:
    thing = PUBLIC[name]
    assert inspect.getdoc(thing), f"{name} has no docstring"
    if not is_error(thing):
        documented = documented_parameters(thing) or []
        assert documented == parameters(thing), f"{name}: documented against actual parameters"


@pytest.mark.parametrize("name", [name for name in PUBLIC if isinstance(PUBLIC[name], type)])
def test_methods_are_documented(name: str) -> None:
    for method, function in methods(PUBLIC[name]):
        assert inspect.getdoc(function), f"{name}.{method} has no docstring"
        documented = documented_parameters(function)
        if documented is not None:
            assert documented == parameters(function), f"{name}.{method}"


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_parameter_says_its_effect(name: str) -> None:
    text = inspect.getdoc(ESTIMATORS[name]) or ""
    for parameter in parameters(ESTIMATORS[name]):
        described = re.search(rf"^{parameter}\n    (.+)", text, re.M)
        assert described, f"{name}: {parameter} has no description"
        assert len(described[1].split()) >= 2, f"{name}: {parameter} is hardly described"


@pytest.mark.parametrize("name", ESTIMATORS)
def test_options_in_the_rules_are_documented(name: str) -> None:
    """An option that is accepted and not documented, or the reverse, is a trap."""
    thing = ESTIMATORS[name]
    text = inspect.getdoc(thing) or ""
    assert set(thing._rules) <= set(parameters(thing)), "a rule for a parameter that is not there"
    for parameter, (test, expected) in thing._rules.items():
        section = re.search(rf"^{parameter}\n((?:    .*\n?|\n)+)", text, re.M)
        assert section, f"{name}: {parameter} is not documented"
        for option in re.findall(r"'(\w+)'", expected):
            assert f'"{option}"' in section[1], f"{name}: {parameter}={option!r} is not documented"
            assert test(option), f"{name}: {parameter}={option!r} is offered and refused"


@pytest.mark.parametrize("name", ESTIMATORS)
def test_documented_options_are_accepted(name: str) -> None:
    thing = ESTIMATORS[name]
    text = inspect.getdoc(thing) or ""
    for parameter, (test, _) in thing._rules.items():
        section = re.search(rf"^{parameter}\n((?:    .*\n?|\n)+)", text, re.M)
        rejected = [
            option
            for option in re.findall(r'"(\w+)"', section[1] if section else "")
            if not test(option) and not any(rule(option) for rule, _ in thing._rules.values())
        ]
        assert not rejected, f"{name}: {parameter} documents {rejected}, which are refused"


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_examples_in_docstrings_run(module: ModuleType) -> None:
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    report: list[str] = []
    for case in doctest.DocTestFinder().find(module, module.__name__):
        runner.run(case, out=report.append)
    assert runner.failures == 0, "".join(report)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_has_an_example(name: str) -> None:
    examples = doctest.DocTestParser().get_examples(inspect.getdoc(ESTIMATORS[name]) or "")
    assert examples, f"{name} has no example"
    assert len(examples) <= 12, f"{name}: an example is to be read at a glance"


@pytest.mark.parametrize("name", sorted(NAMES))
def test_public_names_are_documented(name: str) -> None:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    assert re.search(rf"\b{re.escape(name)}\b", text), f"{name} is in neither README.md nor docs/"


def test_the_catalogue_names_only_what_is_there() -> None:
    for module in CATALOGUES:
        assert sorted(module.__all__) == sorted(set(module.__all__))
        for name in module.__all__:
            assert hasattr(module, name), f"{module.__name__}.__all__ names {name}"


def test_tests_draw_seeded_numbers_only() -> None:
    """A test that fails once in a hundred runs, and never again, helps nobody."""
    legacy = {"seed", "rand", "randn", "randint", "random", "normal", "permutation", "shuffle"}
    for path in sorted((ROOT / "tests").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func)
            where = f"{path.relative_to(ROOT)}:{node.lineno}"
            if called.endswith(("default_rng", "RandomState")):
                assert node.args or node.keywords, f"{where}: a generator without a seed"
            assert called not in {f"np.random.{name}" for name in legacy}, (
                f"{where}: global numbers"
            )
