"""Arguments and order of the examples in the gallery."""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path
from typing import Any

# The reading order; other examples follow.
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
    """Return the sort key of an example in the gallery."""
    return (NAMES.index(name) if name in NAMES else len(NAMES)), name


def arguments(conf: dict[str, Any], script_vars: dict[str, Any]) -> list[str]:
    """Return the arguments of an example, which its docstring states."""
    text = Path(script_vars["src_file"]).read_text(encoding="utf-8")
    found = SHOWN.search(" ".join((ast.get_docstring(ast.parse(text)) or "").split()))
    return shlex.split(found[2]) if found else []
