"""Check the estimate of unseen relevant items on published reviews, whose labels are known.

    python benchmarks/review.py                     five reviews, four seeds each
    python benchmarks/review.py --seeds 1 --most 300

The known labels answer a session with the goal "find", without a browser. After every 50 answers,
the true number of unseen relevant items and the true recall are compared with their estimates and
bounds. Sets are read from the folder named by --data or MARGINWISE_DATA.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from report import commit, machine, versions

from marginwise import OnlineSVC
from marginwise.data import load_dataset
from marginwise.label.features import make_features
from marginwise.label.item_files import TextContent
from marginwise.label.items import Items, grouped
from marginwise.label.queue import Settings
from marginwise.label.session import Session
from marginwise.label.store import LabelStore

REVIEWS = (
    "bannach_brown_2019",
    "cohen_2006_aceinhibitors",
    "cohen_2006_betablockers",
    "kitchenham_2010",
    "nagtegaal_2019",
)
STEP = 50
ROOT = Path(__file__).parents[1]


def read(name: str, data: str | None) -> Items:
    import pyarrow as pa

    found = load_dataset(f"reviews/{name}", data=data)
    table = found.X_train.to_pydict()
    texts = [
        f"{a or ''}\n\n{b or ''}" for a, b in zip(table["title"], table["abstract"], strict=True)
    ]
    labels = ["in" if y else "out" for y in found.y_train.tolist()]
    return grouped(name, TextContent(pa.array(texts, pa.large_string())), labels)


def simulate(items: Items, X: Any, truth: list[str], seed: int, most: int) -> list[dict[str, Any]]:
    """Answer at most `most` questions; return estimates and true values after every 50."""
    settings = Settings(("in", "out"), annotator="simulated", goal="find", seed=seed)
    points = []
    with tempfile.TemporaryDirectory() as folder:
        store = LabelStore.open(Path(folder) / "labels.db")
        estimator = OnlineSVC(C=10, gamma=1.0)
        session = Session(items, X, store, estimator=estimator, settings=settings)
        queue = session.state()["queue"]
        for k in range(1, min(most, len(items)) + 1):
            item = queue[0]["id"]
            queue = session.answer(str(k), item, truth[items.row(item)])["queue"]
            if k % STEP == 0:
                points.append(point(session, truth))
        session.close()
    return points


def point(session: Session, truth: list[str]) -> dict[str, Any]:
    review = session.progress()["review"]
    left = truth.count("in") - review["found"]
    return {
        "seen": review["seen"],
        "true_recall": review["found"] / truth.count("in"),
        "true_unseen": left,
        **{name: review[name] for name in ("unseen", "unseen_low", "unseen_high", "recall", "low")},
        "covered": bool(review["unseen_low"] <= left <= review["unseen_high"]),
        "stop": session.progress()["stop"]["stop"],
    }


def run(name: str, options: argparse.Namespace) -> dict[str, Any]:
    items = read(name, options.data)
    truth = [label or "" for label in items.labels]
    items.labels = [None] * len(items)
    X = make_features(items).X
    points = [
        {"seed": seed, **found}
        for seed in range(options.seeds)
        for found in simulate(items, X, truth, seed, options.most)
    ]
    covered = float(np.mean([found["covered"] for found in points]))
    error = float(np.median([abs(found["unseen"] - found["true_unseen"]) for found in points]))
    width = float(np.median([found["unseen_high"] - found["unseen_low"] for found in points]))
    print(
        f"{name}: {len(items)} items, {truth.count('in')} relevant, {len(points)} points: bounds "
        f"hold {covered:.1%}, median error {error:.1f}, median width {width:.0f}",
        flush=True,
    )
    return {
        "items": len(items),
        "relevant": truth.count("in"),
        "covered": covered,
        "points": points,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", default=os.environ.get("MARGINWISE_DATA"))
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--most", type=int, default=1000)
    parser.add_argument("--out", default=str(ROOT / "benchmarks" / "results" / "review.json"))
    options = parser.parse_args()
    facts = {"machine": machine(), "versions": versions(), "commit": commit(ROOT)}
    reviews = {name: run(name, options) for name in REVIEWS}
    every = [found["covered"] for review in reviews.values() for found in review["points"]]
    print(f"bounds hold at {np.mean(every):.1%} of {len(every)} points")
    Path(options.out).write_text(json.dumps({**facts, "reviews": reviews}, indent=1) + "\n")


if __name__ == "__main__":
    main()
