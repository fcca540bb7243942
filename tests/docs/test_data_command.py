"""The command that makes the data files, and what it reports."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import numpy as np
import pytest

from reproduce import command, data, runner
from reproduce.sources import BY_FILE, SOURCES, Original, Source

ROOT = Path(__file__).parents[2]
NO_NETWORK = "http://127.0.0.1:9"  # the port of discard, which nothing listens to


def test_another_sample_is_recognised(tmp_path: Path) -> None:
    content = {"X": np.arange(3), "first": np.arange(2)}
    source = Source(
        "a.npz",
        "",
        (),
        "",
        lambda folder: content,
        data.digest(content),
        "",
        ("X",),
        data.digest(content, ["X"]),
    )
    assert data.judge(source, content) == "verified"
    assert data.judge(source, content | {"X": np.arange(4)}) == "another sample"
    assert data.judge(source, content | {"first": np.arange(3)}) == "different"


def test_digest_depends_on_content_only(tmp_path: Path) -> None:
    arrays = {"b": np.arange(6).reshape(2, 3), "a": np.array(["x", "yz"])}
    np.savez(tmp_path / "a.npz", **arrays)
    data.write(tmp_path / "b.npz", dict(reversed(arrays.items())))
    same = {data.digest(data.read(tmp_path / name)) for name in ("a.npz", "b.npz")}
    assert same == {data.digest(arrays)}
    others = [
        arrays | {"b": arrays["b"].astype(np.int32)},
        arrays | {"b": arrays["b"].reshape(3, 2)},
        {"b": arrays["b"], "c": arrays["a"]},
        arrays | {"b": arrays["b"] + 1},
    ]
    assert len({data.digest(other) for other in others} | same) == 5


def test_every_file_has_its_facts() -> None:
    assert len(BY_FILE) == len(SOURCES)
    for source in SOURCES:
        assert len(source.digest) == 64
        assert bool(source.sampled) == (len(source.fixed) == 64)
        assert source.content
        assert source.licence
        assert source.originals
        assert all(one.url.startswith(("http://", "https://")) for one in source.originals)


def test_missing_files_are_named_with_their_originals(tmp_path: Path) -> None:
    (tmp_path / "a9a.npz").touch()
    message = data.missing(["usps.npz", "a9a.npz", "odd.npz"], tmp_path)
    for part in ("lacks odd.npz, usps.npz", "zip.train.gz from https://", "no recipe for odd.npz"):
        assert part in message
    assert f"--originals FOLDER --data {tmp_path} --only usps\n" in message
    assert "a9a" not in message
    assert data.missing(["a9a.npz"], tmp_path) == ""


def test_listing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "usps.npz", X=np.zeros(1))
    (tmp_path / "dna.npz").write_bytes(b"no archive")
    assert data.main(["--list", "--data", str(tmp_path), "--only", "usps", "banana", "dna"]) == 0
    out, _, remark = capsys.readouterr().out.rpartition("\n\n")
    assert "no original has been downloaded" in remark
    states = {
        line.split()[0]: line.split()[1] for line in out.splitlines() if not line[0].isspace()
    }
    assert states == {
        "file": "state",
        "usps.npz": "different",
        "banana.npz": "missing",
        "dna.npz": "unreadable",
    }
    assert "banana.dat  https://" in out


def damaged(path: Path) -> list[bytes]:
    """Contents of an archive that was cut off, and of one with wrong bytes inside."""
    np.savez_compressed(path, X=np.random.default_rng(0).normal(size=999))
    whole = path.read_bytes()
    return [whole[:2000], whole[:2000] + bytes(50) + whole[2050:], b"", b"no archive"]


def test_damaged_files_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "banana.npz"
    for content in damaged(path):
        path.write_bytes(content)
        assert data.main(["--data", str(tmp_path), "--only", "banana"]) == 0
        assert "unreadable (" in capsys.readouterr().out
        runner._digest.cache_clear()
        given = ["bordes2005/figure10", "-q", "--data", str(tmp_path), "--out", str(tmp_path)]
        assert command.main(given) == 1
        assert "banana.npz cannot be read: " in capsys.readouterr().err


def test_the_command_converts_what_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "banana.dat").write_text("1.14,-0.114,-1.0\n")
    folder = tmp_path / "made"
    given = ["--originals", str(tmp_path), "--data", str(folder), "--only", "banana", "letter"]
    assert data.main(given) == 1
    out = capsys.readouterr().out
    assert "banana.npz: different" in out
    assert "letter.npz: skipped: the originals lack letter-recognition.data" in out
    before = (folder / "banana.npz").stat().st_mtime_ns
    assert data.main(given) == 0
    assert "banana.npz: exists (different); --force" in capsys.readouterr().out
    assert (folder / "banana.npz").stat().st_mtime_ns == before
    assert [path.name for path in folder.iterdir()] == ["banana.npz"]


def test_damaged_originals_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cut = gzip.compress(bytes(range(256)) * 9)[:200]
    for name in ("zip.train.gz", "zip.test.gz", "reuters21578.tar.gz"):
        (tmp_path / name).write_bytes(cut)
    (tmp_path / "letter-recognition.data").write_text("\x00,,\n,")
    (tmp_path / "banana.dat").write_text("1,2\n")
    names = ["usps", "reuters21578_r90_tfidf", "letter", "banana"]
    given = ["--originals", str(tmp_path), "--data", str(tmp_path / "made"), "--only", *names]
    assert data.main(given) == 1
    said = capsys.readouterr().out.splitlines()
    assert [line.split(": ")[1] for line in said] == ["failed"] * 4, said
    assert not (tmp_path / "made").exists()


def test_downloads_are_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    public = tmp_path / "public.txt"
    public.write_bytes(b"rows")
    original = Original("a.txt", public.as_uri())
    data.download(original, tmp_path / "originals")
    assert (tmp_path / "originals" / "a.txt").read_bytes() == b"rows"
    with pytest.raises(ValueError, match="expected 00"):
        data.download(Original("b.txt", public.as_uri(), sha256="00"), tmp_path / "originals")
    assert [path.name for path in (tmp_path / "originals").iterdir()] == ["a.txt"]
    with pytest.raises(ConnectionError, match="Without a network, copy the file to"):
        data.download(Original("c.txt", f"{NO_NETWORK}/c.txt"), tmp_path / "originals")
    with pytest.raises(ValueError, match="by hand"):
        data.download(Original("d.csv", "https://example.org", page=True), tmp_path / "originals")
    assert "downloading file://" in capsys.readouterr().out


class Cut(BaseHTTPRequestHandler):
    """Announces 100 bytes and closes the connection after four."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "100")
        self.end_headers()
        self.wfile.write(b"rows")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_a_download_that_breaks_off(tmp_path: Path) -> None:
    with HTTPServer(("127.0.0.1", 0), Cut) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        original = Original("a.txt", f"http://127.0.0.1:{server.server_port}/a.txt")
        with pytest.raises(ConnectionError, match="cannot be downloaded: IncompleteRead"):
            data.download(original, tmp_path)
        thread.join()
    assert not list(tmp_path.iterdir())


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(SystemExit, match=r"no data file minst; expected mnist, a9a"):
        data.main(["--only", "minst"])


@pytest.mark.parametrize("way", [["-m", "reproduce.data"], ["reproduce/data.py"]])
def test_both_ways_to_run_it(way: list[str], tmp_path: Path) -> None:
    command = [sys.executable, *way, "--data", str(tmp_path), "--only", "a9a"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    assert "a9a.npz" in done.stdout
    assert "missing" in done.stdout


def test_records_are_stored_as_json_lines(tmp_path: Path) -> None:
    data.write(tmp_path / "a.jsonl.gz", [{"text": "£"}])
    with gzip.open(tmp_path / "a.jsonl.gz", "rt", encoding="utf-8") as file:
        assert json.loads(file.read()) == {"text": "£"}
