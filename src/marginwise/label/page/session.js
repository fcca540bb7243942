// What the person does: answers, skips, undoes, flags, notes, and looks back.
//
// Everything takes effect on the page at once and is confirmed by the server later. INVARIANT:
// `queue` never contains an item whose answer is on its way, and an item on screen is replaced
// only by something that the person did.

import { Outbox, request } from "./outbox.js";

const DEPTH = 50; // answers fetched at a time when looking back

export class Session {
  /** `changed()` is called after every change, `say(text)` with what a screen reader should read. */
  constructor(changed, say) {
    this.changed = changed;
    this.say = say;
    this.info = { name: "", annotator: "", goal: "", labels: [], items: 0 };
    this.queue = [];
    this.summary = null;
    this.undoable = false;
    this.past = null; // the history on screen: { entries, at, more }
    this.busy = false; // the item on screen is about to change: answers wait
    this.error = null;
    this.done = []; // what can be undone without asking the server, oldest first
    this.shownAt = performance.now();
    this.outbox = new Outbox({
      done: (action, reply) => this.confirmed(action, reply),
      failed: (action, error) => this.refused(action, error),
      changed: () => this.changed(),
    });
  }

  async start() {
    const state = await request("/api/state");
    const { name, annotator, goal, labels, items } = state;
    this.info = { name, annotator, goal, labels, items };
    this.outbox.restore(JSON.stringify([name, annotator, items]));
    this.adopt(state, true);
  }

  /** Fetch the state again: after a refusal, and when other annotators may have left items. */
  async refresh() {
    const state = await request("/api/state");
    if (!this.outbox.size) this.adopt(state, true);
  }

  /** The item on screen: a question, or an earlier answer; null if nothing is left. */
  get item() {
    return this.past ? this.past.entries[this.past.at] : (this.queue[0] ?? null);
  }

  get canUndo() {
    return this.undoable || this.done.length > 0 || this.outbox.size > 0;
  }

  // -- actions -----------------------------------------------------------------------------------

  answer(label) {
    this.decide("/api/answer", { kind: "label", label }, { label });
  }

  skip() {
    this.decide("/api/skip", { kind: "skip", label: null }, {});
  }

  decide(path, answer, body) {
    const { item } = this;
    if (!item || this.busy) return;
    const before = item.answer;
    if (before && before.kind === answer.kind && before.label === answer.label) {
      this.say(`It is ${spoken(answer)} already.`);
      return;
    }
    item.answer = answer;
    this.done.push({ kind: "answer", item, before, answer });
    if (!this.past) this.queue.shift();
    this.outbox.push(path, { item: item.id, duration: this.duration(), ...body });
    this.show(this.past ? `Changed to ${spoken(answer)}.` : `${capital(spoken(answer))}.`);
  }

  flag() {
    const { item } = this;
    if (!item || this.busy) return;
    item.flagged = !item.flagged;
    this.done.push({ kind: "flag", item });
    this.outbox.push("/api/flag", { item: item.id, on: item.flagged });
    this.say(item.flagged ? "Flagged." : "Flag removed.");
  }

  note(item, text) {
    if (text === item.note) return;
    this.done.push({ kind: "note", item, before: item.note });
    item.note = text;
    this.outbox.push("/api/note", { item: item.id, text });
    this.say(text ? "Note saved." : "Note removed.");
  }

  undo() {
    if (this.busy && !this.outbox.has("/api/undo")) return;
    if (!this.canUndo) {
      this.say("There is nothing to undo.");
      return;
    }
    const last = this.done.pop();
    if (last) this.takeBack(last);
    else this.busy = true; // what it was is known to the server only
    this.outbox.push("/api/undo", {});
  }

  takeBack({ kind, item, before, answer }) {
    if (kind === "flag") {
      item.flagged = !item.flagged;
      this.say(item.flagged ? "Undone: flagged again." : "Undone: no longer flagged.");
    } else if (kind === "note") {
      item.note = before;
      this.say("Undone: the note is as before.");
    } else {
      item.answer = before;
      if (before) {
        this.say(`Undone: it is ${spoken(before)} again.`);
      } else {
        this.past = null;
        this.queue.unshift(item);
        this.show(`Undone: ${spoken(answer)}.`);
      }
    }
  }

  // -- looking back ------------------------------------------------------------------------------

  async older() {
    if (this.busy) return;
    if (this.past && this.past.at + 1 < this.past.entries.length) this.past.at += 1;
    else if (!this.past || this.past.more) return this.fetchPast();
    else return this.say("This is the first answer.");
    this.show();
  }

  newer() {
    if (this.busy || !this.past) return;
    if (this.past.at === 0) return this.back();
    this.past.at -= 1;
    this.show();
  }

  back() {
    if (!this.past) return;
    this.past = null;
    this.show("Back to the question.");
  }

  async fetchPast() {
    this.busy = true;
    this.changed();
    const { entries = [], at = -1 } = this.past ?? {};
    try {
      await this.outbox.drained();
      const before = entries.length ? `&before=${entries.at(-1).seq}` : "";
      const reply = await request(`/api/history?limit=${DEPTH}${before}`);
      const known = new Set(entries.map(({ id }) => id));
      const found = reply.entries.map(remembered).filter(({ id }) => !known.has(id));
      this.busy = false;
      if (!found.length) return this.say("There are no earlier answers.");
      this.past = { entries: [...entries, ...found], at: at + 1, more: reply.more };
      this.show();
    } catch (error) {
      this.error = `Earlier answers could not be fetched: ${reason(error)}`;
    } finally {
      this.busy = false;
      this.changed();
    }
  }

  // -- what the server says ----------------------------------------------------------------------

  confirmed(action, reply) {
    const undo = action.path === "/api/undo";
    if (undo && this.busy && !this.outbox.has("/api/undo")) {
      this.busy = false;
      this.past = null;
      this.adopt(reply, true);
      this.show(reply.undone ? `Undone: ${undoneText(reply.undone)}.` : "There is nothing to undo.");
      return;
    }
    this.adopt(reply, undo);
  }

  refused(action, error) {
    this.error = `The server refused this: ${error.message}`;
    this.busy = false;
    this.done = []; // what the page thinks was done is no longer certain
    this.refresh().catch(() => {});
    this.changed();
  }

  /** Take over the server's queue; `replace` if the item on screen may be replaced, too. */
  adopt({ queue, summary, undoable }, replace) {
    this.summary = summary;
    this.undoable = undoable;
    if (this.outbox.has("/api/undo")) return this.changed(); // its reply brings the right queue
    const underway = this.outbox.items;
    const shown = this.past ? undefined : this.queue[0];
    const old = new Map(this.queue.map((item) => [item.id, item]));
    const fresh = queue.filter(({ id }) => !underway.has(id)).map((item) => old.get(item.id) ?? item);
    if (shown && !replace) {
      this.queue = [shown, ...fresh.filter(({ id }) => id !== shown.id)];
    } else {
      this.queue = fresh;
    }
    if (!this.past && this.queue[0]?.id !== shown?.id) this.show();
    else this.changed();
  }

  /** Another item is on screen: read it out after `result`. */
  show(result = "") {
    this.shownAt = performance.now();
    this.changed();
    this.say(result, this.item);
  }

  duration() {
    return Math.round(performance.now() - this.shownAt) / 1000;
  }
}

function remembered({ seq, item, kind, label, flagged, note }) {
  return { ...item, seq, answer: { kind, label }, flagged, note: note ?? "" };
}

export function spoken({ kind, label }) {
  return kind === "skip" ? "skipped" : `“${label}”`;
}

function capital(text) {
  return text[0].toUpperCase() + text.slice(1);
}

function undoneText({ kind, label }) {
  return { flag: "the flag", note: "the note" }[kind] ?? spoken({ kind, label });
}

function reason(error) {
  return { away: "the server is away.", locked: "the server has a new address." }[error.message] ??
    error.message;
}
