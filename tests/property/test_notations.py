"""Numbers in strings: their notations, missing values among them, and what the encoder stores."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from marginwise import OnlineSVC, load, save
from marginwise.data import TableEncoder, open_source
from marginwise.data.notations import SIGNS, parse_notation, sign_of
from marginwise.data.parsing import TOKENS
from tests.oracle.test_data_oracle import dense

pa = pytest.importorskip("pyarrow")

READ = {
    "1234.5": (1234.5, None),
    "1,234.5": (1234.5, None),
    "1.234,5": (None, 1234.5),
    "1,234": (1234, 1.234),
    "1.234": (1.234, 1234),
    "1,234,567": (1234567, None),
    "1.234.567": (None, 1234567),
    "0,123": (None, 0.123),
    "1 234,5": (None, 1234.5),
    "1\u00a0234\u202f567": (1234567, 1234567),
    "1'234.50": (1234.5, None),
    "−5": (-5, -5),
    "+5": (5, 5),
    ".5": (0.5, None),
    "12.5%": (12.5, None),
    "12 %": (12, 12),
    "-$5": (-5, -5),
    "$-5": (-5, -5),
    "€1.234,50": (None, 1234.5),
    "USD 5": (5, 5),
    "2e-3": (0.002, 0.002),
    "12.03.2024": (None, None),
    "1,5,3": (None, None),
    "--5": (None, None),
    "-$-5": (None, None),
    "5 kg": (None, None),
    ".": (None, None),
    "1,23.4": (None, None),
}


@pytest.mark.parametrize("text", READ)
def test_readings_with_a_decimal_point_and_a_decimal_comma(text: str) -> None:
    for mark, expected in zip(".,", READ[text], strict=True):
        found = parse_notation(pa.array([None, text]), mark + sign_of(text))
        assert (found is None) == (expected is None)
        if found is not None:
            assert np.isnan(found[0])
            assert found[1] == expected


@given(
    numbers=st.lists(st.integers(-(10**8), 10**8), min_size=1, max_size=20),
    mark=st.sampled_from(".,"),
    sign=st.sampled_from(["", *SIGNS]),
    before=st.booleans(),
)
def test_any_number_is_read_as_it_was_written(
    numbers: list[int], mark: str, sign: str, before: bool
) -> None:
    other = ",."[mark == ","]
    texts = [f"{n / 100:,.2f}".replace(",", "x").replace(".", mark) for n in numbers]
    texts = [text.replace("x", other) for text in texts]
    texts = [f"{sign}{text}" if before else f"{text} {sign}".rstrip() for text in texts]
    found = parse_notation(pa.array(texts), mark + sign)
    np.testing.assert_allclose(found, np.array(numbers) / 100, rtol=1e-15)


# -- columns -------------------------------------------------------------------------------------


def encoded(*strings: Any, **parameters: Any) -> TableEncoder:
    """Fit an encoder to a column of values and a column of numbers, without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return TableEncoder(**parameters).fit({"a": list(strings), "n": np.arange(len(strings))})


CLEAR = {
    "plain": (["1.5", "2.5"], "", [1.5, 2.5]),
    "missing": (["1.5", "NA", " n/a", "?", "NULL", "2.5"], "", [1.5, 2.5]),
    "comma": (["1,5", "2", "1.234"], ",", [1.5, 2, 1234]),
    "thousands": (["1,234", "12", "1,234,567"], ".", [1234, 12, 1234567]),
    "point and thousands": (["1,234.5", "1,234"], ".", [1234.5, 1234]),
    "percent": (["12%", "7.5 %", "nan"], ".%", [12, 7.5]),
    "euro": (["€1.234,50", "€2", "-"], ",€", None),
    "dollar": (["$1,234", "$2.50"], ".$", [1234, 2.5]),
    "spaces": (["1 234", "12"], ".", [1234, 12]),
}


@pytest.mark.parametrize("case", [case for case in CLEAR if CLEAR[case][2] is not None])
def test_clear_notations_are_numbers_without_a_message(case: str) -> None:
    strings, notation, values = CLEAR[case]
    encoder = encoded(*strings)
    assert encoder.kinds_[0] == "numeric"
    assert encoder.notations_ == [notation, ""]
    assert encoder.mean_[0] == pytest.approx(np.mean(values))


@pytest.mark.parametrize("case", CLEAR)
def test_any_chunks_give_the_same_notation(case: str) -> None:
    strings, _, values = CLEAR[case]
    parts = TableEncoder()
    for text in strings:
        parts.partial_fit({"a": [text], "n": [1]})
    whole = TableEncoder().partial_fit({"a": strings, "n": [1] * len(strings)})
    assert (parts.kinds_, parts.notations_) == (whole.kinds_, whole.notations_)
    assert (values is None) == (whole.kinds_[0] == "categorical")
    np.testing.assert_allclose(parts.mean_, whole.mean_, rtol=1e-12)
    np.testing.assert_allclose(parts.scale_, whole.scale_, rtol=1e-12)


STRINGS = [
    *("1", "1.5", "1,5", "1.234", "1,234", "1,234,567", "1.234.567", " 2 ", "1e3", "0"),
    *("5%", "7 %", "1,5%", "$5", "-$1,234", "5 kg", "NA", "?", "", "x", "true", "FALSE"),
    *("2024-01-31", "-", "+7", "−3", "12.03.2024"),
]


@given(
    strings=st.lists(st.sampled_from(STRINGS), min_size=1, max_size=12),
    few=st.integers(1, len(STRINGS)),
    size=st.integers(1, 5),
    decimal=st.sampled_from(["auto", ".", ","]),
)
def test_no_cut_changes_what_is_read_or_said(
    strings: list[str], few: int, size: int, decimal: str
) -> None:
    strings = [STRINGS[STRINGS.index(text) % few] for text in strings]
    whole, parts = TableEncoder(decimal=decimal), TableEncoder(decimal=decimal)
    whole.partial_fit({"a": strings})
    for k in range(0, len(strings), size):
        parts.partial_fit({"a": strings[k : k + size]})
    assert (parts.kinds_, parts.notations_) == (whole.kinds_, whole.notations_)
    assert (parts.categories_, parts.missing_) == (whole.categories_, whole.missing_)
    np.testing.assert_allclose(parts.mean_, whole.mean_, rtol=1e-12)
    np.testing.assert_allclose(parts.scale_, whole.scale_, rtol=1e-9)
    if set(whole.kinds_) != {"constant"}:
        with warnings.catch_warnings(record=True, action="always") as first:
            made = dense(whole.transform({"a": strings}))
        with warnings.catch_warnings(record=True, action="always") as second:
            again = dense(parts.transform({"a": strings}))
        np.testing.assert_allclose(again, made, rtol=1e-5)
        assert [str(one.message) for one in first] == [str(one.message) for one in second]


def test_numbers_that_can_be_read_in_two_ways_are_named() -> None:
    strings = ["1,234", "950", "2,500"]
    said = "column 'a' has numbers such as '1,234', which can be 1234 or 1.234; they are read as"
    table = {"a": strings, "n": [1, 2, 3]}
    with pytest.warns(UserWarning, match=said):
        encoder = TableEncoder().fit(table)
    assert encoder.mean_[0] == pytest.approx(np.mean([1234, 950, 2500]))
    comma = encoded(*strings, decimal=",")
    assert comma.notations_ == [",", ""]
    assert comma.mean_[0] == pytest.approx(np.mean([1.234, 950, 2.5]))
    assert encoded(*strings, decimal=".").mean_[0] == encoder.mean_[0]


def test_points_are_doubtful_beside_decimal_commas() -> None:
    table = {"a": ["1,5", "2,5"], "b": ["1.234", "2.500"]}
    with pytest.warns(UserWarning, match="column 'b' has numbers such as '1.234'.*read as 1.234"):
        encoder = TableEncoder().fit(table)
    assert encoder.mean_.tolist() == pytest.approx([2.0, 1.867])
    assert TableEncoder(decimal=",").fit(table).mean_[1] == 1867
    assert encoded("1.234", "2.500").mean_[0] == pytest.approx(1.867)


def test_columns_of_which_most_are_numbers_are_named() -> None:
    strings = [*map(str, range(50)), "many", "few"]
    said = "column 'a' has numbers in 96 % of its values, but also 'many' and 'few', first in row"
    with pytest.warns(UserWarning, match=said) as caught:
        encoder = TableEncoder().fit({"a": strings, "n": np.arange(52) % 7})
    assert len(caught) == 1
    assert encoder.kinds_[0] == "identifier"
    assert encoded(*strings, missing=["many", "few"], numeric=["n"]).kinds_[0] == "numeric"
    with pytest.warns(UserWarning, match="'a' has numbers in different notations, such as '€4'"):
        TableEncoder().fit({"a": ["$5", "€4", "$5", "€4"], "n": [1, 2, 3, 4]})
    assert encoded("1", "x", "y", "z").kinds_[0] == "categorical"


def test_integers_beside_decimal_commas_may_have_commas_later() -> None:
    table = {"a": ["1,5", "2,5"], "b": ["3", "4"], "c": ["5%", "7%"], "d": ["1.5", "2"]}
    encoder = TableEncoder().fit(table)
    assert encoder.notations_ == [",", ",", ",%", ""]
    made = encoder.transform({"a": ["2"], "b": ["4,5"], "c": ["7,5 %"], "d": ["1"]})
    assert made.tolist() == [pytest.approx([0, 2, 1.5, -3])]
    assert TableEncoder().fit({"b": table["b"], "d": table["d"]}).notations_ == ["", ""]


def test_declared_numbers_have_any_notation() -> None:
    assert encoded("1,5", "NA", "2,5", numeric=["a"]).notations_ == [",", ""]
    with pytest.raises(ValueError, match="row 2, column 'a': expected a number, got 'x'"):
        encoded("1,5", "NA", "x", numeric=["a"])


def test_tokens_alone_are_constant_and_stay_among_strings() -> None:
    assert encoded("NA", "null", "NA").kinds_[0] == "constant"
    assert encoded("x", "NA", "x", "y").categories_ == [["NA", "x", "y"]]


def test_types_that_declare_categories_stay_categories() -> None:
    codes = pa.array(["1", "2", "1"]).dictionary_encode()
    encoder = TableEncoder().fit({"a": codes, "n": [1, 2, 3]})
    assert encoder.categories_ == [["1", "2"]]


def test_declared_numbers_may_have_a_categorical_type() -> None:
    codes = pa.array(["1", "2", "1"]).dictionary_encode()
    assert TableEncoder(numeric=["a"]).fit({"a": codes, "n": [1, 2, 3]}).mean_[0] == 4 / 3


GAPS: dict[str, list[Any]] = {
    "numbers": [1.0, -999, 3],
    "strings": ["1", "-999", "3"],
    "decimal commas": ["1,0", "-999", "3"],
    "another spelling": ["1.0", "-999.0", "3.0"],
    "another spelling with a comma": ["1,0", "-999,00", "3,0"],
}


@pytest.mark.parametrize("values", GAPS.values(), ids=GAPS)
def test_numbers_that_represent_missing_values(values: list[Any]) -> None:
    """They are missing among strings and among numbers, also in new rows."""
    table = {"a": values, "n": [1, 2, 3]}
    source = open_source(table, label="n", missing=["-999", "x"])
    assert source.encoder.mean_.tolist() == [2]
    assert source.encoder.missing == ["-999", "x"]
    assert source.encoder.transform({"a": values[1:]})[:, 0].tolist() == pytest.approx(
        [0, 1.225], abs=0.001
    )


def test_missing_values_in_single_precision() -> None:
    encoder = encoded(*np.array([1, -99.9, 3], np.float32), missing=["-99.9"])
    assert encoder.mean_[0] == 2


def test_missing_values_may_have_spaces_around_them() -> None:
    assert encoded(" 1", " x ", "3", missing=["x"]).mean_[0] == 2


def test_blocks_of_missing_tokens_before_and_after_numbers() -> None:
    """In JSON lines, such blocks are strings, and the others are numbers."""
    blocks: list[list[Any]] = [["NA", None], [1.0, 3.0], ["", "null"]]
    encoder = TableEncoder()
    for block in blocks:
        encoder.partial_fit({"a": block, "n": [1, 2]})
    assert encoder.kinds_[0] == "numeric"
    made = [encoder.transform({"a": block, "n": [1, 2]})[:, 0].tolist() for block in blocks]
    assert made[0] == made[2] == [0, 0]
    assert made[1] == pytest.approx([-(3**0.5), 3**0.5])
    with pytest.raises(ValueError, match="column 'a': the column is string here, but numeric"):
        encoder.partial_fit({"a": ["NA", "5"], "n": [1, 2]})


def test_streams_store_missing_values() -> None:
    batches = iter([{"a": ["1", "x", "3"], "y": [0, 1, 0]}, {"a": ["x", "2", "3"], "y": [0, 1, 0]}])
    tables = (pa.table(batch) for batch in batches)
    stream = open_source(tables, classes=[0, 1], missing=["x"])
    chunks = [X[:, 0].tolist() for X, _ in stream.chunks()]
    assert chunks == [
        pytest.approx([-1.225, 0, 1.225], abs=0.001),
        pytest.approx([0, 0, 1.225], abs=0.001),
    ]
    with pytest.raises(ValueError, match="missing must be a list of strings, got 'x'"):
        open_source({"a": ["1", "x"], "y": [0, 1]}, missing="x")


# -- new rows and files --------------------------------------------------------------------------


def test_new_rows_have_the_notation_of_the_training_rows() -> None:
    encoder = encoded("1,5", "2,5", "?")
    made = encoder.transform({"a": ["2.000,5", "none", "2"], "n": [0, 0, 0]})
    expected = (np.array([2000.5, 2, 2]) - encoder.mean_[0]) / encoder.scale_[0]
    np.testing.assert_allclose(made[:, 0], expected, rtol=1e-6)
    with pytest.raises(ValueError, match=r"expected a number such as 1.234,5, got '1.5'"):
        encoder.transform({"a": ["1.5"], "n": [0]})
    with pytest.raises(ValueError, match=r"expected a number, got '1,234'"):
        encoded("1", "2").transform({"a": ["1,234"], "n": [0]})
    percent = encoded("12%", "7%")
    assert percent.transform({"a": [12.0], "n": [0]})[0, 0] == pytest.approx(1)


def fitted(**parameters: Any) -> Any:
    table = {"a": ["1,5 %", "2 %", "NA", "unknown"], "b": ["x", "unknown", "x", "y"]}
    encoder = TableEncoder(missing=["unknown"], **parameters)
    return make_pipeline(encoder, OnlineSVC(C=1, gamma=1)).fit(table, [0, 1, 0, 1]), table


def test_files_store_notations_and_missing_values(tmp_path: Path) -> None:
    model, table = fitted()
    save(model, tmp_path / "model.mwz")
    again = load(tmp_path / "model.mwz")
    assert again[0].notations_ == [",%", ""]
    assert again[0].missing == ["unknown"]
    assert again[0].tokens_ == list(TOKENS)
    assert again[0].missing_ == [True]
    np.testing.assert_array_equal(again[0].transform(table), model[0].transform(table))
    assert clone(again[0]).missing == ["unknown"]


def test_older_files_keep_the_behaviour_that_they_had() -> None:
    """They have no tokens, and numbers in plain notation only."""
    from marginwise._files.pipelines.codec import describe_pipeline, restore_pipeline

    model = make_pipeline(TableEncoder(), OnlineSVC(C=1, gamma=1))
    model.fit({"a": ["1.5", "2", "4"], "b": ["x", "y", "x"]}, [0, 1, 0])
    state = describe_pipeline(model)
    encoder = state["pipeline"]["parameters"]["steps"][0][1]
    for name in ("missing", "decimal"):
        del encoder["parameters"][name]
    for name in ("notations_", "tokens_"):
        del encoder["attributes"][name]
    again = restore_pipeline(state)
    rows = {"a": ["1.5", "nan"], "b": ["x", "y"]}
    assert (again.predict(rows) == model.predict(rows)).all()
    with pytest.raises(ValueError, match="expected a number, got 'NA'"):
        again.predict({"a": ["NA"], "b": ["x"]})
    assert model.predict({"a": ["NA"], "b": ["x"]}).shape == (1,)
