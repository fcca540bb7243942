"""Convert all results to one HTML file with embedded pictures, readable without a network.

Only the Markdown that reproduce/pages.py writes is supported.
"""

from __future__ import annotations

import base64
import html
import re
from pathlib import Path

STYLE = """
:root { color-scheme: light dark; --line: #8884; --link: light-dark(#0b57b0, #8ab4f8); }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: auto; padding: 1rem; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid var(--line); padding: .25rem .6rem; text-align: left; }
td { vertical-align: top; } .right { text-align: right; }
.wide { overflow-x: auto; } a { color: var(--link); }
img { max-width: 100%; height: auto; background: white; }
pre { padding: .5rem; border: 1px solid var(--line); overflow-x: auto; }
h1 { margin-top: 3rem; }
"""


def inline(text: str) -> str:
    """Convert bold text, code and links to HTML."""
    shown = html.escape(text, quote=False)
    shown = re.sub(r"`([^`]+)`", r"<code>\1</code>", shown)
    shown = re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", shown)
    return re.sub(r"\[([^\]]+)\]\((\w+)\.md\)", r'<a href="#\2">\1</a>', shown)


def _cells(line: str) -> list[str]:
    parts = re.split(r"(?<!\\)\|", line.strip()[1:-1])
    return [part.strip().replace("\\|", "|") for part in parts]


def table(block: list[str]) -> str:
    """Return a table as HTML."""
    right = [rule.endswith(":") for rule in _cells(block[1])]

    def row(line: str, tag: str) -> str:
        cells = zip(_cells(line), right, strict=True)
        marked = (
            f"<{tag}{' class=right' if at else ''}>{inline(cell)}</{tag}>" for cell, at in cells
        )
        return f"<tr>{''.join(marked)}</tr>"

    body = "".join(row(line, "td") for line in block[2:])
    head = row(block[0], "th")
    return f'<div class="wide" tabindex="0"><table><thead>{head}</thead>{body}</table></div>'


def image(line: str, folder: Path) -> str:
    """Return a picture as HTML with its content embedded; empty if the file is missing."""
    found = re.fullmatch(r"!\[(.*)\]\((.*)\)", line)
    path = folder / found[2] if found else None
    if found is None or path is None or not path.is_file():
        return ""
    content = base64.b64encode(path.read_bytes()).decode()
    return f'<p><img alt="{html.escape(found[1])}" src="data:image/png;base64,{content}"></p>'


def block_of(block: list[str], key: str, folder: Path) -> str:
    """Return a block of lines as HTML."""
    first = block[0]
    if first.startswith(("<!--", ":::")):
        return ""
    if first.startswith("|"):
        return table(block)
    if first.startswith("```"):
        return f"<pre>{html.escape(chr(10).join(block[1:-1]))}</pre>"
    if first.startswith("!["):
        return image(first, folder)
    if first.startswith("#"):
        level = len(first) - len(first.lstrip("#"))
        mark = f' id="{key}"' if level == 1 else ""
        return f"<h{level}{mark}>{inline(first[level:].strip())}</h{level}>"
    return f"<p>{inline(' '.join(block))}</p>"


def single_page(pages: dict[str, str], folder: Path) -> str:
    """Return pages as one HTML file with embedded pictures."""
    body = []
    for name, text in pages.items():
        blocks = [part.split("\n") for part in text.strip().split("\n\n") if part.strip()]
        body += [block_of(block, Path(name).stem, folder) for block in blocks]
    shown = "\n".join(part for part in body if part)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>Results of marginwise</title><style>{STYLE}</style></head>\n"
        f"<body><main>\n{shown}\n</main></body></html>\n"
    )
