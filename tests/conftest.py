"""Seeds are explicit: one by default, 0 to 99 with MARGINWISE_TEST_SEED=all, or a given one."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile(
    "marginwise", deadline=None, derandomize=True, database=None, max_examples=25
)
settings.load_profile("marginwise")

FOLDERS = ("browser", "docs", "oracle", "property", "stress")  # each is a marker, too


@pytest.hookimpl(tryfirst=True)  # before tests are deselected by their markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    tests = Path(__file__).parent
    for item in items:
        folder = item.path.relative_to(tests).parts[0]
        if folder in FOLDERS:
            item.add_marker(folder)


def _seeds() -> list[int]:
    wanted = os.environ.get("MARGINWISE_TEST_SEED", "0")
    return list(range(100)) if wanted == "all" else [int(wanted)]


@pytest.fixture(scope="session", params=_seeds(), ids="seed{}".format)
def seed(request: pytest.FixtureRequest) -> int:
    return request.param
