"""The same rows give the same bits, release by release, until a change means otherwise."""

import sys

import pytest

from tests.golden.digests import compiler, differences, digests_of, stored

REFRESH = "if the change is meant, run `python tests/golden/digests.py --write` and say why"


def test_models_are_the_same_to_the_bit() -> None:
    built_by, expected = stored()
    if compiler() != built_by:
        pytest.skip(f"the digests are of a core built by {built_by}, not by {compiler()}")
    found = digests_of(sys.executable, "baseline")
    differ = differences(expected, found)
    assert not differ, f"{len(differ)} of {len(found)} models differ: {differ[:9]}; {REFRESH}"
