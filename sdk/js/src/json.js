// JSON in and out without loss: integers of 64 bits survive, and a value that JSON cannot hold is an
// error that names its place.

/** The host reads nested JSON to about this depth. */
const DEPTH_MAX = 120;

/** Most characters of a path in a message. */
const PATH_CHARS_MAX = 80;

/** An integer that a number cannot hold exactly has at least this many digits. */
const LONG_DIGITS = /\d{16}/;

const INTEGER = /^-?\d+$/;

/** A value that cannot be written as JSON. */
export class JsonError extends TypeError {}

/**
 * Parses JSON. An integer beyond ±(2^53 − 1) becomes a BigInt, because a number would round it.
 *
 * @param {string} text
 */
export function fromJson(text) {
  if (!LONG_DIGITS.test(text)) return JSON.parse(text);
  return knowsSource() ? JSON.parse(text, reviveSource) : parseMarked(text);
}

/** Whether the engine shows a reviver the text of a number. */
function knowsSource() {
  return JSON.parse("1", (_key, value, context) => context?.source === "1");
}

function reviveSource(_key, value, context) {
  if (typeof value !== "number" || Number.isSafeInteger(value)) return value;
  return INTEGER.test(context.source) ? BigInt(context.source) : value;
}

/** A text or a number in JSON. */
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/gs;

/** Parses with long integers as marked texts, which then become BigInts. */
function parseMarked(text) {
  let mark = "#";
  while (text.includes(mark)) mark += "#";
  const marked = text.replace(TOKEN, (token) => {
    return INTEGER.test(token) && !Number.isSafeInteger(Number(token)) ? `"${mark}${token}"` : token;
  });
  const revive = (_key, value) => {
    return typeof value === "string" && value.startsWith(mark) ? BigInt(value.slice(mark.length)) : value;
  };
  return JSON.parse(marked, revive);
}

/**
 * Writes a value as JSON. A BigInt becomes a number with all its digits.
 *
 * @param {unknown} value
 * @param {string} place how an error calls the value, such as `the result`
 */
export function toJson(value, place = "the value") {
  return write(value, { place, path: [], parents: new Set() }) ?? "null";
}

/** Writes one value; `undefined` for a value that an object leaves out. */
function write(value, state) {
  switch (typeof value) {
    case "string":
      return JSON.stringify(value.toWellFormed());
    case "number":
      return writeNumber(value, state);
    case "bigint":
      return writeBigInt(value, state);
    case "boolean":
      return String(value);
    case "undefined":
      return undefined;
    case "object":
      return value === null ? "null" : writeObject(value, state);
    default:
      throw failure(state, `is a ${typeof value}, which JSON cannot hold`);
  }
}

function writeNumber(value, state) {
  if (!Number.isFinite(value)) {
    throw failure(state, `is ${value}, which JSON cannot hold. Return null or a text instead`);
  }
  return String(value);
}

function writeBigInt(value, state) {
  if (value < -(2n ** 63n) || value >= 2n ** 64n) {
    throw failure(state, "is beyond 64 bits, where readers of JSON lose digits. Return it as a text");
  }
  return String(value);
}

function writeObject(value, state) {
  if (typeof value.toJSON === "function") return writeConverted(value, state);
  const advice = adviceFor(value);
  if (advice) throw failure(state, advice);
  if (state.parents.has(value)) throw failure(state, "contains itself. Return data without cycles");
  if (state.parents.size >= DEPTH_MAX) {
    throw failure(state, `is nested deeper than ${DEPTH_MAX} levels. Return flatter data`);
  }
  state.parents.add(value);
  const text = Array.isArray(value) ? writeArray(value, state) : writeRecord(value, state);
  state.parents.delete(value);
  return text;
}

function writeConverted(value, state) {
  if (value instanceof Date && Number.isNaN(value.getTime())) {
    throw failure(state, "is an invalid Date. Check it with Number.isNaN(date.getTime())");
  }
  const converted = value.toJSON(String(state.path.at(-1) ?? ""));
  if (converted === value) throw failure(state, "has a toJSON() that returns itself");
  return write(converted, state);
}

function writeArray(array, state) {
  const parts = [];
  for (let index = 0; index < array.length; index += 1) {
    state.path.push(index);
    parts.push(write(array[index], state) ?? "null");
    state.path.pop();
  }
  return `[${parts.join(",")}]`;
}

function writeRecord(record, state) {
  const parts = [];
  for (const key of Object.keys(record)) {
    state.path.push(key);
    const text = write(record[key], state);
    if (text !== undefined) parts.push(`${JSON.stringify(key.toWellFormed())}:${text}`);
    state.path.pop();
  }
  return `{${parts.join(",")}}`;
}

/** Returns what to do with an object that would be written as `{}` or as a mistake. */
function adviceFor(value) {
  if (typeof value.then === "function") return "is a Promise. Did you forget await?";
  if (value instanceof Map) return "is a Map. Use Object.fromEntries(map) or [...map]";
  if (value instanceof Set) return "is a Set. Use [...set]";
  if (value instanceof Error) return "is an Error. Throw it, or return error.message";
  if (value instanceof RegExp) return "is a RegExp. Use regexp.source";
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) {
    return "is binary. Use [...bytes], or return it with new Output(…).image(…) or .file(…)";
  }
  if (value instanceof WeakMap || value instanceof WeakSet) return "is weak, which JSON cannot hold";
  return undefined;
}

function failure(state, what) {
  const path = pathText(state.path);
  const shown = path.length > PATH_CHARS_MAX ? `${path.slice(0, PATH_CHARS_MAX)}…` : path;
  return new JsonError(`${state.place}${shown} ${what}`);
}

/** Writes a path as JavaScript does: `.items[3]["a b"]`. */
export function pathText(path) {
  const part = (key) => {
    if (typeof key === "number") return `[${key}]`;
    return /^[\p{ID_Start}_$][\p{ID_Continue}$]*$/u.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;
  };
  return path.map(part).join("");
}
