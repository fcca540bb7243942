"""The interface of the native core changes only on purpose."""

import difflib
from pathlib import Path

from marginwise import _core

REFERENCE = Path(__file__).parents[1] / "golden" / "_core.pyi.ref"
REFRESH = "if the change is meant, run `make stubs` and commit tests/golden/_core.pyi.ref"


def test_stub_of_the_core_equals_its_reference() -> None:
    assert REFERENCE.is_file(), f"no reference for the stub of marginwise._core; {REFRESH}"
    built = Path(_core.__file__).with_name("_core.pyi").read_text(encoding="utf-8")
    reference = REFERENCE.read_text(encoding="utf-8")
    diff = difflib.unified_diff(
        reference.splitlines(), built.splitlines(), REFERENCE.name, "built", lineterm=""
    )
    assert built == reference, "\n".join([f"the core's interface changed; {REFRESH}", *diff])
