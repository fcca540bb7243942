// The item on screen, as elements. Texts are set as text, never as HTML.

const WORDS = 80; // of an item, read out by screen readers

export function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

/** The elements that show an item; `zoom(image)` is called when an image is clicked. */
export function body(item, pictures, zoom) {
  const parts = [];
  if (item.image) parts.push(picture(item, pictures.get(item), zoom));
  if (item.text) parts.push(make("div", { className: "text", dir: "auto", textContent: item.text }));
  if (item.fields?.length) parts.push(table(item.fields));
  if (!parts.length) parts.push(make("p", { className: "muted", textContent: "This item is empty." }));
  return parts;
}

function picture(item, image, zoom) {
  const button = make("button", { type: "button", className: "picture" }, image);
  button.setAttribute("aria-label", `Enlarge ${nameOf(item)}`);
  button.addEventListener("click", () => zoom(image));
  image.addEventListener("error", () => {
    const text = "The image cannot be shown.";
    button.replaceWith(make("p", { className: "muted", textContent: text }));
  });
  return button;
}

function table(fields) {
  const rows = fields.map(([name, value]) => {
    const head = make("th", { scope: "row", textContent: name });
    const missing = value === null || value === "";
    const cell = make("td", { textContent: missing ? "—" : String(value), dir: "auto" });
    if (missing) cell.className = "muted";
    return make("tr", {}, head, cell);
  });
  return make("table", { className: "fields" }, make("tbody", {}, ...rows));
}

function nameOf(item) {
  return item.title || `image ${item.id}`;
}

/** Images of the queue, loaded before they are shown. */
export class Pictures {
  constructor() {
    this.images = new Map();
  }

  get(item) {
    if (!this.images.has(item.id)) {
      const image = make("img", { alt: nameOf(item), decoding: "async", src: item.image });
      this.images.set(item.id, image);
    }
    return this.images.get(item.id);
  }

  /** Load the images of these items, and forget all others. */
  expect(items) {
    const wanted = new Set(items.map(({ id }) => id));
    for (const id of this.images.keys()) if (!wanted.has(id)) this.images.delete(id);
    for (const item of items) if (item.image) this.get(item);
  }
}

/** An item in words, for screen readers. */
export function inWords(item) {
  if (!item) return "";
  const fields = item.fields?.map(([name, value]) => `${name}: ${value}`).join("; ");
  const text = [item.title, item.text ?? fields ?? (item.image ? "An image" : "")];
  const words = text.filter(Boolean).join(". ").split(/\s+/);
  return words.length > WORDS ? `${words.slice(0, WORDS).join(" ")} …` : words.join(" ");
}

/** One button per label; the first ten have keys. */
export function labelButtons(labels, choose) {
  return labels.map((label, k) => {
    const key = k < 10 ? String((k + 1) % 10) : "";
    const name = make("span", { className: "name", textContent: label, dir: "auto" });
    const button = make("button", { type: "button", className: `label hue-${k % 10}` }, name);
    if (key) {
      button.prepend(make("kbd", { textContent: key }));
      button.setAttribute("aria-keyshortcuts", key);
    }
    button.dataset.label = label;
    button.addEventListener("click", () => choose(label));
    return button;
  });
}

/** The model's guess, as a sentence and bars. */
export function guessParts(guess) {
  if (!guess) return [make("p", { textContent: "The model has no guess yet." })];
  const answer = make("strong", { textContent: guess.label });
  const sure = guess.confidence ?? null;
  const how = sure === null ? "" : `, confidence ${Math.round(100 * sure)}\u00a0%`;
  return [make("p", {}, "The model’s guess: ", answer, how)];
}
