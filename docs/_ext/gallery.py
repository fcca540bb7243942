"""How the gallery runs and orders the examples."""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path
from typing import Any

# From the first thing to read to the last; examples that are not named here come after these.
NAMES = [
    "demo.py",
    "stream.py",
    "choosing.py",
    "tune.py",
    "probabilities.py",
    "compress.py",
    "learning_curves.py",
    "label_sms.py",
    "find_label_errors.py",
    "wrong_labels.py",
    "drift.py",
    "forgetting.py",
    "virtual_digits.py",
    "invariance_pictures.py",
]
SHOWN = re.compile(r"This page shows ``python examples/(\S+\.py)([^`]*)``")


def order(name: str) -> tuple[int, str]:
    """Return the place of an example in the gallery."""
    return (NAMES.index(name) if name in NAMES else len(NAMES)), name


def arguments(conf: dict[str, Any], script_vars: dict[str, Any]) -> list[str]:
    """Return the arguments with which an example runs: those that its docstring names."""
    text = Path(script_vars["src_file"]).read_text(encoding="utf-8")
    found = SHOWN.search(" ".join((ast.get_docstring(ast.parse(text)) or "").split()))
    return shlex.split(found[2]) if found else []
