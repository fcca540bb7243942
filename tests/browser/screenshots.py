"""Take the pictures of docs/guide/label.md from the running page.

    python -m tests.browser.screenshots [FOLDER]

The items are handwritten digits that come with scikit-learn, and texts that are made up here.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.browser.conftest import ARGUMENTS, NAMES
from tests.browser.serving import Labelling, until, write_csv

IMAGES = Path(__file__).parents[2] / "docs" / "images"
DIGITS = [*"1234567890"]
DRUGS = ("enalapril", "ramipril", "lisinopril", "metoprolol", "amlodipine", "atorvastatin")
INHIBITORS = DRUGS[:3]
DESIGNS = ("a randomised trial", "a cohort study", "a review of case reports", "a pilot study")
PATIENTS = ("older adults", "patients with diabetes", "patients after surgery", "veterans")
ENDPOINTS = ("blood pressure", "renal function", "hospital admissions", "exercise capacity")


def digits(folder: Path) -> Callable[[dict[str, Any]], str]:
    """Write the digits of scikit-learn as images; return what knows their labels."""
    from PIL import Image
    from sklearn.datasets import load_digits

    data = load_digits()
    names = {}
    for k, (pixels, label) in enumerate(zip(data.images, data.target, strict=True)):
        image = Image.fromarray((255 - 15.9 * pixels).astype("uint8"))
        image.resize((128, 128), Image.Resampling.BICUBIC).save(folder / f"{k:04}.png")
        names[f"{k:04}.png"] = str(label)
    return lambda item: names[Path(item["title"]).name]


def studies(path: Path, count: int = 900) -> Callable[[dict[str, Any]], str]:
    """Write made-up studies of drugs; return what knows which are relevant."""
    rng = random.Random(0)
    rows, relevant = [], set()
    for _ in range(count):
        drug, design = rng.choice(DRUGS), rng.choice(DESIGNS)
        patients, endpoint = rng.choice(PATIENTS), rng.choice(ENDPOINTS)
        title = f"Effect of {drug} on {endpoint} in {patients}: {design}"
        number, weeks = rng.randrange(24, 900), rng.choice((12, 26, 52))
        verb = rng.choice(("improved", "did not change", "reduced"))
        abstract = (
            f"Background: Whether {drug} alters {endpoint} in {patients} is uncertain. "
            f"Methods: We followed {number} participants at {rng.randrange(2, 30)} sites for "
            f"{weeks} weeks in {design}. "
            f"Results: Compared with usual care, {drug} {verb} {endpoint}. Adverse events were "
            f"recorded in {rng.randrange(2, 30)} % of the participants. "
            f"Conclusions: The findings apply to {patients}; longer studies of {drug} are needed."
        )
        rows.append({"title": title, "abstract": abstract})
        if drug in INHIBITORS and design == DESIGNS[0]:
            relevant.add(title)
    write_csv(path, rows)
    return lambda item: "relevant" if any(title in shown(item) for title in relevant) else "other"


def shown(item: dict[str, Any]) -> str:
    return f"{item.get('title', '')} {item['text']}"


def answer(server: Labelling, truth: Callable[[dict[str, Any]], str], count: int) -> None:
    """Answer questions as a careful annotator would, one in three seconds."""
    append, start = server.session.store.append, time.time() - 3.1 * count
    for k in range(count):
        then = start + 3.1 * k
        server.session.store.append = lambda event, at=then: append(replace(event, time=at))
        item = server.session.state()["queue"][0]
        server.session.answer(f"key {k}", item["id"], truth(item), 2.0)
    server.session.store.append = append


def take(browser: Any, server: Labelling, path: Path, prepare: Any = None, **options: Any) -> None:
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 860}, **options})
    page = context.new_page()
    page.goto(server.url)
    page.wait_for_selector("#labels button")
    page.wait_for_selector("#support-chart canvas")
    until(page, "() => [...document.images].every((image) => image.complete)")
    if prepare is not None:
        prepare(page)
    page.wait_for_timeout(400)
    page.screenshot(path=path)
    context.close()
    smaller(path)


def smaller(path: Path) -> None:
    """Write a picture with 256 colours, which is a third of its size."""
    from PIL import Image

    with Image.open(path) as image:
        image.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)


def look_back(page: Any) -> None:
    page.keyboard.press("ArrowLeft")
    page.wait_for_selector("#past:not([hidden])")


def main(out: Path) -> None:
    from playwright.sync_api import sync_playwright

    out.mkdir(parents=True, exist_ok=True)
    path = next(path for path in map(shutil.which, NAMES) if path)
    phone = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "color_scheme": "dark"}
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        (folder / "digits").mkdir()
        truth = digits(folder / "digits")
        holdout = {"holdout": 0.1}
        server = Labelling(folder / "digits", folder / "a.db", DIGITS, settings=holdout).start()
        answer(server, truth, 240)
        take(browser, server, out / "label_digits.png")
        take(browser, server, out / "label_history.png", look_back, color_scheme="dark")
        server.stop()
        truth = studies(folder / "studies.csv")
        labels, columns = ["relevant", "other"], {"text": ("title", "abstract")}
        server = Labelling(
            folder / "studies.csv", folder / "b.db", labels, columns=columns,
            settings={"goal": "find"},
        ).start()  # fmt: skip
        answer(server, truth, 160)
        take(browser, server, out / "label_review.png")
        take(browser, server, out / "label_phone.png", **phone)
        server.stop()
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES)
