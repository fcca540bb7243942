"""Every planted fault still applies: its line occurs once, and its tests exist."""

from __future__ import annotations

import re

import pytest

from tests.faults import ROOT, Fault, faults

if not (ROOT / "src").is_dir():
    pytest.skip("the sources of the package are not here", allow_module_level=True)


@pytest.mark.parametrize("fault", faults(), ids=lambda fault: fault.name)
def test_a_fault_applies(fault: Fault) -> None:
    text = (ROOT / fault.path).read_text(encoding="utf-8")
    changed = fault.applied(text)
    lines = zip(text.splitlines(), changed.splitlines(), strict=True)
    assert sum(before != after for before, after in lines) == 1
    if not fault.native:
        compile(changed, fault.file, "exec")
    assert fault.tests


@pytest.mark.parametrize("fault", faults(), ids=lambda fault: fault.name)
def test_its_tests_exist(fault: Fault) -> None:
    for test in fault.tests:
        file, _, function = test.partition("::")
        path = ROOT / (f"cpp/tests/{file}.cpp" if fault.native else file)
        assert path.is_file()
        assert re.search(rf"^def {function.partition('[')[0]}\b", path.read_text(), re.M) or (
            not function
        )


def test_names_are_unique() -> None:
    names = [fault.name for fault in faults()]
    assert len(set(names)) == len(names)


def test_a_line_that_changed_is_reported_with_its_fault() -> None:
    fault = Fault("sign", "a.py", "a + b", "a - b", ("tests/a.py",))
    assert fault.applied("return a + b\n") == "return a - b\n"
    for text in ("return b + a\n", "a + b\na + b\n"):
        with pytest.raises(ValueError, match=r"fault sign: .* expected one\. Adapt the fault"):
            fault.applied(text)
