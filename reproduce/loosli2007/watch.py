"""Figures that are measured while a model learns from a source."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from reproduce.loosli2007.setup import SIFT, Images, features_of, model, sizes, virtual
from reproduce.measures import error

DROP = 0.97  # of the members that remain, at most, when a model is finished


class Watch:
    """A callback of `learn_from` that tests the model, without counting the time this takes."""

    def __init__(self, X: Any, y: Any, examples: int, points: int) -> None:
        self._X, self._y = X, y
        self._examples, self._step = examples, examples / points
        self._began, self._began_cpu = time.perf_counter(), time.process_time()
        names = ("examples", "error", "support_vectors", "members", "wall", "cpu", "hidden")
        self.curve: dict[str, list[Any]] = {name: [] for name in names}
        self.members: list[tuple[int, int]] = []  # after each chunk: examples, members

    def __call__(self, model: Any, moment: Any) -> None:
        self.members.append((moment.examples, model.stats_["members"]))
        due = (len(self.curve["examples"]) + 1) * self._step
        if moment.examples < min(due, self._examples):
            return
        wall, cpu = time.perf_counter() - self._began, time.process_time() - self._began_cpu
        values = (
            moment.examples,
            error(model, self._X, self._y),
            int(np.count_nonzero(model.dual_coef_)),
            model.stats_["members"],
            wall,
            cpu,
            100 * moment.tally.lost,
        )
        for name, value in zip(self.curve, values, strict=True):
            self.curve[name].append(value)
        self._began = time.perf_counter() - wall
        self._began_cpu = time.process_time() - cpu


def outline(members: list[tuple[int, int]], points: int = 80) -> dict[str, list[int]]:
    """Thin a curve of members out, but keep the points before and after each finishing."""
    last = len(members) - 1
    kept = {round(at) for at in np.linspace(0, last, min(points, last + 1))}
    for k in range(1, last + 1):
        if members[k][1] < DROP * members[k - 1][1]:
            kept |= {k - 1, k}
    at, held = zip(*(members[k] for k in sorted(kept)), strict=True)
    return {"examples": list(at), "members": list(held)}


def learn(
    images: Images, features: str, variants: int, seed: int, points: int, **given: Any
) -> dict[str, Any]:
    """Learn images and their variants with sifting, and return what was measured on the way."""
    transform = features_of(images, features)
    X_test = images.X_test if transform is None else transform.transform(images.X_test)
    source = virtual(images, variants, transform, random_state=seed)
    watch = Watch(X_test, images.y_test, len(source), points)
    learned = model(seed, **given).learn_from(source, sift=SIFT, callback=watch)
    ends = {name: values[-1] for name, values in watch.curve.items()}
    return {
        **sizes(learned),
        "examples": ends["examples"],
        "error": ends["error"],
        "hidden": ends["hidden"],
        "fit": {"wall": ends["wall"], "cpu": ends["cpu"]},
        "curve": watch.curve,
        "outline": outline(watch.members),
    }
