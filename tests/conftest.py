"""Seeds are explicit: one by default, 0 to 99 with MARGINWISE_TEST_SEED=all, or a given one."""

import os

import pytest
from hypothesis import settings

settings.register_profile(
    "marginwise", deadline=None, derandomize=True, database=None, max_examples=25
)
settings.load_profile("marginwise")


def _seeds() -> list[int]:
    wanted = os.environ.get("MARGINWISE_TEST_SEED", "0")
    return list(range(100)) if wanted == "all" else [int(wanted)]


@pytest.fixture(scope="session", params=_seeds(), ids="seed{}".format)
def seed(request: pytest.FixtureRequest) -> int:
    return request.param
