"""The token that users set for programs that connect to the server."""

from __future__ import annotations

import pytest

from marginwise.cli.group import Refused
from marginwise.cli.label import token


def test_the_token_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARGINWISE_TOKEN", "0123456789abcdef")
    assert token() == "0123456789abcdef"


@pytest.mark.parametrize("given", [None, ""])
def test_without_one_it_is_random(monkeypatch: pytest.MonkeyPatch, given: str | None) -> None:
    monkeypatch.delenv("MARGINWISE_TOKEN", raising=False)
    if given is not None:
        monkeypatch.setenv("MARGINWISE_TOKEN", given)
    assert token() != token()
    assert len(token()) >= 24


@pytest.mark.parametrize("given", ["short", "a line\nand another one", "ünprintable in headers"])
def test_weak_tokens_are_refused(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("MARGINWISE_TOKEN", given)
    with pytest.raises(Refused, match="MARGINWISE_TOKEN must have 16"):
        token()
