// What was answered and is not yet acknowledged.
//
// Actions are sent one after the other, in order, each with a key of its own. An action stays here
// until the server has acknowledged it and is repeated with the same key, which the server stores
// once: nothing is lost, and nothing is doubled. The list survives a reload of the page.

const PAUSES = [300, 600, 1200, 2500, 5000]; // milliseconds before the next attempt
const PATIENCE = 20_000; // an answer that takes longer is repeated

export class ServerAway extends Error {}
export class Refused extends Error {}

/** Fetch JSON; throws ServerAway where an attempt may succeed later, else Refused. */
export async function request(path, body) {
  const options = { signal: AbortSignal.timeout(PATIENCE) };
  if (body) {
    options.method = "POST";
    options.headers = { "Content-Type": "application/json" };
    options.body = JSON.stringify(body);
  }
  let response, reply;
  try {
    response = await fetch(path, options);
    reply = await response.json();
  } catch {
    throw new ServerAway("away");
  }
  if (response.status === 401 || response.status === 403) throw new ServerAway("locked");
  if (response.status >= 500 || response.status === 429) throw new ServerAway("away");
  if (!response.ok || !reply.ok) throw new Refused(reply.error ?? `error ${response.status}`);
  return reply;
}

export function makeKey() {
  // randomUUID exists in secure contexts only, and a phone in the local network has none.
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export class Outbox {
  /**
   * `done(action, reply)` and `failed(action, error)` are called once per action, in order;
   * `changed()` whenever the number of actions or the state of the server changes.
   */
  constructor({ done, failed, changed }) {
    this.actions = [];
    this.away = null; // null, "away", or "locked": the server does not know this browser
    this.done = done;
    this.failed = failed;
    this.changed = changed;
    this.sending = false;
    this.wake = () => {};
    this.waiting = [];
    addEventListener("online", () => this.wake());
    document.addEventListener("visibilitychange", () => this.wake());
  }

  /** Take up what an earlier visit to this page left, for the same items and annotator. */
  restore(name) {
    this.name = `marginwise.outbox.${name}`;
    try {
      this.actions = JSON.parse(sessionStorage.getItem(this.name)) ?? [];
    } catch {
      this.actions = [];
    }
    this.send();
  }

  push(path, body) {
    this.actions.push({ path, body: { key: makeKey(), ...body } });
    this.keep();
    this.send();
  }

  get size() {
    return this.actions.length;
  }

  /** Items with an answer on its way. */
  get items() {
    const answers = this.actions.filter(({ path }) => /answer|skip/.test(path));
    return new Set(answers.map(({ body }) => body.item));
  }

  has(path) {
    return this.actions.some((action) => action.path === path);
  }

  /** Resolves when everything is acknowledged; rejects when the server is away. */
  async drained() {
    while (this.size) {
      if (this.away) throw new ServerAway(this.away);
      await new Promise((resolve) => this.waiting.push(resolve));
    }
  }

  keep() {
    try {
      sessionStorage.setItem(this.name, JSON.stringify(this.actions));
    } catch {
      // storage is blocked or full: the actions are kept as long as the page is open
    }
    this.notify();
  }

  notify() {
    this.changed();
    for (const resolve of this.waiting.splice(0)) resolve();
  }

  async send() {
    if (this.sending) return;
    this.sending = true;
    let attempt = 0;
    while (this.size) {
      const action = this.actions[0];
      try {
        const reply = await request(action.path, action.body);
        attempt = 0;
        this.arrived(() => this.done(action, reply));
      } catch (error) {
        if (error instanceof ServerAway) {
          await this.pause(error.message, PAUSES[Math.min(attempt++, PAUSES.length - 1)]);
          continue;
        }
        if (!(error instanceof Refused)) throw error;
        this.arrived(() => this.failed(action, error));
      }
    }
    this.sending = false;
  }

  /** The first action is over; what it brought is taken over before anything is shown. */
  arrived(report) {
    this.actions.shift();
    this.away = null;
    report();
    this.keep();
  }

  async pause(reason, milliseconds) {
    this.away = reason;
    this.notify();
    await new Promise((resolve) => {
      this.wake = resolve;
      setTimeout(resolve, milliseconds);
    });
  }
}
