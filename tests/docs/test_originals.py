"""Public originals become the data files that the scripts read."""

from __future__ import annotations

import bz2
import gzip
import io
import os
import struct
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reproduce import converters, data
from reproduce.sources import BY_FILE, SOURCES, Source

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("MARGINWISE_DATA") or ROOT.parent / "shared" / "data")


def need(file: str) -> Path:
    path = DATA / file
    if not path.is_file():
        pytest.skip(f"the data folder {DATA} lacks {file}")
    return path


def text(folder: Path, name: str, *lines: str) -> None:
    (folder / name).write_text("\n".join([*lines, ""]), encoding="utf-8")


def converted(file: str, folder: Path) -> Any:
    """Convert, write and read a file."""
    data.convert(BY_FILE[file], folder, folder / "made")
    return data.read(folder / "made" / file)


# -- each original in its own format -------------------------------------------------------------


def idx(array: np.ndarray) -> bytes:
    sizes = b"".join(struct.pack(">I", size) for size in array.shape)
    return bytes([0, 0, 8, array.ndim]) + sizes + array.astype(np.uint8).tobytes()


def test_mnist(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    images, labels = rng.integers(0, 256, (5, 28, 28)), np.array([3, 0, 9, 9, 1])
    for part, rows in (("train", slice(0, 3)), ("t10k", slice(3, 5))):
        images_file = tmp_path / f"{part}-images-idx3-ubyte.gz"
        images_file.write_bytes(gzip.compress(idx(images[rows])))
        (tmp_path / f"{part}-labels-idx1-ubyte").write_bytes(idx(labels[rows]))
    made = converters.mnist(tmp_path)
    assert made["X_train"].dtype == np.uint8
    assert made["y_test"].dtype == np.int64
    np.testing.assert_array_equal(made["X_train"], images[:3].reshape(3, 784))
    np.testing.assert_array_equal(made["X_test"][1, 28:56], images[4, 1])
    np.testing.assert_array_equal(made["y_test"], [9, 1])
    # These are not the images whose checksum is known.
    with pytest.raises(ValueError, match="expected 6bbc9ace898e44ae57da46a324031adb"):
        data.convert(BY_FILE["mnist.npz"], tmp_path, tmp_path)


@pytest.mark.parametrize("harm", [lambda file: file[:-1], lambda file: b"\1" + file[1:]])
def test_broken_idx_files_are_refused(harm: Any) -> None:
    file = idx(np.arange(12).reshape(3, 2, 2))
    assert converters.idx(file, "images").shape == (3, 2, 2)
    with pytest.raises(ValueError, match="images is"):
        converters.idx(harm(file), "images")


def test_a9a(tmp_path: Path) -> None:
    text(tmp_path, "a9a", "-1 3:1 11:1 123:1 ", "+1 5:1 ")
    text(tmp_path, "a9a.t", "-1 1:1 122:1 ")
    made = converters.a9a(tmp_path)
    np.testing.assert_array_equal(made["X_train_indices"], [2, 10, 122, 4])
    np.testing.assert_array_equal(made["X_train_indptr"], [0, 3, 4])
    np.testing.assert_array_equal(made["X_test_shape"], [1, 123])
    np.testing.assert_array_equal(made["y_train"], [-1, 1])
    assert [made[f"X_train_{key}"].dtype for key in ("data", "indices", "indptr", "shape")] == [
        np.float32,
        np.int32,
        np.int32,
        np.int64,
    ]


def test_reuters_of_the_lasvm_paper(tmp_path: Path) -> None:
    for name, rows in (("trn", b"1 4:8E-01 1:6.0E-01 4:8E-01\n-1 8315:1\n"), ("tst", b"-1 2:1\n")):
        (tmp_path / f"reuters.{name}.bz2").write_bytes(bz2.compress(rows))
    made = converted("reuters_moneyfx_lasvm.npz", tmp_path)
    np.testing.assert_array_equal(made["X_train_indices"], [0, 3, 8314])
    np.testing.assert_array_equal(made["X_train_data"], np.float32([0.6, 0.8, 1]))
    np.testing.assert_array_equal(made["X_test_shape"], [1, 8315])


def test_dna(tmp_path: Path) -> None:
    text(tmp_path, "dna.scale", "3 2:1 180:1", "1 1:1")
    text(tmp_path, "dna.scale.t", "2 5:1")
    made = converted("dna.npz", tmp_path)
    assert made["X_train"].shape == (2, 180)
    assert made["X_train"].dtype == np.uint8
    np.testing.assert_array_equal(np.flatnonzero(made["X_train"][0]), [1, 179])
    assert made["classes"][np.r_[made["y_train"], made["y_test"]]].tolist() == ["n", "ei", "ie"]


def test_usps(tmp_path: Path) -> None:
    rows = [["6.0000", *["-1.0000"] * 255, "0.5000"], ["9.0000", *["1.0000"] * 256]]
    for name, row in zip(("zip.train.gz", "zip.test.gz"), rows, strict=True):
        (tmp_path / name).write_bytes(gzip.compress((" ".join(row) + " \n").encode()))
    made = converted("usps.npz", tmp_path)
    assert made["X_train"].dtype == np.float32
    assert (made["X_train"].min(), made["X_train"].max()) == (0, 0.75)
    assert (made["X_test"] == 1).all()
    assert (made["y_train"], made["y_test"]) == ([6], [9])


def test_tables(tmp_path: Path) -> None:
    text(
        tmp_path,
        "letter-recognition.data",
        *(f"{c},{k},{'0,' * 14}15" for k, c in enumerate("TIDNG")),
    )
    letter = converted("letter.npz", tmp_path)
    np.testing.assert_array_equal(letter["y_train"], [19, 8, 3, 13])
    np.testing.assert_array_equal(letter["X_test"], [[4, *[0] * 14, 15]])
    assert letter["X_train"].dtype == np.uint8

    for name, label in (("sat.trn", 7), ("sat.tst", 3)):
        text(tmp_path, name, *(" ".join(["92", *["115"] * 35, str(label)]) for _ in range(2)))
    satimage = converted("satimage.npz", tmp_path)
    assert satimage["X_train"].shape == satimage["X_test"].shape == (2, 36)
    assert (satimage["y_train"][0], satimage["y_test"][0], satimage["X_test"][0, 0]) == (7, 3, 92)

    text(tmp_path, "banana.dat", "@relation banana", "@data", "1.14, -0.114, -1.0", "0.5,1,1.0")
    banana = converted("banana.npz", tmp_path)
    np.testing.assert_array_equal(banana["X"], np.float32([[1.14, -0.114], [0.5, 1]]))
    np.testing.assert_array_equal(banana["y"], [-1, 1])

    text(tmp_path, "waveform.data", "-1.5," + "0.25," * 20 + "2")
    waveform = converted("waveform_uci.npz", tmp_path)
    assert (waveform["X"].shape, waveform["X"][0, 0], waveform["y"]) == ((1, 21), -1.5, [2])


def test_abalone(tmp_path: Path) -> None:
    text(
        tmp_path,
        "abalone.data",
        "M,0.455,0.365,0.095,0.514,0.2245,0.101,0.15,15",
        "I,1,2,3,4,5,6,7,7",
    )
    made = converted("abalone.npz", tmp_path)
    np.testing.assert_array_equal(made["X"][1], [0, 0, 1, 1, 2, 3, 4, 5, 6, 7])
    assert made["X"][0, 3] == np.float32(0.455)
    np.testing.assert_array_equal(made["y"], [15, 7])
    assert made["feature_names"][3] == "length"


def test_adult(tmp_path: Path) -> None:
    row = (
        "{}, {}, 77516, Bachelors, 13, Never-married, Sales, Wife, White, Male, 2174, 0, 40, {}, {}"
    )
    text(
        tmp_path,
        "adult.data",
        row.format(39, "State-gov", "Cuba", "<=50K"),
        row.format(50, "?", "?", ">50K"),
    )
    text(tmp_path, "adult.test", "|1x3 Cross validator", row.format(25, "Private", "Peru", ">50K."))
    made = converted("adult_raw.npz", tmp_path)
    assert made["cat_names_and_levels"][0] == "workclass|?|Private|State-gov"
    np.testing.assert_array_equal(made["X_cat_train"][:, 0], [2, 0])
    np.testing.assert_array_equal(made["X_num_train"][0], [39, 77516, 13, 2174, 0, 40])
    assert made["X_num_test"].dtype == np.int32
    assert (made["y_train"].tolist(), made["y_test"].tolist()) == ([-1, 1], [1])


def test_covtype(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(converters, "COVTYPE_FIRST", 3)
    monkeypatch.setattr(converters, "COVTYPE_ROWS", 5)
    rows = [[k, -k, *[0] * 52, 1 + k % 7] for k in range(20)]
    lines = "".join(",".join(map(str, row)) + "\n" for row in rows)
    (tmp_path / "covtype.data.gz").write_bytes(gzip.compress(lines.encode()))
    made = converters.covtype(tmp_path)
    assert made["X"].shape == (5, 54)
    assert made["X"].dtype == np.int16
    np.testing.assert_array_equal(made["y"], 1 + made["X"][:, 0] % 7)
    np.testing.assert_array_equal(made["in_first15120"], made["X"][:, 0] < 3)
    np.testing.assert_array_equal(made["X_first15120"][:, 1], [0, -1, -2])
    np.testing.assert_array_equal(made["y_first15120"], [1, 2, 3])


def test_kddcup(tmp_path: Path) -> None:
    def row(start: str, label: str) -> str:
        return ",".join([start, *["0.5"] * 37, label])

    train = [row("0,tcp,http,SF", "normal."), row("7,icmp,eco_i,SF", "smurf.")]
    test = [row("1,udp,private,REJ", "apache2.")]
    for name, lines in (("kddcup.data_10_percent.gz", train), ("corrected.gz", test)):
        (tmp_path / name).write_bytes(gzip.compress("\n".join(lines).encode()))
    made = converters.kddcup(tmp_path)
    assert made["protocol_levels"].tolist() == ["icmp", "tcp", "udp"]
    assert made["classes"].tolist() == ["apache2.", "normal.", "smurf."]
    np.testing.assert_array_equal(made["X_cat_train"], [[1, 1, 1], [0, 0, 1]])
    np.testing.assert_array_equal(made["X_cat_test"], [[2, 2, 0]])
    np.testing.assert_array_equal(made["y_train"], [1, 2])
    assert made["X_num_train"].shape == (2, 38)
    assert (made["X_num_train"][1, 0], made["X_num_train"][1, 37]) == (7, 0.5)
    kinds = [made[f"{key}_train"].dtype for key in ("X_num", "X_cat", "y")]
    assert kinds == [np.float32, np.uint8, np.int16]


def test_sms_spam(tmp_path: Path) -> None:
    text(tmp_path, "SMSSpamCollection", "ham\tOk lar...\t\t", "spam\tWin £100 now")
    assert converted("sms_spam.jsonl.gz", tmp_path) == [
        {"label": 0, "text": "Ok lar...\t\t"},
        {"label": 1, "text": "Win £100 now"},
    ]


def document(number: int, split: str, topics: list[str], text: str, judged: str = "YES") -> str:
    names = "".join(f"<D>{topic}</D>" for topic in topics)
    return (
        f'<REUTERS TOPICS="{judged}" LEWISSPLIT="{split}" CGISPLIT="X" NEWID="{number}">\n'
        f"<TOPICS>{names}</TOPICS>\n<PLACES><D>usa</D></PLACES>\n{text}\n</REUTERS>\n"
    )


NORMAL = (
    "<TEXT>&#2;\n<TITLE>OIL &lt;X> UP</TITLE>\n<DATELINE>    HERE - </DATELINE>"
    "<BODY>Crude rose\nagain.\n Reuter\n&#3;</BODY></TEXT>"
)
BRIEF = '<TEXT TYPE="BRIEF">&#2;\n******<TITLE>GOLD UP\n</TITLE>Blah blah blah.\n&#3;\n\n</TEXT>'
UNPROC = '<TEXT TYPE="UNPROC">&#2;\n PLAIN TEXT\n &#3;</TEXT>'


def test_reuters_text(tmp_path: Path) -> None:
    first = document(2, "TRAIN", ["crude", "gold"], NORMAL) + document(
        3, "NOT-USED", ["gold"], BRIEF
    )
    second = document(1, "TEST", ["gold"], BRIEF) + document(5, "TEST", [], UNPROC)
    second += document(6, "TRAIN", ["gold"], BRIEF, judged="NO")
    files = {"reut2-000.sgm": first, "reut2-001.sgm": second}
    expected = [
        {
            "id": 1,
            "split": "test",
            "topics": ["gold"],
            "text": "GOLD UP\n\n\n******Blah blah blah.",
        },
        {
            "id": 2,
            "split": "train",
            "topics": ["crude", "gold"],
            "text": "OIL <X> UP\nCrude rose\nagain.\n Reuter",
        },
        {"id": 5, "split": "test", "topics": [], "text": "PLAIN TEXT"},
    ]
    for name, content in files.items():
        (tmp_path / name).write_text(content, encoding="latin-1")
    assert not data.lacking(BY_FILE["reuters21578_modapte_text.jsonl.gz"], tmp_path)
    assert converted("reuters21578_modapte_text.jsonl.gz", tmp_path) == expected

    packed = tmp_path / "packed"
    packed.mkdir()
    with tarfile.open(packed / "reuters21578.tar.gz", "w:gz") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content.encode("latin-1")))
    assert converters.reuters_text(packed) == expected


def test_reuters_tfidf() -> None:
    def record(number: int, split: str, topics: list[str], words: str) -> dict[str, Any]:
        return {"id": number, "split": split, "topics": topics, "text": words}

    made = converters.tfidf(
        [
            *(record(k, "train", ["earn"], "Net profit 3rd") for k in range(3)),
            record(3, "train", ["rye"], "net rye"),
            record(4, "test", ["earn"], "profit a net net"),
            record(5, "test", ["tea"], "profit"),
        ]
    )
    # Topics are those of both parts; rows are those that have one.
    assert made["topics"].tolist() == ["earn"]
    assert made["vocab"].tolist() == ["net", "profit"]
    assert made["id_train"].tolist() == [0, 1, 2]
    np.testing.assert_array_equal(made["Y_test"], [[1]])
    ratio = (
        made["X_test_data"][made["X_test_indices"] == 0]
        / made["X_test_data"][made["X_test_indices"] == 1]
    )
    np.testing.assert_allclose(ratio, 1 + np.log(2), rtol=1e-6)


def test_reviews(tmp_path: Path) -> None:
    file = "reviews/nagtegaal_2019.jsonl.gz"
    text(
        tmp_path, "nagtegaal_2019.csv", "id,Title,abstract,label_included", '1,"A, b",,1', "2,C,D,0"
    )
    assert converted(file, tmp_path) == [
        {"title": "A, b", "abstract": "", "included": 1},
        {"title": "C", "abstract": "D", "included": 0},
    ]
    text(tmp_path, "nagtegaal_2019.csv", "id,title", "1,A")
    with pytest.raises(ValueError, match="needs the columns title, abstract and one of included"):
        converted(file, tmp_path)


# -- the files in use ----------------------------------------------------------------------------


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
def test_digests_are_those_of_the_files_in_use(source: Source) -> None:
    content = data.read(need(source.file))
    assert data.judge(source, content) == "verified"
    if source.sampled:
        assert data.digest(content, source.sampled) == source.fixed


def test_tfidf_of_the_text_is_the_file_in_use() -> None:
    records = data.read(need("reuters21578_modapte_text.jsonl.gz"))
    made = converters.tfidf(records)  # type: ignore[arg-type]
    assert data.judge(BY_FILE["reuters21578_r90_tfidf.npz"], made) == "verified"


def csv_lines(X: Any, y: Any, separator: str) -> list[str]:
    return [
        separator.join(map(str, [*row, label])) for row, label in zip(X.tolist(), y, strict=True)
    ]


def test_files_in_use_survive_their_original_formats(tmp_path: Path) -> None:
    """Write files in use as their originals are written, and convert them back."""
    banana, satimage, letter, usps = (
        data.read(need(f"{name}.npz")) for name in ("banana", "satimage", "letter", "usps")
    )
    text(tmp_path, "banana.dat", "@data", *csv_lines(banana["X"], banana["y"], ", "))
    text(tmp_path, "sat.trn", *csv_lines(satimage["X_train"], satimage["y_train"], " "))
    text(tmp_path, "sat.tst", *csv_lines(satimage["X_test"], satimage["y_test"], " "))
    X, y = (np.concatenate([letter[f"{key}_{part}"] for part in ("train", "test")]) for key in "Xy")
    rows = [
        f"{chr(ord('A') + label)},{','.join(map(str, row))}"
        for row, label in zip(X.tolist(), y, strict=True)
    ]
    text(tmp_path, "letter-recognition.data", *rows)
    for part in ("train", "test"):
        pixels = 2 * usps[f"X_{part}"].astype(np.float64) - 1
        table = np.column_stack([usps[f"y_{part}"], pixels])
        np.savetxt(tmp_path / f"zip.{part}", table, fmt="%.4f")
    for name in ("banana.npz", "satimage.npz", "letter.npz", "usps.npz"):
        assert data.convert(BY_FILE[name], tmp_path, tmp_path / "made") == "verified", name


def test_more_files_in_use_survive_their_original_formats(tmp_path: Path) -> None:
    a9a, dna, abalone = (data.read(need(f"{name}.npz")) for name in ("a9a", "dna", "abalone"))
    for part, end in (("train", ""), ("test", ".t")):
        columns = np.split(a9a[f"X_{part}_indices"] + 1, a9a[f"X_{part}_indptr"][1:-1])
        write_indicators(tmp_path / f"a9a{end}", columns, a9a[f"y_{part}"], "{:+d} ")
        columns = [np.flatnonzero(row) + 1 for row in dna[f"X_{part}"]]
        write_indicators(tmp_path / f"dna.scale{end}", columns, dna[f"y_{part}"] + 1, "{} ")
    sexes = np.array(list("MFI"))[abalone["X"][:, :3].argmax(axis=1)]
    rows = zip(sexes, csv_lines(abalone["X"][:, 3:], abalone["y"], ","), strict=True)
    text(tmp_path, "abalone.data", *(f"{sex},{row}" for sex, row in rows))
    for name in ("a9a.npz", "dna.npz", "abalone.npz"):
        assert data.convert(BY_FILE[name], tmp_path, tmp_path / "made") == "verified", name


def write_indicators(path: Path, columns: Any, y: Any, label: str) -> None:
    """Write svmlight text as LIBSVM's site has it, with a space at the end of each line."""
    lines = ("".join(f"{column}:1 " for column in row.tolist()) for row in columns)
    rows = zip(y.tolist(), lines, strict=True)
    path.write_text("".join(f"{label.format(one)}{line}\n" for one, line in rows), newline="\n")
