// The page: connects the session, the keyboard, the buttons and what is on screen.

import { listen } from "./keys.js";
import { request } from "./outbox.js";
import { Progress, count, sentence as capital, summary, verdict } from "./progress.js";
import { Pictures, body, guessParts, inWords, labelButtons, make } from "./question.js";
import { Session, spoken } from "./session.js";

const $ = (id) => document.getElementById(id);
const number = new Intl.NumberFormat("en");
const session = new Session(() => render(), (text, item) => say(text, item));
const progress = new Progress(session);
const pictures = new Pictures();
let shown = null; // what the question area shows: an item, or a name
let counted = null; // the summary that the panel shows
let before = null; // what had the focus before the note
let told = false; // whether the verdict to stop was read out

// -- screen readers ------------------------------------------------------------------------------

let spelling = 0;

function say(text, item) {
  const sentence = [text, item === undefined ? "" : inWords(item) || endText()].filter(Boolean).join(" ");
  // The same sentence twice is not read twice, so that it is cleared first.
  $("live").textContent = "";
  clearTimeout(spelling);
  spelling = setTimeout(() => ($("live").textContent = sentence), 30);
}

function endText() {
  return session.outbox.size ? "Waiting for the server." : $("end-title").textContent;
}

// -- what is on screen ---------------------------------------------------------------------------

function render() {
  renderItem();
  renderDock();
  renderPast();
  renderConnection();
  if (session.summary && session.summary !== counted) renderSummary(session.summary);
}

function renderItem() {
  const { item } = session;
  const state = item ?? (session.outbox.size || !session.summary ? "waiting" : "end");
  if (state !== shown) {
    shown = state;
    closeNote();
    $("guess").hidden = !item || !$("always").checked; // it stays, so that buttons stay in place
    $("guess-text").textContent = "The model’s guess: …";
    $("item").hidden = !item;
    $("waiting").hidden = state !== "waiting";
    $("end").hidden = state !== "end";
    if (item) renderBody(item);
    if (item && $("always").checked) showGuess();
  }
  if (item) renderMarks(item);
  if (state === "end") renderEnd();
  pictures.expect([...session.queue, ...(item ? [item] : [])]);
}

function renderBody(item) {
  const title = item.image ? "" : item.title; // of an image it is the name of a file: see the marks
  $("item-title").textContent = title || (session.past ? "An earlier answer" : "Which label fits?");
  $("item-title").classList.toggle("prompt", !title);
  $("item-body").replaceChildren(...body(item, pictures, zoom));
  $("item").scrollTop = 0;
  if ($("item").getBoundingClientRect().top < 0) scrollTo({ top: 0 });
}

function renderMarks(item) {
  $("item").dataset.item = item.id;
  const short = item.id.length > 16 ? `${item.id.slice(0, 7)}…` : item.id;
  const name = (item.image && item.title) || `Item ${short}`;
  const marks = [make("span", { textContent: name, title: item.id })];
  if (item.duplicates) {
    const others = count(item.duplicates, "other item");
    marks.push(make("span", { textContent: `stands for ${others} with the same content` }));
  }
  if (item.flagged) marks.push(make("span", { className: "flagged", textContent: "Flagged" }));
  $("marks").replaceChildren(...marks);
  $("note-shown").hidden = !item.note || !$("note-form").hidden;
  $("note-shown").textContent = item.note;
}

function renderEnd() {
  const { left, answered } = session.summary;
  $("end-title").textContent = left ? "No item is waiting for you" : "Everything is labelled";
  $("end-text").textContent = left
    ? `${count(left, "item")} left, being answered by other annotators. This page looks again every few seconds.`
    : `${count(answered, "label")}, all stored. You can still look back and change answers.`;
}

function renderDock() {
  const { item } = session;
  for (const button of $("labels").children) {
    const chosen = item?.answer?.kind === "label" && item.answer.label === button.dataset.label;
    choice(button, item, chosen);
    enable(button, item);
  }
  for (const id of ["skip", "flag", "note", "guess-button"]) enable($(id), item);
  choice($("skip"), item, item?.answer?.kind === "skip");
  $("flag").setAttribute("aria-pressed", String(Boolean(item?.flagged)));
  enable($("undo"), session.canUndo);
  document.body.classList.toggle("busy", session.busy);
}

/** Where there is an answer, buttons show which it is; of a question, they are plain buttons. */
function choice(button, item, chosen) {
  if (item?.answer) button.setAttribute("aria-pressed", String(chosen));
  else button.removeAttribute("aria-pressed");
}

/** A button that really was disabled would lose the focus while the page waits for an item. */
function enable(button, yes) {
  button.setAttribute("aria-disabled", String(!yes));
}

function renderPast() {
  const { past } = session;
  $("past").hidden = !past;
  document.body.classList.toggle("looking-back", Boolean(past));
  if (!past) return;
  const answer = past.entries[past.at].answer;
  const place = past.at === 0 ? "The last answer" : `${count(past.at, "answer")} before the last`;
  $("past-text").textContent = `${place}: ${answer ? spoken(answer) : "open"}. Choose a label to change it.`;
  enable($("older"), past.at + 1 < past.entries.length || past.more);
}

function renderConnection() {
  const { away, size } = session.outbox;
  const kept = size ? `${count(size, "answer")} ${size === 1 ? "is" : "are"} kept and sent` : "The page continues";
  const text = {
    away: `The server is away. ${kept} when it is back.`,
    locked: `The server was started again with a new address. Open the address that it printed: ${kept.toLowerCase()} then.`,
  }[away] ?? "";
  if ($("away-text").textContent !== text) {
    if (text) say(text);
    else if ($("away-text").textContent) say("The server is back.");
    $("away-text").textContent = text;
  }
  $("away").hidden = !text;
  $("error").hidden = !session.error;
  if (session.error && $("error-text").textContent !== session.error) say(session.error);
  $("error-text").textContent = session.error ?? "";
}

function renderSummary(state) {
  counted = state;
  const { name, labels, items, goal, annotator } = session.info;
  const answered = state.answered + state.skipped;
  document.title = `${number.format(answered)} of ${number.format(items)} · ${name}`;
  $("name").textContent = name;
  $("who").textContent = annotator;
  $("tally").textContent = `${number.format(answered)} of ${number.format(items)}`;
  $("meter").style.width = `${items ? (100 * answered) / items : 0}%`;
  summary(state, labels);
  verdict(state.stop, goal);
  renderStop(state.stop);
  progress.later();
}

function renderStop({ stop, reason }) {
  $("stop").hidden = !stop || $("stop").dataset.dismissed === "true";
  $("stop-reason").textContent = capital(reason);
  if (stop && !told) say(`You can stop. ${capital(reason)}`, session.item);
  told = stop;
  if (!stop) $("stop").dataset.dismissed = "false";
}

// -- note, guess, picture ------------------------------------------------------------------------

function openNote() {
  if (!session.item) return;
  $("note-form").hidden = false;
  $("note-shown").hidden = true;
  $("note-field").value = session.item.note;
  before = document.activeElement;
  $("note-field").focus();
}

/** Close the field; what was typed belongs to `shown`, the item that it was opened for. */
function closeNote() {
  if ($("note-form").hidden) return;
  const focused = $("note-form").contains(document.activeElement);
  $("note-form").hidden = true;
  if (!focused) return;
  document.activeElement.blur();
  before?.focus();
}

function saveNote(event) {
  event?.preventDefault();
  if ($("note-form").hidden) return;
  session.note(session.item, $("note-field").value.trim());
  closeNote();
  render();
}

async function showGuess() {
  const { item } = session;
  if (!item) return;
  try {
    const { guess } = await request(`/api/guess/${encodeURIComponent(item.id)}`);
    if (item !== session.item) return;
    $("guess-text").replaceChildren(...guessParts(guess));
    $("guess").hidden = false;
    if (!$("always").checked) say($("guess-text").textContent);
  } catch {
    if (item === session.item) say("The guess could not be fetched.");
  }
}

function toggleGuess() {
  if ($("guess").hidden) return showGuess();
  $("always").checked = false;
  $("guess").hidden = true;
}

function zoom(image) {
  $("zoom-image").src = image.src;
  $("zoom-image").alt = image.alt;
  $("zoom").showModal();
}

// -- labels --------------------------------------------------------------------------------------

function choose(label) {
  saveNote();
  session.answer(label);
}

function filterLabels() {
  const wanted = $("filter").value.trim().toLowerCase();
  for (const button of $("labels").children) {
    button.hidden = !button.dataset.label.toLowerCase().includes(wanted);
  }
}

function chooseFirst(event) {
  if (event.key !== "Enter" || event.isComposing) return;
  event.preventDefault();
  const first = [...$("labels").children].find((button) => !button.hidden);
  if (!first || !$("filter").value.trim()) return;
  choose(first.dataset.label);
  $("filter").value = "";
  filterLabels();
}

// -- commands ------------------------------------------------------------------------------------

const COMMANDS = {
  label: ({ label }) => label < session.info.labels.length && choose(session.info.labels[label]),
  skip: () => session.skip(),
  undo: () => session.undo(),
  older: () => session.older(),
  newer: () => session.newer(),
  flag: () => session.flag(),
  note: () => openNote(),
  guess: () => toggleGuess(),
  filter: () => $("filter-row").hidden || $("filter").focus(),
  help: () => $("help").showModal(),
  back: () => session.back(),
};

const BUTTONS = {
  skip: "skip", undo: "undo", flag: "flag", note: "note", "guess-button": "guess", help_button: "help",
  history: "older", older: "older", newer: "newer", back: "back",
};

/** Run a command. A note that is open is saved first, because the item may change. */
function run(command) {
  if (command.name !== "note") saveNote();
  COMMANDS[command.name](command);
}

/** A long item is scrolled without focusing it first. */
function scroll(event) {
  const item = $("item");
  const page = 0.9 * item.clientHeight;
  const far = { ArrowDown: 60, ArrowUp: -60, PageDown: page, PageUp: -page }[event.key];
  if (!far || event.target !== document.body || item.scrollHeight <= item.clientHeight) return;
  event.preventDefault();
  item.scrollBy({ top: far });
}

function wire() {
  document.addEventListener("keydown", scroll);
  for (const [id, name] of Object.entries(BUTTONS)) {
    $(id).addEventListener("click", () => run({ name }));
  }
  // After a click the space bar should skip, not press the same button again. Those who press
  // buttons by keyboard (detail is 0 then) keep the focus.
  document.addEventListener("click", (event) => {
    if (event.detail > 0 && event.target.closest("#dock button, #past button")) $("item").focus();
  });
  $("note-form").addEventListener("submit", saveNote);
  $("note-field").addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if (event.key === "Enter" && !event.shiftKey) saveNote(event);
    if (event.key === "Escape") { closeNote(); render(); }
  });
  $("note-cancel").addEventListener("click", () => { closeNote(); render(); });
  $("filter").addEventListener("input", filterLabels);
  $("filter").addEventListener("keydown", chooseFirst);
  $("filter").addEventListener("keyup", (event) => event.key === "Escape" && $("item").focus());
  $("error-close").addEventListener("click", () => { session.error = null; render(); });
  $("stop-close").addEventListener("click", () => {
    $("stop").dataset.dismissed = "true";
    $("stop").hidden = true;
    $("item").focus();
  });
  for (const dialog of document.querySelectorAll("dialog")) {
    dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
    // A dialog keeps the focus until the frame after it was closed. Without this, a quick Space
    // toggles a checkbox that is no longer on screen.
    dialog.addEventListener("beforetoggle", (event) => {
      if (event.newState === "closed") document.activeElement?.blur();
    });
  }
  $("always").addEventListener("change", () => remember("always", $("always").checked, sessionStorage));
  $("single").addEventListener("change", () => remember("single", $("single").checked, localStorage));
  addEventListener("beforeunload", (event) => session.outbox.away && session.outbox.size && event.preventDefault());
}

function remember(name, value, storage) {
  try {
    storage.setItem(`marginwise.${name}`, String(value));
  } catch {
    // storage is blocked: the choice lasts until the page is left
  }
}

function recall() {
  try {
    $("always").checked = sessionStorage.getItem("marginwise.always") === "true";
    $("single").checked = localStorage.getItem("marginwise.single") !== "false";
  } catch {
    // storage is blocked: defaults
  }
}

async function start() {
  recall();
  wire();
  listen(run, () => $("single").checked);
  for (let wait = 500; ; wait = Math.min(2 * wait, 5000)) {
    try {
      await session.start();
      break;
    } catch {
      $("waiting-text").textContent = "The server does not answer. This page tries again every few seconds.";
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  }
  const { labels } = session.info;
  $("labels").replaceChildren(...labelButtons(labels, choose));
  $("filter-row").hidden = labels.length <= 10;
  $("waiting-title").textContent = "Waiting for the server";
  $("waiting-text").textContent = "The next item is shown as soon as it answers.";
  counted = null;
  render();
  progress.fetch();
  setInterval(() => shown === "end" && session.summary.left && session.refresh().catch(() => {}), 4000);
}

start();
