// The keyboard: which key means which command, and when keys mean nothing.

const LETTERS = { u: "undo", f: "flag", n: "note", g: "guess", "/": "filter" };
const NAMED = {
  Backspace: "undo",
  ArrowLeft: "older",
  ArrowRight: "newer",
  Escape: "back",
  "?": "help",
  " ": "skip",
};
const REPEATS = new Set(["older", "newer"]);
const TEXT = "textarea, select, [contenteditable], input:not([type=checkbox])";
const PRESSED_BY_SPACE = "button, a[href], summary, input";
const MOVED_BY_ARROWS = "select, input";

/** The command of a key, `{ name, label? }`, or null. `label` is a number from 0. */
export function command(event) {
  if (event.isComposing || event.altKey) return null;
  if (event.ctrlKey || event.metaKey) {
    const undo = event.key.toLowerCase() === "z" && !event.shiftKey;
    return undo ? { name: "undo" } : null;
  }
  if (event.key in NAMED) return plain(event) ? { name: NAMED[event.key] } : null;
  if (event.shiftKey && event.key.length === 1 && !/^[0-9]$/.test(event.key)) return null;
  const digit = digitOf(event);
  if (digit !== null) return { name: "label", label: (digit + 9) % 10 };
  const name = LETTERS[event.key.toLowerCase()];
  return name ? { name } : null;
}

/** Shift is part of typing a question mark, and of nothing else. */
function plain(event) {
  return !event.shiftKey || event.key === "?";
}

/** Digits by what is typed, or by place: French keyboards type them with Shift. */
function digitOf(event) {
  if (/^[0-9]$/.test(event.key)) return Number(event.key);
  const place = /^Digit([0-9])$/.exec(event.code);
  return place && !/^[a-z/?]$/i.test(event.key) ? Number(place[1]) : null;
}

/** Listen, and call `act(command)`; `enabled()` is whether single keys are wanted at all. */
export function listen(act, enabled) {
  document.addEventListener("keydown", (event) => {
    const found = command(event);
    if (!found || belongsToFocus(event, found.name)) return;
    if (event.repeat && !REPEATS.has(found.name)) return;
    const single = event.key.length === 1 && !event.ctrlKey && !event.metaKey;
    if (single && !enabled()) return;
    event.preventDefault();
    act(found);
  });
}

function belongsToFocus(event, name) {
  const target = event.target instanceof Element ? event.target : document.body;
  if (document.querySelector("dialog[open]")) return true;
  if (target.closest(TEXT)) return true;
  if (event.key === " " && target.closest(PRESSED_BY_SPACE)) return true;
  return ["older", "newer"].includes(name) && Boolean(target.closest(MOVED_BY_ARROWS));
}
