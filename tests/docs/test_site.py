"""The site is whole: every public name, every page and every example has its place."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

import marginwise.label
from tests.docs.test_docstrings import CATALOGUES, MODULES, OPEN, ROOT, public_names

DOCS = ROOT / "docs"
PAGES = sorted(
    path.relative_to(DOCS)
    for path in DOCS.rglob("*.md")
    if not {"auto_examples", "generated"} & set(path.parts)
)
TOCTREE = re.compile(r"^(:{3,}|`{3,})\{toctree\}\n(.*?)^\1$", re.MULTILINE | re.DOTALL)
SUMMARY = re.compile(r"currentmodule:: (\S+)\n\n.. autosummary::\n(?:   :.*\n)+\n((?:   \w+\n)+)")


def script(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def entries(page: Path) -> set[str]:
    """Return the pages that the tables of contents of a page list."""
    found: set[str] = set()
    for _, body in TOCTREE.findall((DOCS / page).read_text(encoding="utf-8")):
        for line in body.splitlines():
            name = line.strip()
            if not name or name.startswith(":"):
                continue
            if "*" in name:
                others = (DOCS / page.parent).glob(f"{name}.md")
                found |= {other.relative_to(DOCS).as_posix() for other in others}
            else:
                found.add((page.parent / f"{name}.md").as_posix())
    return found


def listed() -> dict[str, set[str]]:
    """Return the names in the API reference, by module."""
    found: dict[str, set[str]] = {}
    text = (DOCS / "api" / "index.md").read_text(encoding="utf-8")
    for module, names in SUMMARY.findall(text):
        found.setdefault(module, set()).update(names.split())
    return found


def test_every_page_is_in_a_table_of_contents() -> None:
    reached = set().union(*(entries(page) for page in PAGES))
    assert {page.as_posix() for page in PAGES} - {"index.md"} <= reached


def test_tables_of_contents_list_pages_that_exist() -> None:
    generated = {"auto_examples/index.md"}
    reached = set().union(*(entries(page) for page in PAGES)) - generated
    assert [name for name in sorted(reached) if not (DOCS / name).is_file()] == []


@pytest.mark.parametrize(
    "module",
    [module for module in MODULES if module in CATALOGUES or module.__name__ in OPEN],
    ids=lambda module: module.__name__,
)
def test_public_names_are_in_the_reference(module: ModuleType) -> None:
    found = listed()
    elsewhere = set().union(*found.values())
    names = set(public_names(module))
    if module.__name__ in found:
        assert names - found[module.__name__] <= elsewhere
    assert names <= elsewhere


def test_the_names_of_the_store_of_labels_are_in_the_reference() -> None:
    names = {name for name in vars(marginwise.label) if name[0].isupper() and not name.isupper()}
    assert names == listed()["marginwise.label"]


def test_the_reference_lists_names_that_exist() -> None:
    for module, names in listed().items():
        there = importlib.import_module(module)
        assert [name for name in names if not hasattr(there, name)] == []


def test_the_version_is_that_of_the_package() -> None:
    text = (DOCS / "conf.py").read_text(encoding="utf-8")
    assert 'release = version = importlib.metadata.version("marginwise")' in text
    assert importlib.metadata.version("marginwise")


# -- the gallery -----------------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.stem)
def test_examples_have_a_place_and_a_title(path: Path) -> None:
    gallery = script("docs/_ext/gallery.py")
    assert path.name in gallery.NAMES
    title, line = path.read_text(encoding="utf-8").splitlines()[1:3]
    assert line == "=" * len(title)
    shown = gallery.SHOWN.search(" ".join(path.read_text(encoding="utf-8").split()))
    assert shown is None or shown[1] == path.name


def test_examples_run_with_the_arguments_that_they_name(tmp_path: Path) -> None:
    gallery = script("docs/_ext/gallery.py")
    example = tmp_path / "one.py"
    example.write_text('"""Title.\n\nThis page shows ``python examples/one.py --rows\n3``.\n"""\n')
    assert gallery.arguments({}, {"src_file": str(example)}) == ["--rows", "3"]
    example.write_text('"""Title."""\n')
    assert gallery.arguments({}, {"src_file": str(example)}) == []


# -- the parts that are made by scripts ------------------------------------------------------------


def test_the_picture_of_the_house_is_current() -> None:
    house = script("docs/make_house.py")
    assert house.picture() == house.PICTURE.read_text(encoding="utf-8"), "run docs/make_house.py"


@pytest.mark.parametrize("path", sorted((DOCS / "inventories").glob("*.inv")), ids=lambda p: p.stem)
def test_inventories_can_be_read(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "# Sphinx inventory version 1"
    assert all(len(line.split()) == 3 for line in lines[3:])
    assert len({line.split()[0] for line in lines[3:]}) == len(lines) - 3


def test_links_to_other_files_lead_to_the_site_or_to_the_source(tmp_path: Path) -> None:
    pytest.importorskip("sphinx")
    links = script("docs/_ext/repository_links.py")
    text = (
        "[a](../../examples/demo.py) [b](../../references.bib) [c](../../CONTRIBUTING.md#words) "
        "[d](large.md) [e](https://example.org)\n```\n[f](../../Makefile)\n```\n"
    )
    found = links.translated(text, "guide/data", DOCS, "https://source", DOCS / "guide")
    assert found == (
        "[a](../auto_examples/demo.rst) [b](https://source/blob/main/references.bib) "
        "[c](../contributing/index.md#words) [d](large.md) [e](https://example.org)\n"
        "```\n[f](../../Makefile)\n```\n"
    )


def test_formulas_are_read_as_tex_reads_them() -> None:
    pytest.importorskip("sphinx")
    mathml = script("docs/_ext/mathml.py").mathml
    half = re.sub(r"\s", "", mathml(r"\tfrac12 \lVert w \rVert^2"))
    assert "<mn>1</mn><mn>2</mn></mfrac>" in half
    assert half.count('<mostretchy="false">‖</mo>') == 2, "norms do not grow with the formula"
    assert "<mn>1</mn><mi>l</mi></mfrac>" in re.sub(r"\s", "", mathml(r"\tfrac1l x"))
    assert "<mi>a</mi><mi>b</mi></mfrac>" in re.sub(r"\s", "", mathml(r"\frac{a}{b}"))
    assert re.sub(r"\s", "", mathml(r"\{+1, -1\}")).count('stretchy="false"') == 2
    assert 'stretchy="true"' not in mathml(r"\{x\}")
