// `URLSearchParams`: the names and values of a query.

/** Names and values, in order. */
export class URLSearchParams {
  #pairs = [];
  #changed = () => {};

  constructor(init = "", changed = undefined) {
    if (typeof init === "string") this.#pairs = parsePairs(wellFormed(init).replace(/^\?/, ""));
    else if (typeof init?.[Symbol.iterator] === "function") this.#pairs = [...init].map(([name, value]) => [wellFormed(name), wellFormed(value)]);
    else this.#pairs = Object.entries(init ?? {}).map(([name, value]) => [wellFormed(name), wellFormed(value)]);
    if (changed) this.#changed = changed;
  }

  get size() {
    return this.#pairs.length;
  }

  get [Symbol.toStringTag]() {
    return "URLSearchParams";
  }

  append(name, value) {
    this.#pairs.push([wellFormed(name), wellFormed(value)]);
    this.#changed();
  }

  delete(name) {
    this.#pairs = this.#pairs.filter(([key]) => key !== String(name));
    this.#changed();
  }

  get(name) {
    return this.#pairs.find(([key]) => key === String(name))?.[1] ?? null;
  }

  getAll(name) {
    return this.#pairs.filter(([key]) => key === String(name)).map(([, value]) => value);
  }

  has(name) {
    return this.get(name) !== null;
  }

  set(name, value) {
    const key = String(name);
    const at = this.#pairs.findIndex(([one]) => one === key);
    if (at < 0) return this.append(name, value);
    this.#pairs = this.#pairs.filter(([one], index) => one !== key || index === at);
    this.#pairs[at] = [wellFormed(name), wellFormed(value)];
    return this.#changed();
  }

  sort() {
    this.#pairs.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
    this.#changed();
  }

  forEach(callback, self) {
    for (const [name, value] of this) callback.call(self, value, name, this);
  }

  *entries() {
    yield* this.#pairs.map((pair) => [...pair]);
  }

  *keys() {
    for (const [name] of this.#pairs) yield name;
  }

  *values() {
    for (const [, value] of this.#pairs) yield value;
  }

  [Symbol.iterator]() {
    return this.entries();
  }

  toString() {
    return this.#pairs.map(([name, value]) => `${escapeForm(name)}=${escapeForm(value)}`).join("&");
  }
}

const wellFormed = (value) => String(value).toWellFormed();

function parsePairs(query) {
  return query.split("&").filter((part) => part !== "").map((part) => {
    const at = part.indexOf("=");
    return at < 0 ? [unescapeForm(part), ""] : [unescapeForm(part.slice(0, at)), unescapeForm(part.slice(at + 1))];
  });
}

function unescapeForm(text) {
  const spaced = text.replaceAll("+", " ");
  if (!spaced.includes("%")) return spaced;
  const bytes = [];
  for (const part of spaced.split(/(%[0-9a-f]{2})/i)) {
    if (/^%[0-9a-f]{2}$/i.test(part)) bytes.push(Number.parseInt(part.slice(1), 16));
    else bytes.push(...new TextEncoder().encode(part));
  }
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from(bytes));
}

function escapeForm(text) {
  return encodeURIComponent(text)
    .replace(/[!'()~]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll("%20", "+");
}
