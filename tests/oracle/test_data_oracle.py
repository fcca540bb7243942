"""Sources against pandas and pyarrow, and the encoder against scikit-learn's transformers."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from marginwise import OnlineSVC
from marginwise.data import (
    DataError,
    IteratorStream,
    StreamPipeline,
    TableEncoder,
    TableSource,
    TransformedSource,
    load_dataset,
    open_source,
)
from tests.support import Rows, assert_same_model, blobs

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
# Earlier versions of pandas round the last bit of numbers, unless asked not to.
EXACT: Any = {"float_precision": "round_trip"} if int(pd.__version__[0]) < 3 else {}
JOBS = ("cook", "nurse", "pilot, senior", 'the "boss"', "line\nbreak")


def frame(n: int, seed: int = 0) -> pd.DataFrame:
    """Columns of all kinds, with missing values, and a label."""
    rng = np.random.default_rng(seed)
    words = np.array([f"word{k}" for k in range(40)])
    return pd.DataFrame(
        {
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.normal(40, 12, n)),
            "count": rng.integers(0, 9, n),
            "job": rng.choice([*JOBS, None], n),
            "smokes": rng.random(n) < 0.3,
            "joined": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 999, n), "D"),
            "note": [" ".join(rng.choice(words, 6)) for _ in range(n)],
            "label": rng.choice(["no", "yes"], n),
        }
    )


def by_hand(data: pd.DataFrame) -> np.ndarray:
    """The same features by scikit-learn."""
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    data = data.assign(
        joined=(data["joined"] - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1),
        smokes=data["smokes"].astype(float),
        job=data["job"].astype(object).where(data["job"].notna(), "~ missing"),
    )
    made = ColumnTransformer(
        [
            ("a", numbers, ["age", "count"]),
            ("b", OneHotEncoder(), ["job"]),
            ("c", numbers, ["smokes", "joined"]),
            ("d", TfidfVectorizer(sublinear_tf=True), "note"),
        ]
    ).fit_transform(data)
    return np.asarray(made.toarray() if sp.issparse(made) else made)


def dense(X: Any) -> np.ndarray:
    return np.asarray(X.toarray() if sp.issparse(X) else X)


def written(data: pd.DataFrame, kind: str, folder: Path) -> Path:
    """Write a frame as a file of a kind, whose name does not show the kind."""
    path = folder / f"{kind}.data"
    if kind == "csv":
        data.to_csv(path, index=False)
    elif kind == "csv.gz":
        data.to_csv(path, index=False, compression="gzip")
    elif kind == "csv.zst":
        data.to_csv(folder / "plain", index=False)
        with pa.output_stream(str(path), compression="zstd") as file:
            file.write((folder / "plain").read_bytes())
    elif kind == "tsv":
        data.to_csv(path, index=False, sep="\t")
    elif kind == "json":
        data.to_json(path, orient="records", lines=True, date_format="iso")
    elif kind == "parquet":
        data.to_parquet(path, row_group_size=100)
    elif kind == "parquet large":
        data.to_parquet(path)
    elif kind == "arrow":
        data.to_feather(path)
    else:
        with pa.ipc.new_stream(path, pa.Schema.from_pandas(data)) as out:
            for start in range(0, len(data), 70):
                out.write(pa.RecordBatch.from_pandas(data[start : start + 70]))
    return path


KINDS = ["csv", "csv.gz", "csv.zst", "tsv", "parquet", "arrow", "arrow stream"]


# -- the encoder ---------------------------------------------------------------------------------


def test_features_are_those_of_a_column_transformer() -> None:
    data = frame(400)
    encoder = TableEncoder().fit(data.drop(columns="label"))
    assert encoder.kinds_ == ["numeric", "numeric", "categorical", "boolean", "date", "text"]
    made = encoder.transform(data)
    assert made.dtype == np.float32
    assert made.shape[1] == len(encoder.get_feature_names_out())
    np.testing.assert_allclose(dense(made), by_hand(data), atol=2e-6)


@pytest.mark.parametrize("form", ["arrow", "batch", "dict"])
def test_tables_of_any_form_give_the_same_features(form: str) -> None:
    data = frame(60).drop(columns="label")
    table = pa.Table.from_pandas(data)
    forms = {
        "arrow": table,
        "batch": table.combine_chunks().to_batches()[0],
        "dict": {name: data[name].to_numpy() for name in data},
    }
    expected = TableEncoder().fit_transform(data)
    np.testing.assert_array_equal(dense(TableEncoder().fit_transform(forms[form])), dense(expected))


def test_terms_are_those_of_a_tfidf_vectorizer() -> None:
    texts = [*frame(50)["note"], "Ümlaut and ÜMLAUT twice", "word1 word1 word1"]
    ours = TableEncoder(text=["t"]).fit({"t": texts})
    theirs = TfidfVectorizer(sublinear_tf=True).fit(texts)
    (vectorizer,) = ours.vectorizers_
    assert vectorizer.vocabulary_ == theirs.vocabulary_
    np.testing.assert_allclose(vectorizer.idf_, theirs.idf_)
    new = ["word1 and unknown", "", "word2 word2"]
    expected = theirs.transform(new).toarray()
    np.testing.assert_allclose(dense(ours.transform({"t": new})), expected, atol=1e-6)


def test_vectors_are_used_as_they_are() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(20, 3)).astype(np.float32)
    encoder = TableEncoder().fit({"e": vectors, "x": np.arange(20) % 4})
    np.testing.assert_array_equal(
        encoder.transform({"e": vectors, "x": np.ones(20)})[:, :3], vectors
    )
    assert encoder.get_feature_names_out().tolist() == ["e[0]", "e[1]", "e[2]", "x"]


def test_few_nonzeros_are_sparse() -> None:
    many = {"c": [f"level {k % 9}" for k in range(90)]}
    assert sp.issparse(TableEncoder().fit_transform(many))
    assert not sp.issparse(TableEncoder().fit_transform({"c": ["a", "b", "a", "b"]}))


# -- files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_file_gives_the_features_of_its_frame(kind: str, tmp_path: Path) -> None:
    data = frame(330)
    source = open_source(written(data, kind, tmp_path))
    X, y = source.load()
    assert isinstance(source, TableSource)
    assert source.label == "label"
    assert len(source) == 330
    assert source.classes.tolist() == ["no", "yes"]
    assert y.tolist() == data["label"].tolist()
    np.testing.assert_allclose(dense(X), by_hand(data), atol=2e-6)
    ids = np.random.default_rng(1).permutation(330)[:200]
    some, labels = source.read(ids)
    np.testing.assert_array_equal(dense(some), dense(X)[ids])
    assert labels.tolist() == y[ids].tolist()


def test_json_lines_give_the_same(tmp_path: Path) -> None:
    data = frame(100).drop(columns="joined")
    path = tmp_path / "rows"
    with gzip.open(path, "wt", encoding="utf-8") as out:
        for row in data.astype(object).where(data.notna(), None).to_dict("records"):
            out.write(json.dumps({"label": row.pop("label"), **row}) + "\n")
    source = open_source(path)
    expected = TableSource(data).load()
    assert source.label == "label"
    np.testing.assert_allclose(dense(source.load()[0]), dense(expected[0]), atol=1e-6)
    assert source.load()[1].tolist() == expected[1].tolist()


def test_large_row_groups_are_read_in_parts(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("marginwise.data.arrow_file.GROUP_BYTES", 1000)
    monkeypatch.setattr("marginwise.data.arrow_file.BLOCK_ROWS", 64)
    data = frame(330)
    source = open_source(written(data, "parquet", tmp_path))
    assert not source.random_access
    assert source.block == 64
    np.testing.assert_allclose(dense(source.load()[0]), by_hand(data), atol=2e-6)
    ids = np.array([329, 0, 150, 99, 100])
    assert source.read(ids)[1].tolist() == data["label"][ids].tolist()


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_several_files_are_one_source(kind: str, tmp_path: Path) -> None:
    data = frame(500)
    for k, (start, stop) in enumerate([(0, 120), (120, 121), (121, 500)]):
        (tmp_path / str(k)).mkdir()
        part = data[start:stop].iloc[:, ::-1] if k == 1 else data[start:stop]
        written(part, kind, tmp_path / str(k)).rename(tmp_path / f"{k}.part")
    opened = [
        open_source(str(tmp_path / "*.part"), label="label"),
        open_source([tmp_path / f"{k}.part" for k in range(3)], label="label"),
    ]
    for source in opened:
        X, y = source.load()
        assert len(source) == 500
        assert y.tolist() == data["label"].tolist()
        np.testing.assert_allclose(dense(X), by_hand(data), atol=2e-6)
        ids = np.array([499, 3, 120, 121, 119])
        np.testing.assert_array_equal(dense(source.read(ids)[0]), dense(X)[ids])


def test_values_of_a_csv_file_are_those_of_pandas(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    text = 'a;b;"c;d";y\n1.5; x ;"q;\n""r""";0\n\n;y;"s";1\n-2e3;;"t";0\n'
    path.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    source = open_source(path, encoder=None)
    table, y = source.load()
    assert table.to_pydict() == {
        "a": ["1.5", None, "-2e3"],
        "b": ["x", "y", None],
        "c;d": ['q;\r\n"r"', "s", "t"],
    }
    assert y.tolist() == [0, 1, 0]
    theirs = pd.read_csv(path, sep=";")
    assert theirs["a"].tolist()[::2] == [1.5, -2000]


def test_types_of_a_csv_file_are_those_of_pandas(tmp_path: Path) -> None:
    data = frame(300).assign(code=np.arange(300) % 5 + 0.5)
    path = written(data, "csv", tmp_path)
    source = open_source(path, label="label", encoder="types")
    ours, y = source.load()
    theirs = pd.read_csv(path, parse_dates=["joined"], **EXACT)
    assert source.encoder is None
    assert source.feature_names == [name for name in data if name != "label"]
    for name in source.feature_names:
        expected = theirs[name]
        found = ours[name].to_pandas()
        assert found.dtype.kind == expected.dtype.kind, name
        assert found[found.notna()].tolist() == expected[expected.notna()].tolist(), name
        assert (found.isna() == expected.isna()).all(), name
    assert y.tolist() == theirs["label"].tolist()


PANDAS = [  # the documented default of na_values in pandas.read_csv
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
    *("<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
]


def test_missing_values_are_those_of_pandas(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    values = ["1", *PANDAS, "4"]
    path.write_text("\n".join(["x,y", *(f"{value},{k % 2}" for k, value in enumerate(values))]))
    theirs = pd.read_csv(path)["x"]
    assert theirs.isna().sum() == len(PANDAS)
    for encoder in (open_source(path).encoder, TableEncoder().fit({"x": values})):
        assert encoder.kinds_ == ["numeric"]
        assert encoder.mean_[0] == theirs.mean()
    ours = open_source(path, encoder="types").load()[0]["x"].to_pandas()
    assert ours.isna().tolist() == theirs.isna().tolist()


def test_kinds_are_decided_by_all_rows_of_a_csv_file(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    numbers = [str(k % 7) for k in range(9000)]
    rows = [f"{a},{b},{k % 2}" for k, (a, b) in enumerate(zip(numbers, numbers, strict=True))]
    rows[8500] = "many,3,0"
    path.write_text("\n".join(["x,z,y", *rows]))
    said = "column 'x' has numbers in 99 % of its values, but also 'many', first in row 8500"
    with pytest.warns(UserWarning, match=said):
        encoder = open_source(path).encoder
    assert encoder.kinds_ == ["categorical", "numeric"]
    assert encoder.categories_ == [["0", "1", "2", "3", "4", "5", "6", "many"]]
    source = open_source(path, missing=["many"])
    assert source.encoder.kinds_ == ["numeric", "numeric"]
    expected = pd.read_csv(path, na_values=["many"])["x"]
    assert source.encoder.mean_[0] == pytest.approx(expected.mean())


# -- arrays --------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["dense", "train", "csr", "compressed"])
def test_archives_of_arrays(form: str, tmp_path: Path) -> None:
    X, y = blobs(50, 0)
    path = tmp_path / "x"
    csr = sp.csr_array(X)
    arrays = {
        "dense": {"X": X, "y": y},
        "compressed": {"X": X, "y": y},
        "train": {"X_train": X, "y_train": y, "X_test": X[:1], "y_test": y[:1]},
        "csr": {
            "X_train_data": csr.data,
            "X_train_indices": csr.indices,
            "X_train_indptr": csr.indptr,
            "X_train_shape": csr.shape,
            "y_train": y,
        },
    }[form]
    with path.open("wb") as file:
        (np.savez_compressed if form == "compressed" else np.savez)(file, **arrays)
    source = open_source(path)
    np.testing.assert_array_equal(dense(source.load()[0]), X)
    np.testing.assert_array_equal(source.read([7, 3])[1], y[[7, 3]])
    assert source.classes.tolist() == [0, 1, 2]
    assert (source.block == 4096) == (form in ("dense", "train"))  # which are memory-mapped


def test_labels_of_arrays_are_columns_or_files(tmp_path: Path) -> None:
    X, y = blobs(30, 0)
    np.save(tmp_path / "all.npy", np.c_[X, y])
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    np.save(tmp_path / "first.npy", np.c_[y, X])
    sources = [
        open_source(tmp_path / "all.npy"),
        open_source(tmp_path / "X.npy", label=tmp_path / "y.npy"),
        open_source(tmp_path / "first.npy", label=0),
        open_source((X, y)),
    ]
    for source in sources:
        np.testing.assert_array_equal(source.load()[0], X)
        np.testing.assert_array_equal(source.load()[1], y)
    alone = open_source(tmp_path / "X.npy", labelled=False)
    assert alone.load()[1] is None
    assert alone.n_features == 2
    many = open_source([tmp_path / "all.npy"] * 2)
    np.testing.assert_array_equal(many.read([31, 0])[0], X[[1, 0]])
    assert len(many) == 60
    assert many.classes.tolist() == [0, 1, 2]


# -- learning ------------------------------------------------------------------------------------


def test_transformers_get_the_frame_that_pandas_reads(tmp_path: Path) -> None:
    """Missing values too: None and NaN would be two categories."""
    path = tmp_path / "x.csv"
    path.write_text("color,sold,size,y\nred,True,1.5,0\n,,,1\nblue,False,2.5,1\n")
    seen: list[pd.DataFrame] = []
    keep = FunctionTransformer(lambda frame: (seen.append(frame), frame[["size"]].fillna(0))[1])
    keep.fit(pd.read_csv(path, usecols=["color", "sold", "size"]))
    one = StreamPipeline([("keep", keep), ("svc", OnlineSVC(gamma=0.1, shuffle=False))])
    one.learn_from(open_source(path, label="y", encoder="types"))
    expected = pd.read_csv(path)[["color", "sold", "size"]]
    pd.testing.assert_frame_equal(seen[-1].reset_index(drop=True), expected)


def test_pipelines_of_frames_learn_from_csv_files(tmp_path: Path) -> None:
    data = frame(200)
    path = written(data, "csv", tmp_path)
    encode = ColumnTransformer(
        [("n", StandardScaler(), ["count"]), ("c", OneHotEncoder(), ["job"])]
    ).fit(pd.read_csv(path))
    one = StreamPipeline([("encode", encode), ("svc", OnlineSVC(gamma=0.1, random_state=0))])
    one.learn_from(open_source(path, encoder="types"))
    rows = Rows(encode.transform(pd.read_csv(path)), data["label"].to_numpy())
    rows.block = 4096
    other = OnlineSVC(gamma=0.1, random_state=0).learn_from(rows)
    assert_same_model(one[-1], other, "a pipeline of frames")


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet"])
def test_a_file_that_is_learned_from_gives_the_model_of_its_arrays(
    kind: str, tmp_path: Path
) -> None:
    """A source only reads: the model is that of the same rows in memory, in the same blocks."""
    source = open_source(written(frame(300), kind, tmp_path))
    rows = Rows(*source.load())
    rows.block, rows.random_access = source.block, source.random_access
    one = OnlineSVC(gamma=0.1, epochs=2, random_state=1).learn_from(source)
    other = OnlineSVC(gamma=0.1, epochs=2, random_state=1).learn_from(rows)
    assert_same_model(one, other, "learned from a file")


def test_arrays_that_are_learned_from_give_the_model_of_any_source_of_them() -> None:
    X, y = blobs(200, 0)
    one = OnlineSVC(gamma=0.5, random_state=3).learn_from(open_source((X, y)))
    other = OnlineSVC(gamma=0.5, random_state=3).learn_from(Rows(X, y))
    assert_same_model(one, other, "learned from arrays")


def test_streams_give_the_model_of_partial_fit() -> None:
    data = frame(300)
    encoder = TableEncoder().fit(data.drop(columns="label"))
    table = pa.Table.from_pandas(data)
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=100))
    settings = {"gamma": 0.1, "finish_at_end": False}
    stream = open_source(reader, encoder=encoder, classes=["no", "yes"])
    one = OnlineSVC(**settings).learn_from(stream)
    other = OnlineSVC(**settings)
    for start in range(0, 300, 100):
        part = data[start : start + 100]
        other.partial_fit(encoder.transform(part), part["label"], classes=["no", "yes"])
    assert_same_model(one, other, "a stream of record batches")
    assert isinstance(stream, IteratorStream)
    assert next(stream.chunks(), None) is None


def test_pipelines_learn_what_their_classifier_would() -> None:
    X, y = blobs(300, 0)
    scaler = StandardScaler().fit(X)
    settings = {"gamma": 0.5, "random_state": 0}
    one = StreamPipeline([("scale", scaler), ("svc", OnlineSVC(**settings))])
    one.learn_from(open_source((X, y)))
    other = OnlineSVC(**settings).learn_from(open_source((scaler.transform(X), y)))
    assert_same_model(one[-1], other, "a pipeline that learns from a source")
    np.testing.assert_array_equal(one.predict(X), other.predict(scaler.transform(X)))
    one.partial_fit(X[:50] + 1, y[:50])
    other.partial_fit(scaler.transform(X[:50] + 1), y[:50])
    assert_same_model(one[-1], other, "a pipeline that continues")
    streamed = StreamPipeline([("scale", scaler), ("svc", OnlineSVC(**settings))])
    streamed.learn_from(IteratorStream([(X, y)]), classes=[0, 1, 2])
    assert streamed.score(X, y) > 0.8


def test_transformers_of_frames_get_their_columns_by_name(tmp_path: Path) -> None:
    data = frame(100)
    numeric = ColumnTransformer(
        [("n", make_pipeline(SimpleImputer(), StandardScaler()), ["count", "age"])]
    ).fit(data[["count", "age"]])
    source = open_source(written(data, "parquet", tmp_path), encoder=None)
    made = TransformedSource(source, numeric)
    np.testing.assert_allclose(made.load()[0], numeric.transform(data[["count", "age"]]))
    assert made.feature_names == ["n__count", "n__age"]
    assert made.n_features == 2
    scaler = StandardScaler().fit(data[["count", "age"]])
    made = TransformedSource(source, scaler)
    np.testing.assert_allclose(made.load()[0], scaler.transform(data[["count", "age"]]))
    lacking = open_source(data[["age", "label"]], encoder=None)
    with pytest.raises(ValueError, match="column 'count' is missing; the data has 'age'"):
        TransformedSource(lacking, scaler).load()
    with pytest.raises(ValueError, match=r"columns are missing: \{'count'\}"):
        TransformedSource(lacking, numeric).load()


def test_an_encoder_of_another_file_reads_its_columns_by_name(tmp_path: Path) -> None:
    data = frame(200)
    encoder = open_source(written(data, "csv", tmp_path)).encoder
    turned = data.iloc[:, ::-1].assign(extra=1).drop(columns="label")
    path = tmp_path / "turned.csv"
    turned.to_csv(path, index=False)
    X, y = open_source(path, encoder=encoder, labelled=False).load()
    assert y is None
    np.testing.assert_allclose(dense(X), by_hand(data), atol=2e-6)
    with pytest.raises(DataError, match=r"turned\.csv:1: label column 'label' is missing"):
        open_source(path, encoder=encoder, label="label")


# -- data sets -----------------------------------------------------------------------------------


def test_data_sets_of_all_forms(tmp_path: Path) -> None:
    X, y = blobs(20, 0)
    csr = sp.csr_array(X)
    parts = {"data": csr.data, "indices": csr.indices, "indptr": csr.indptr, "shape": csr.shape}
    sparse = {f"X_{part}_{name}": v for part in ("train", "test") for name, v in parts.items()}
    np.savez(tmp_path / "sparse.npz", **sparse, y_train=y, y_test=y)
    np.savez(
        tmp_path / "mixed.npz",
        X_num_train=[[1, 2], [3, 4]],
        X_num_test=[[5, 6]],
        X_cat_train=[[0], [1]],
        X_cat_test=[[1]],
        num_names=["age", "size"],
        cat_names_and_levels=["color|blue|red"],
        y_train=[1, 0],
        y_test=[1],
        classes=["no", "yes"],
    )
    lines = [{"topics": ["a"], "text": "one", "split": "train"}]
    lines += [{"topics": [], "text": "two", "split": "test"}]
    (tmp_path / "text.jsonl").write_text("\n".join(map(json.dumps, lines)))
    found = load_dataset("sparse", data=tmp_path)
    np.testing.assert_array_equal(found.X_test.toarray(), X)
    mixed = load_dataset("mixed", data=str(tmp_path))
    assert mixed.X_train.to_pydict() == {"age": [1, 3], "size": [2, 4], "color": ["blue", "red"]}
    assert mixed.y_train.tolist() == ["yes", "no"]
    assert mixed.X_test.to_pydict() == {"age": [5], "size": [6], "color": ["red"]}
    text = load_dataset("text", data=tmp_path)
    assert text.X_train.to_pydict() == {"text": ["one"]}
    assert text.y_test.tolist() == [[]]


def test_data_sets_are_downloaded_if_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def fetch(name: str, **options: Any) -> Any:
        asked.append((name, options))
        return np.eye(2), np.array(["a", "b"])

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    found = load_dataset("iris", data=tmp_path, openml=True)
    assert asked == [("iris", {"return_X_y": True, "as_frame": "auto"})]
    assert found.y_train.tolist() == ["a", "b"]
    assert found.X_test is None
