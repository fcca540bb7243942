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
from numpydoc.docscrape import NumpyDocString

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


def parsed(thing: Any) -> NumpyDocString:
    return NumpyDocString(inspect.getdoc(thing) or "")


def parameters(thing: Any) -> dict[str, inspect.Parameter]:
    """What a signature takes, by name, with the stars of `*args` and `**kwargs`."""
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    given = inspect.signature(thing).parameters.values()
    return {stars.get(p.kind, "") + p.name: p for p in given if p.name not in ("self", "cls")}


def methods(thing: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties that this project wrote."""
    for name, member in inspect.getmembers_static(thing):
        function = member.fget if isinstance(member, property) else member
        function = getattr(function, "__func__", function)
        module = getattr(function, "__module__", "") or ""
        if name.startswith("_") or not module.startswith("marginwise") or not callable(function):
            continue
        yield name, member if isinstance(member, property) else function


def is_error(thing: Any) -> bool:
    return isinstance(thing, type) and issubclass(thing, Exception)


def faults(thing: Any) -> Iterator[str]:
    """What a docstring lacks of numpydoc's form, as scikit-learn writes it."""
    doc = parsed(thing)
    if len(doc["Summary"]) != 1 or not doc["Summary"][0].endswith("."):
        yield f"the summary must be one line that ends in a period: {doc['Summary']}"
    if isinstance(thing, property) or is_error(thing):
        return
    if list(parameters(thing)) != [item.name for item in doc["Parameters"]]:
        yield f"{[item.name for item in doc['Parameters']]} are documented"
        return
    for item, parameter in zip(doc["Parameters"], parameters(thing).values(), strict=True):
        yield from parameter_faults(item, parameter.default)
    if isinstance(thing, type):
        yield from (f"no section {name}" for name in ("See Also", "Examples") if not doc[name])
    elif inspect.signature(thing).return_annotation != "None" and not (
        doc["Returns"] and all(item.type and item.desc for item in doc["Returns"])
    ):
        yield "what is returned has no type or no description"


def parameter_faults(item: Any, default: Any) -> Iterator[str]:
    if len(" ".join(item.desc).split()) < 2:
        yield f"{item.name} is hardly described"
    kind, stated, value = item.type.partition("default=")
    if not kind:
        yield f"{item.name} has no type"
    if bool(stated) != (default is not inspect.Parameter.empty):
        yield f"{item.name} states a default and has none, or the reverse"
    elif stated and ast.literal_eval(value) != default:
        yield f"{item.name} states the default {value} instead of {default!r}"


@pytest.mark.parametrize("name", PUBLIC)
def test_docstrings_have_the_form_of_numpydoc(name: str) -> None:
    assert not list(faults(PUBLIC[name]))


@pytest.mark.parametrize("name", [name for name in PUBLIC if isinstance(PUBLIC[name], type)])
def test_docstrings_of_methods_have_the_form_of_numpydoc(name: str) -> None:
    found = {method: list(faults(function)) for method, function in methods(PUBLIC[name])}
    assert not {method: lacking for method, lacking in found.items() if lacking}


def test_the_checker_finds_what_is_missing() -> None:
    def wrong(a: int, b: int = 2, c: str = "x") -> int:
        """Lack things.

        Parameters
        ----------
        a
            First of them.
        b : int, default=3
            Second of them.
        c : str
            Third of them.
        """

    assert [fault.split()[0] for fault in faults(wrong)] == ["a", "b", "c", "what"]


def described(thing: Any, parameter: str) -> str:
    """Type and description of a parameter."""
    (item,) = [item for item in parsed(thing)["Parameters"] if item.name == parameter]
    return "\n".join([item.type, *item.desc])


@pytest.mark.parametrize("name", ESTIMATORS)
def test_options_in_the_rules_are_documented(name: str) -> None:
    """An option that is accepted and not documented, or the reverse, is a trap."""
    thing = ESTIMATORS[name]
    assert set(thing._rules) <= set(parameters(thing)), "a rule for a parameter that is not there"
    for parameter, (test, expected) in thing._rules.items():
        for option in re.findall(r"'(\w+)'", expected):
            assert f'"{option}"' in described(thing, parameter), f"{parameter}={option!r}"
            assert test(option), f"{name}: {parameter}={option!r} is offered and refused"


@pytest.mark.parametrize("name", ESTIMATORS)
def test_documented_options_are_accepted(name: str) -> None:
    thing = ESTIMATORS[name]
    for parameter, (test, _) in thing._rules.items():
        rejected = [
            option
            for option in re.findall(r'"(\w+)"', described(thing, parameter))
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
    text = (ROOT / "docs" / "api" / "index.md").read_text(encoding="utf-8")
    assert f"\n   {name}\n" in text, f"{name} is not in docs/api/index.md"


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
