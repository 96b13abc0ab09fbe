// `Headers` of requests and responses.

const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** Names in lower case, with one value each, sorted when they are listed. */
export class Headers {
  #values = new Map();

  constructor(init = undefined) {
    if (init === undefined || init === null) return;
    const entries = typeof init[Symbol.iterator] === "function" ? [...init] : Object.entries(init);
    for (const [name, value] of entries) this.append(name, value);
  }

  append(name, value) {
    const old = this.get(name);
    this.#values.set(keyOf(name), old === null ? valueOf(value) : `${old}, ${valueOf(value)}`);
  }

  set(name, value) {
    this.#values.set(keyOf(name), valueOf(value));
  }

  get(name) {
    return this.#values.get(keyOf(name)) ?? null;
  }

  has(name) {
    return this.#values.has(keyOf(name));
  }

  delete(name) {
    this.#values.delete(keyOf(name));
  }

  forEach(callback, self) {
    for (const [name, value] of this) callback.call(self, value, name, this);
  }

  *entries() {
    yield* [...this.#values].sort(([a], [b]) => (a < b ? -1 : 1));
  }

  *keys() {
    for (const [name] of this) yield name;
  }

  *values() {
    for (const [, value] of this) yield value;
  }

  [Symbol.iterator]() {
    return this.entries();
  }
}

function keyOf(name) {
  const text = String(name);
  if (!NAME.test(text)) throw new TypeError(`${JSON.stringify(text)} is not a name of a header`);
  return text.toLowerCase();
}

function valueOf(value) {
  const text = String(value).trim();
  if (/[\0\r\n]/.test(text)) throw new TypeError("the value of a header cannot hold line breaks");
  return text;
}
