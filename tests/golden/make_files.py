"""Write the files of the commands that every later version must be able to read.

They are models that ``train`` writes from a table, texts, svmlight text and a label store, and the
store itself, which ``label`` writes. ``python tests/golden/make_files.py`` writes those of the
formats in use. Keep the old ones when a format changes.

A table is trained with --missing. If a model does not store these values, its file has the suffix
"-with_options", because ``predict`` needs the options again.
"""

import csv
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from click.testing import CliRunner, Result

from marginwise import OnlineSVC
from marginwise._files.format import PIPELINE_FORMAT
from marginwise.cli import main
from marginwise.label import Answers, LabelStore
from marginwise.label.item_files import Columns
from marginwise.label.queue import Settings
from marginwise.label.schema import VERSION
from marginwise.label.start import Request, start

FILES = Path(__file__).parent / "files"
LABELS = ["play", "film"]
WORDS = {
    "play": ["stage", "curtain", "actor", "applause", "scene", "drama"],
    "film": ["screen", "camera", "reel", "cinema", "director", "popcorn"],
}
MISSING = ["--missing", "NA", "--missing", "-"]


def write_table(path: Path) -> None:
    """Write numbers with two marks for missing values, categories and labels."""
    random = np.random.RandomState(0)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["age", "income", "colour", "answer"])
        for k in range(90):
            age, income = random.randint(18, 80), random.normal(2000, 400)
            colour = random.choice(["red", "green", "größe"])
            answer = "yes" if income + 20 * (age - 50) + 300 * (colour == "red") > 2000 else "no"
            shown = "NA" if k % 7 == 3 else age, "-" if k % 11 == 5 else f"{income:.2f}"
            writer.writerow([*shown, colour, answer])


def write_texts(path: Path) -> None:
    """Write texts and their labels."""
    random = np.random.RandomState(1)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["text", "kind"])
        for k in range(70):
            kind = LABELS[k % 2]
            words = [*random.choice(WORDS[kind], 3), *random.choice(["the", "a", "old", "one"], 2)]
            writer.writerow([f"{' '.join(random.permutation(words))} no. {k}", kind])


def write_rows(path: Path) -> None:
    """Write svmlight text of two features with different ranges, and an empty row."""
    random = np.random.RandomState(2)
    lines = []
    for k in range(60):
        a, b = random.standard_normal(2)
        row = "" if k == 7 else f" 1:{a:.4f} 3:{1000 * b:.2f}"
        lines.append(f"{1 if a * b > 0 else -1}{row}\n")
    path.write_text("".join(lines), encoding="utf-8")


def write_store(path: Path, items: Path) -> None:
    """Label texts for two annotators, who also skip, undo, flag and write a note."""
    columns = Columns(text=("text",))
    truth = dict(csv.reader(items.read_text(encoding="utf-8").splitlines()))
    for name in ("ann", "bob"):
        session, _ = start(
            Request(str(items), columns, store=str(path)),
            Settings((), annotator=name, holdout=0.2, overlap=0.1),
            LABELS,
            lambda *_: OnlineSVC(C=10, gamma=1.0),
        )
        for k in range(18):
            item = session.state()["queue"][0]
            session.answer(f"{name}{k}", item["id"], truth[item["text"]], 1.5)
        session.undo(f"{name} undo")
        item = session.state()["queue"][0]["id"]
        session.skip(f"{name} skip", item, 2.0)
        session.flag(f"{name} flag", item, True)
        session.note(f"{name} note", item, "neither, I think")
        session.close()
    with LabelStore.open(path) as store:
        store.set_meta(items_path=items.name)  # not a path of this machine


def described(path: Path) -> dict[str, Any]:
    """Return what a store says."""
    with LabelStore.open(path, readonly=True) as store:
        events = store.events()
    answers = Answers(events)
    return {
        "events": len(events),
        "answers": [[e.item, e.annotator, e.label, e.purpose] for e in answers.effective()],
        "flagged": [item for item in answers.touched() if answers.flagged(item)],
        "notes": {item: note for item in answers.touched() if (note := answers.note(item))},
    }


def make_store(items: Path) -> None:
    """Write a store, what it says, and a model of its labels."""
    with tempfile.TemporaryDirectory() as folder:  # opening a store adds files beside it
        labels = Path(folder) / f"labels-v{VERSION}.db"
        write_store(labels, items)
        shutil.copyfile(labels, FILES / labels.name)
        write_json(FILES / f"{labels.stem}.json", described(labels))
        train("store", labels, items, "--items", str(items))


def run(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words], catch_exceptions=False)


def train(name: str, data: Path, rows: Path, *options: str) -> None:
    """Train a model by the command, and write beside it what it predicts for rows."""
    version = "_".join(sklearn.__version__.split(".")[:2])
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "model.mwz"
        trained = run("train", data, made, "-q", *options)
        assert trained.exit_code == 0, trained.output
        repeated = [word for word in options if word in MISSING]
        found = run("predict", made, rows, "-q", "--scores")
        if found.exit_code == 0:
            repeated = []
        else:
            name = f"{name}-with_options"
            found = run("predict", made, rows, "-q", "--scores", *repeated)
        assert found.exit_code == 0, found.output
        path = FILES / f"{name}_sklearn_{version}-v{PIPELINE_FORMAT}.mwz"
        shutil.copyfile(made, path)
    expected = {
        "data": rows.name,
        "options": repeated,
        "predicted": found.stdout.splitlines(),
    }
    write_json(path.with_suffix(".json"), expected)


def write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    FILES.mkdir(exist_ok=True)
    write_table(FILES / "table.csv")
    write_texts(FILES / "texts.csv")
    write_rows(FILES / "rows.svm")
    train("table", FILES / "table.csv", FILES / "table.csv", *MISSING)
    train("texts", FILES / "texts.csv", FILES / "texts.csv")
    train("rows", FILES / "rows.svm", FILES / "rows.svm")
    make_store(FILES / "texts.csv")
