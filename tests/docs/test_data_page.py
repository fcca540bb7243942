"""The page of data sources: parameters, kinds of columns, and numbers are those of the code."""

from __future__ import annotations

import re

from marginwise._files.pipelines.tables import KINDS, UNUSED
from marginwise._training.sift import CHUNK
from marginwise.data import TableEncoder, arrow_file, csv_file, json_lines, profiles, text_file
from tests.docs.test_pages import ROOT, choices, described, section

PAGE = ROOT / "docs" / "guide" / "data.md"


def test_parameters_of_the_encoder_are_described_with_their_defaults() -> None:
    assert described(section("How columns become features", PAGE)) == choices(TableEncoder)


def test_every_kind_of_column_is_described() -> None:
    rows = re.findall(r'^\| `"(\w+)"` \|', section("How columns become features", PAGE), re.M)
    assert set(rows) == set(KINDS) - set(UNUSED)


def test_numbers_are_those_of_the_code() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert CHUNK == 16_384 == 4 * text_file.BLOCK_ROWS
    for words in ("windows of 16,384 rows (four blocks of 4096)", "up to 100,000 terms"):
        assert words in text
    assert profiles.MOST_TERMS == 100_000
    assert arrow_file.GROUP_BYTES == 64 * 2**20
    assert text.count("64 MB") == 2


def test_defaults_are_those_of_the_code() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert "the key `label`, `target`, `class` or `y`" in text
    assert json_lines.LABELS == ("label", "target", "class", "y")
    assert "with commas, semicolons, tabs or bars" in text
    assert csv_file.DELIMITERS == ",;\t|"
