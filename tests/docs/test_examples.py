"""The examples and the benchmark run, and say what they should."""

import base64
import gzip
import hashlib
import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_moons

import marginwise

ROOT = Path(__file__).parents[2]


def run(
    script: str, *arguments: str | Path, typed: str | None = None
) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "MARGINWISE_DATA"}
    return subprocess.run(
        [sys.executable, ROOT / script, *arguments],
        input=typed,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        env={**environment, "PYTHONIOENCODING": "utf-8"},
    )


def test_stream_example() -> None:
    done = run("examples/stream.py")
    assert done.returncode == 0, done.stderr
    assert "after 100 examples of one class: predicts [1]" in done.stdout
    early, late = (float(text) for text in re.findall(r"accuracy (\d\.\d+)", done.stdout))
    assert early > 0.95
    assert late > 0.96
    assert "the same model, bit for bit" in done.stdout
    support, held = (int(n) for n in re.findall(r"finished: (\d+) .* of (\d+)", done.stdout)[0])
    assert 0 < support <= held < 2600


def test_demo_on_few_rows(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "demo.png"
    done = run("examples/demo.py", "--rows", "600", "--picture", picture)
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if re.match(r"(OnlineSVC|SVC)\b", line)]
    assert [row[:19].strip() for row in rows] == ["OnlineSVC", "OnlineSVC, converge", "SVC"] * 2
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_learning_curves_of_few_runs(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "curves.png"
    few = ("--seeds", "2", "--labels", "40", "--picture", picture)
    done = run("examples/learning_curves.py", *few)
    assert done.returncode == 0, done.stderr
    rows = re.findall(r"^ +(\d+|all) +[\d.]+", done.stdout, re.MULTILINE)
    assert rows == ["10", "15", "20", "30", "40", "all"] * 2
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_both_searches_choose_a_good_pair(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "tuning.png"
    done = run("examples/tune.py", "--picture", picture)
    assert done.returncode == 0, done.stderr
    found = re.findall(r"^(grid|halving): .*, ([\d.]+) on test rows", done.stdout, re.MULTILINE)
    assert [search for search, _ in found] == ["grid", "halving"]
    assert all(float(accuracy) > 0.98 for _, accuracy in found)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_probabilities_follow_a_stream(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "probabilities.png"
    done = run("examples/probabilities.py", "--rows", "6000", "--picture", picture)
    assert done.returncode == 0, done.stderr
    all_rows = re.search(r"all rows: ([\d.]+), at best ([\d.]+);", done.stdout)
    assert all_rows is not None
    assert float(all_rows[1]) < 1.15 * float(all_rows[2])
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_compressed_model_keeps_the_error(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "compression.png"
    done = run("examples/compress.py", "--rows", "6000", "--picture", picture)
    assert done.returncode == 0, done.stderr
    found = re.findall(r"^(\w+): +([\d,]+) vectors, error ([\d.]+) %", done.stdout, re.MULTILINE)
    assert [name for name, _, _ in found] == ["full", "compressed"]
    (_, many, full), (_, few, error) = found
    assert int(few.replace(",", "")) * 4 < int(many.replace(",", ""))
    assert float(error) < float(full) + 2
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_every_estimator_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "choosing.png"
    done = run("examples/choosing.py", "--seeds", "1", "--rows", "150", "--picture", picture)
    assert done.returncode == 0, done.stderr
    rows = re.findall(r"^(\w+)\S*.* +([\d.]+|any) +[\d.]+ +[\d.]+ +\d+$", done.stdout, re.M)
    catalogue = {
        name for name in marginwise.__all__ if hasattr(getattr(marginwise, name), "duality_gap")
    }  # the classifiers
    assert {name for name, _ in rows} == (catalogue - {"OnlineSVCCV", "CompressedSVC"}) | {"SVC"}
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_wrong_labels_swell_the_hinge_only() -> None:
    done = run("examples/wrong_labels.py", "--rows", "600", "--seeds", "1")
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if re.match(r"(SVC|GapSVC|Exact)", line)]
    sizes = {row[:16].strip(): [int(n) for n in re.findall(r"% +(\d+)", row)] for row in rows}
    assert len(sizes) == 5
    for name, (right, *_, wrong) in sizes.items():
        hinge = name in ("SVC", "GapSVC, hinge")
        assert (wrong > 0.6 * 600) == hinge, name  # with three tenths of the labels wrong
        assert right < 0.35 * 600, name
    suspects = re.search(r"Of these, (\d+)% are labelled wrong", done.stdout)
    assert suspects is not None
    assert int(suspects[1]) > 80


def test_wrong_labels_are_found(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "suspects.png"
    done = run("examples/find_label_errors.py", "--picture", picture)
    assert done.returncode == 0, done.stderr
    assert "135 of 1,347 labels are wrong" in done.stdout
    shares = [int(share) for share in re.findall(r"^(\d+)% of the", done.stdout, re.MULTILINE)]
    assert min(shares) >= 90
    rows = re.findall(r"^ +\d+ +(\d) +(\d) +(\d) +0\.\d+ +-\d", done.stdout, re.MULTILINE)
    assert len(rows) == 8
    assert all(label != suggested == truth for label, suggested, truth in rows)
    errors = [float(error) for error in re.findall(r"([\d.]+) %$", done.stdout, re.MULTILINE)]
    assert len(errors) == 4
    assert max(errors[1], errors[2]) < errors[0]
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_persons_are_forgotten() -> None:
    done = run("examples/forgetting.py", "--persons", "40")
    assert done.returncode == 0, done.stderr
    rows = re.findall(r"^ +(\d+) +(\d+) .* ms +(\S+)$", done.stdout, re.MULTILINE)
    assert [(persons, n) for persons, n, _ in rows] == [("1", "20"), ("5", "100"), ("20", "400")]
    assert all(float(off) < 1e-9 for _, _, off in rows)
    assert "holds 780 rows of the others,\nand 0 of the 20 that were forgotten" in done.stdout
    checked = re.search(r"without the row: off by (\S+)\)", done.stdout)
    assert checked is not None
    assert float(checked[1]) < 1e-9
    known, new = (float(n) for n in re.findall(r"persons +([\d.]+)%", done.stdout))
    assert 5 < known < new < 40


def test_windows_on_a_stream_that_turns(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "drift.png"
    few = ("--rows", "2000", "--window", "80", "--picture", picture)
    done = run("examples/drift.py", *few)
    assert done.returncode == 0, done.stderr
    rows = re.findall(r"^(.*?) +([\d.]+)% +([\d.]+)% +([\d.]+)%$", done.stdout, re.MULTILINE)
    everything, lightest, oldest, _, outside = ([float(n) for n in row[1:]] for row in rows)
    assert max(everything[0], lightest[0], oldest[0]) < 5
    assert oldest[2] < 6 < lightest[2] < everything[2]
    assert outside[1] > 1.5 * outside[0]  # the change is noticed
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("mode", ["--streams", "--late", "--flip"])
def test_estimators_on_streams_that_drift(mode: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "streams.png"
    few = ("--rows", "1600", "--seeds", "1", "--plot", picture)
    done = run("examples/drift.py", mode, *few)
    assert done.returncode == 0, done.stderr
    lines = re.findall(r"^\| (\S.*?) \| ([\d., |]+) \|$", done.stdout, re.MULTILINE)
    found = {name: [float(n.replace(",", "")) for n in cells.split(" | ")] for name, cells in lines}
    oldest = found['`ExactSVC(window=500, evict="oldest")`']
    assert len({len(cells) for cells in found.values()}) == 1
    if mode == "--streams":
        assert oldest[1] < found["`ExactRampSVC()`"][1]
        assert picture.read_bytes().startswith(b"\x89PNG")
    elif mode == "--late":
        assert oldest[2] < found["`OnlineSVC(replay=1000)`"][2]
    else:
        assert found["`ExactRampSVC()`"][1] < 0.3 < oldest[1]


def test_trees_of_river_are_compared() -> None:
    pytest.importorskip("river", reason="the trees of examples/drift.py are those of river")
    done = run("examples/drift.py", "--flip", "--rows", "400", "--seeds", "1")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("(river)") == 2


def test_digits_are_learned_with_variants(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "variants.png"
    few = ("--images", "200", "--variants", "6", "--seeds", "2", "--picture", picture)
    done = run("examples/virtual_digits.py", *few)
    assert done.returncode == 0, done.stderr
    rows = re.findall(r"^(.*?) +([\d.]+) % +([\d,]+) +([\d,]+) +[\d.]+ s$", done.stdout, re.M)
    assert [name for name, *_ in rows] == [
        "the images alone",
        "6 variants, all",
        "6 variants, autoactive",
        "30 variants, all",
        "30 variants, autoactive",
    ]
    errors = [float(error) for _, error, _, _ in rows]
    assert max(errors[1], errors[3]) < errors[0] < 10
    learned = [int(count.replace(",", "")) for _, _, count, _ in rows]
    assert learned[:2] == [200, 1200]
    assert learned[4] < 0.3 * learned[3] == 0.3 * 6000
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_pictures_of_invariance(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    done = run("examples/invariance_pictures.py", "--folder", tmp_path)
    assert done.returncode == 0, done.stderr
    drawn = {path.name for path in tmp_path.iterdir()}
    assert drawn == {f"invariance_{name}.png" for name in ("tangents", "fields", "variants")}
    assert done.stdout.count("picture: ") == 3


SMS = "examples/label_sms.py"


def test_sms_are_made_up_where_there_are_none() -> None:
    done = run(SMS, "--rows", "600", "--seeds", "2", "--labels", "60")
    assert done.returncode == 0, done.stderr
    assert "the messages are made up" in done.stdout
    errors = re.findall(r"^ +60 +([\d.]+) +([\d.]+)", done.stdout, re.MULTILINE)
    active, random = (float(text) for text in errors[0])
    assert active <= random
    early, late = (int(n) for n in re.findall(r"stopped after (\d+) labels", done.stdout))
    assert early <= late < 600 * 0.7
    assert done.stdout.count("unseen rows lies inside the margin") == 2
    assert len(re.findall(r"^  +-?\d\.\d\d  \S", done.stdout, re.MULTILINE)) == 10


def test_sms_are_read_from_a_file(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "sms_spam.jsonl.gz", "wt", encoding="utf-8") as file:
        for k in range(200):
            spam = k % 4 == 0
            text = f"win cash prize {k % 7}" if spam else f"see you at home {k % 9}"
            file.write(json.dumps({"label": int(spam), "text": f"{text}\t\t"}) + "\n")
    done = run(SMS, "--data", tmp_path, "--seeds", "1", "--labels", "40")
    assert done.returncode == 0, done.stderr
    assert "made up" not in done.stdout
    assert "140 messages to ask about" in done.stdout
    assert "win cash prize" in done.stdout.partition("most spam-like")[2]


def test_sms_are_labelled_by_hand(tmp_path: Path) -> None:
    kept = tmp_path / "kept.mwz"
    few = ("--rows", "300", "--interactive", "--keep", kept)
    done = run(SMS, *few, typed="y\nn\nwhat?\nundo\nno\nskip\nn\nq\n")
    assert done.returncode == 0, done.stderr
    assert "taken back" in done.stdout
    assert "most spam-like of 206 messages" in done.stdout  # 210, three labels and a skip
    asked = re.findall(r"^(\d+)\. (.*)$", done.stdout, re.MULTILINE)
    again = run(SMS, *few, typed="")
    assert "3 labels were kept" in again.stdout
    assert re.findall(r"^(\d+)\. (.*)$", again.stdout, re.MULTILINE) == asked[-1:]


def test_sms_without_both_kinds_of_labels() -> None:
    done = run(SMS, "--rows", "300", "--interactive", typed="n\nundo\nundo\nn\n")
    assert done.returncode == 0, done.stderr
    assert "there is nothing to take back" in done.stdout
    assert "There is no model yet" in done.stdout


def test_benchmark_on_small_data(tmp_path: Path) -> None:
    X, y = make_moons(400, noise=0.2, random_state=0)
    data, out = tmp_path / "banana.npz", tmp_path / "speed.json"
    np.savez(data, X=X.astype(np.float32), y=2 * y - 1)
    few = ("--quick", "--no-intelex", "--threads", "1", "--rounds", "1")
    done = run(
        "benchmarks/speed.py",
        "--data",
        tmp_path,
        "--out",
        out,
        *few,
        "--only",
        "banana",
        "learn_one",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "banana: fit: times faster than SVC" in done.stdout
    report = json.loads(out.read_text(encoding="utf-8"))
    assert report["data"] == {"banana.npz": hashlib.sha256(data.read_bytes()).hexdigest()}
    assert {"machine", "versions", "commit", "dirty"} <= report.keys()
    race = report["works"]["banana"]["measurements"]
    assert race.keys() == {"OnlineSVC", "OnlineSVC, converge", "SVC"}
    for (measurement,) in race.values():
        assert measurement["fit"]["wall"] > 0
        assert measurement["error"] < 15
        assert measurement["load"].keys() == {"before", "after"}
    measured = {figure["what"]: figure["measured"] for figure in report["figures"]}
    assert abs(measured["error above SVC's, points"]) < 10
    assert measured["converge: error off SVC's, points"] < 10
    assert measured["microseconds a call, median"] > 0


def test_errors_are_compared_with_those_of_svc(tmp_path: Path) -> None:
    X, y = make_moons(1400, noise=0.2, random_state=0)
    data, out = tmp_path / "banana.npz", tmp_path / "gap.json"
    np.savez(data, X=X.astype(np.float32), y=2 * y - 1)
    given = ("--quick", "--data", tmp_path, "--out", out, "--only", "banana", "settings")
    done = run("benchmarks/gap_to_svc.py", *given)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^banana +[+-]\d\.\d{3} ± \d\.\d{3}$", done.stdout, re.MULTILINE)
    assert "3 random settings, of which OnlineSVC refuses or is too slow in 0:" in done.stdout
    report = json.loads(out.read_text(encoding="utf-8"))
    assert report["data"] == {"banana.npz": hashlib.sha256(data.read_bytes()).hexdigest()}
    assert {"machine", "versions", "commit", "dirty"} <= report.keys()
    assert report["cases"].keys() == {"banana/500/0", *(f"settings/{k}" for k in range(3))}
    for case in report["cases"].values():
        assert len(case["ours"]) == 1
        for fit in (case["svc"], *case["ours"]):
            bits = np.unpackbits(np.frombuffer(base64.b64decode(fit["wrong"]), dtype=np.uint8))
            assert fit["error"] == pytest.approx(100 * bits.sum() / fit["test_rows"])

    # The results of SVC are kept when the package changes, unless the data change as well.
    code, report["code"] = report["code"], "another version"
    report["cases"]["settings/0"]["svc"]["cpu"] = -1.0
    report["cases"]["settings/1"]["svc"] |= {"cpu": -1.0, "digest": "other data"}
    report["cases"]["settings/2"]["ours"][0]["cpu"] = -1.0
    out.write_text(json.dumps(report), encoding="utf-8")
    done = run("benchmarks/gap_to_svc.py", *given)
    assert done.returncode == 0, done.stdout + done.stderr
    cases = json.loads(out.read_text(encoding="utf-8"))["cases"]
    assert cases["settings/0"]["svc"]["cpu"] == -1.0
    assert cases["settings/1"]["svc"]["cpu"] >= 0
    assert cases["settings/2"]["ours"][0]["cpu"] >= 0

    # What is stored is not fitted again, and nothing else is fitted with --stored.
    del cases["settings/2"]
    out.write_text(json.dumps({**report, "code": code, "cases": cases}), encoding="utf-8")
    done = run("benchmarks/gap_to_svc.py", *given, "--stored")
    assert done.returncode == 0, done.stdout + done.stderr
    assert not done.stderr
    assert "2 random settings" in done.stdout


def test_paired_differences_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    # Of four rows, OnlineSVC alone is wrong on two and SVC alone on one: a gap of 25 points.
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    paired = importlib.import_module("paired")
    ours, svc = (paired.stored(np.array(rows) == 1) for rows in ([1, 1, 0, 0], [0, 0, 1, 0]))
    one, none = paired.difference(ours, svc), paired.difference(svc, svc)
    assert one.points == 25.0
    assert one.error == pytest.approx(100 * (3 / 4 - 1 / 16) ** 0.5 / 2)  # of 1, 1, -1 and 0
    assert not one.clearly_worse
    mean = paired.averaged([one, none])
    assert mean.points == 12.5
    assert mean.error == pytest.approx(((one.error / 2) ** 2 + 12.5**2) ** 0.5)
    assert paired.overall([[one], [none]]).error == pytest.approx(12.5)


def test_benchmark_without_data_says_how_to_name_them(tmp_path: Path) -> None:
    done = run("benchmarks/speed.py", "--data", tmp_path / "none")
    assert done.returncode == 1
    assert "--data or in MARGINWISE_DATA" in done.stderr
    done = run("benchmarks/speed.py", "--data", tmp_path, "--only", "banana")
    assert "lacks banana.npz" in done.stderr
