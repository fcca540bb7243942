// The panel: what was labelled, how good the model is, and whether to stop.

import { Chart } from "./charts.js";
import { request } from "./outbox.js";
import { make } from "./question.js";

const PAUSE = 350; // milliseconds without an answer before progress is fetched
const number = new Intl.NumberFormat("en");
const $ = (id) => document.getElementById(id);

export const count = (n, one, many = `${one}s`) => `${number.format(n)} ${n === 1 ? one : many}`;
export const percent = (share, digits = 1) => `${(100 * share).toFixed(digits)}\u00a0%`;
const interval = (low, high) => `${percent(low)} to ${percent(high)}`;

/** Fetches progress when answers pause; a slow server is asked one question at a time. */
export class Progress {
  constructor(session) {
    this.session = session;
    this.timer = 0;
    this.asking = false;
    this.charts = {
      learning: new Chart($("learning-chart"), {
        percent: true,
        lines: [{ colour: "--accent" }, { colour: "--second", dash: [6, 4] }, {}, {}],
        bands: [{ series: [4, 3], fill: "--band" }],
      }),
      support: new Chart($("support-chart"), { lines: [{ colour: "--accent" }] }),
      review: new Chart($("review-chart"), { lines: [{ colour: "--accent" }] }),
    };
  }

  later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.fetch(), PAUSE);
  }

  async fetch() {
    if (this.asking) return this.later();
    this.asking = true;
    try {
      const { progress } = await request("/api/progress");
      this.show(progress);
    } catch {
      // the panel keeps what it shows; answers report that the server is away
    } finally {
      this.asking = false;
    }
  }

  show(progress) {
    this.learning(progress);
    this.support(progress);
    this.review(progress.review);
    margin(progress.margin);
    agreement(progress.agreement);
    verdict(progress.stop, this.session.info.goal);
  }

  learning({ answers, prequential, holdout }) {
    const points = pairs(answers, prequential);
    const held = holdout ?? [];
    const columns = joined(points, held);
    const last = points.at(-1);
    const text = [];
    if (last) text.push(`${percent(last[1], 0)} of the answers agreed with the model before it learned them.`);
    if (held.length) {
      const [n, error, low, high] = held.at(-1);
      text.push(`Held-out error ${percent(error)} (${interval(low, high)}) after ${count(n, "label")}.`);
    }
    $("learning-key-held").hidden = !held.length;
    this.figure("learning", columns, text.join(" ") || "The curve starts with the first few labels.");
  }

  support({ answers, support_vectors: vectors }) {
    const points = pairs(answers, vectors);
    const last = points.at(-1);
    const text = last ? `${count(last[1], "support vector")} after ${count(last[0], "label")}.` :
      "The model starts with the first labels of two classes.";
    this.figure("support", transpose(points, 2), text);
  }

  review(review) {
    $("review").hidden = !review;
    if (!review) return;
    const { found, seen, recall, low, high, unseen } = review;
    const facts = [["Found", number.format(found)], ["Seen", number.format(seen)]];
    if (known(recall)) facts.push(["Recall (estimate)", percent(recall, 0), `${percent(low, 0)} to ${percent(high, 0)}`]);
    if (known(unseen)) {
      const range = [review.unseen_low, review.unseen_high].map((n) => number.format(Math.round(n)));
      facts.push(["Still unseen", `≈ ${number.format(Math.round(unseen))}`, range.join(" to ")]);
    }
    $("review-facts").replaceChildren(...facts.map(fact));
    const text = `${count(found, "relevant item")} found among ${count(seen, "item")} seen.`;
    this.figure("review", transpose(review.curve ?? [], 2), text);
  }

  /** A chart of at least two points, and its summary, which is also its text alternative. */
  figure(name, columns, text) {
    $(`${name}-text`).textContent = text;
    const enough = columns[0].length > 1;
    $(`${name}-chart`).hidden = !enough;
    if (enough) this.charts[name].draw(columns);
  }
}

export const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);

export function verdict(stop, goal) {
  if (!stop) return;
  const waiting = goal === "find" ? "Keep looking" : "Keep labelling";
  $("verdict").classList.toggle("reached", stop.stop);
  $("verdict-title").textContent = stop.stop ? "You can stop" : waiting;
  $("verdict-reason").textContent = sentence(stop.reason);
}

/** What every answer brings: counts and pace. */
export function summary({ answered, skipped, flagged, left, counts, per_hour: pace }, labels) {
  const facts = [
    ["Labelled", number.format(answered)],
    ["Left", number.format(left)],
    ["Per hour", known(pace) ? number.format(Math.round(pace)) : "–"],
    ["Skipped", number.format(skipped)],
    ["Flagged", number.format(flagged)],
  ];
  $("facts").replaceChildren(...facts.map(fact));
  const most = Math.max(1, ...Object.values(counts));
  $("classes").tabIndex = labels.length > 10 ? 0 : -1; // a list that scrolls must take the focus
  $("classes").replaceChildren(...labels.map((label, k) => bar(label, counts[label] ?? 0, most, k)));
}

function fact([name, value, range]) {
  const parts = [make("dt", { textContent: name }), make("dd", { textContent: value })];
  if (range) parts.push(make("dd", { className: "range", textContent: range }));
  return make("div", {}, ...parts);
}

function bar(label, n, most, k) {
  const fill = make("span", { className: "fill" });
  fill.style.width = `${(100 * n) / most}%`;
  return make("li", { className: `hue-${k % 10}` },
    make("span", { className: "name", textContent: label, dir: "auto" }),
    make("span", { className: "track" }, fill),
    make("span", { className: "number", textContent: number.format(n) }));
}

function margin(margin) {
  $("margin").hidden = !margin;
  if (!margin) return;
  const { share, low, high, sampled } = margin;
  $("margin-fill").style.width = `${100 * share}%`;
  $("margin-text").textContent =
    `${percent(share)} of the unlabelled items lie inside the margin (${interval(low, high)}, ` +
    `from a sample of ${number.format(sampled)}). Labels of the others would hardly change the model.`;
}

function agreement(agreement) {
  $("agreement").hidden = !agreement;
  if (!agreement) return;
  const { kappa, items, agree } = agreement;
  const both = `${number.format(agree)} of ${count(items, "item")} that both annotators answered have the same label.`;
  $("agreement-text").textContent = known(kappa) ? `Cohen’s kappa ${kappa.toFixed(2)}: ${both}` : both;
}

const known = (value) => value !== null && value !== undefined;
const pairs = (x, y) => x.map((n, k) => [n, y[k]]).filter(([, value]) => known(value));
const transpose = (rows, width) => Array.from({ length: width }, (_, k) => rows.map((row) => row[k]));

/** Both curves over one axis: columns of labels, accuracy, held-out accuracy, its band. */
function joined(points, held) {
  const rows = new Map(points.map(([n, value]) => [n, [n, value, null, null, null]]));
  for (const [n, error, low, high] of held) {
    const row = rows.get(n) ?? [n, null, null, null, null];
    rows.set(n, [n, row[1], 1 - error, 1 - high, 1 - low]);
  }
  return transpose([...rows.values()].sort((a, b) => a[0] - b[0]), 5);
}
