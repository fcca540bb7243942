"""Draw the layers of the package into docs/images/house.svg: python docs/make_house.py.

pyproject.toml lists the layers, and `make lint` enforces them.
"""

from __future__ import annotations

import tomllib
from html import escape
from pathlib import Path

HERE = Path(__file__).parent
PICTURE = HERE / "images" / "house.svg"
WIDTH, ROW, LEFT, TEXT = 900, 40, 60, 290  # pixels
# Kind and purpose of each layer, by its first module. The kind determines the colour.
PURPOSE = {
    "__main__": ("commands", "python -m marginwise"),
    "cli": ("commands", "the command line"),
    "label": ("applications", "labelling in the browser"),
    "dask": ("applications", "training and scoring on a cluster"),
    "active": ("applications", "tools around a model"),
    "data": ("applications", "files, columns, streams"),
    "model_io": ("estimators", "save and load"),
    "tuning": ("estimators", "OnlineSVCCV"),
    "online": ("estimators", "one estimator each"),
    "_tuning": ("machinery", "searching for C and gamma"),
    "_estimator": ("machinery", "what the estimators share"),
    "_compression": ("machinery", "smaller models"),
    "_training": ("machinery", "bringing examples to a model"),
    "_files": ("machinery", "model files"),
    "_engine": ("machinery", "the native model, seen from Python"),
    "_algorithm": ("basement", "records, probabilities, progress"),
    "_checks": ("basement", "checking what callers give"),
    "_arrays": ("basement", "types, plots, warnings"),
    "_extras": ("basement", "commands that install extras"),
    "_core": ("core", "the native core, in C++"),
}
COLOURS = {
    "commands": "#f6dfae",
    "applications": "#cfe3f1",
    "estimators": "#cdeadd",
    "machinery": "#ece3f5",
    "basement": "#ececec",
    "core": "#f3d3c3",
}


def layers() -> list[str]:
    """Return the layers, from the top down."""
    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))
    contract = project["tool"]["importlinter"]["contracts"][0]
    return [layer.strip("()") for layer in contract["layers"]]


def storey(layer: str, top: int) -> list[str]:
    """Return the SVG of one layer: its purpose and its modules."""
    kind, purpose = PURPOSE[layer.split(" | ")[0]]
    box = f'x="{LEFT}" y="{top}" width="{WIDTH - LEFT - 10}" height="{ROW - 6}" rx="6"'
    middle = top + ROW // 2 + 2
    return [
        f'<rect {box} fill="{COLOURS[kind]}" stroke="#777" stroke-width="0.7"/>',
        f'<text x="{LEFT + 14}" y="{middle}">{escape(purpose)}</text>',
        f'<text x="{LEFT + 14 + TEXT}" y="{middle}" class="code">'
        f"{escape(layer.replace(' | ', '  '))}</text>",
    ]


def picture() -> str:
    """Return the picture as SVG."""
    found = layers()
    height = ROW * len(found) + 16
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        'font-family="Helvetica, Arial, sans-serif" font-size="15" fill="#1b1b1b">',
        "<style>.code { font-family: Menlo, Consolas, monospace; font-size: 13.5px }</style>",
        f'<rect width="{WIDTH}" height="{height}" rx="10" fill="#ffffff"/>',
        f'<path d="M30 14 V{height - 18}" stroke="#444" stroke-width="2"/>',
        f'<path d="M23 {height - 28} L30 {height - 12} L37 {height - 28} Z" fill="#444"/>',
        f'<text x="22" y="{height // 2}" transform="rotate(-90 22 {height // 2})" '
        'text-anchor="middle">imports</text>',
    ]
    for k, layer in enumerate(found):
        lines += storey(layer, 10 + k * ROW)
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
