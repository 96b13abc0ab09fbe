// Queries within bounds. The library is `jsonpath-rfc9535`, which passes the compliance suite.

import { exec } from "jsonpath-rfc9535";
import { InvalidArguments } from "sallyport";

/** Ends a query that has found enough. */
class Enough extends Error {}

/**
 * Finds the values of a JSONPath, at most `limit`. The library compares numbers only, so it searches
 * `document.rounded`, and the values come from `document.exact`.
 */
export function find(document, path, limit) {
  const matches = [];
  try {
    exec(document.rounded, path, (_value, keys) => {
      if (matches.length === limit) throw new Enough();
      matches.push({ value: valueAt(document.exact, keys), path: normalized(keys) });
    });
  } catch (error) {
    if (error instanceof Enough) return { matches, isCut: true };
    throw error.name === "SyntaxError" ? new InvalidArguments(mistake(path, error)) : error;
  }
  return { matches, isCut: false };
}

/** A normalized path of RFC 9535, such as `$['a'][0]`. The library escapes the keys. */
function normalized(keys) {
  return `$${keys.map((key) => (typeof key === "number" ? `[${key}]` : `['${key}']`)).join("")}`;
}

function valueAt(document, keys) {
  return keys.reduce((value, key) => value[typeof key === "number" ? key : unescaped(key)], document);
}

const ESCAPES = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };

function unescaped(key) {
  return key.replace(/\\(?:u([0-9a-f]{4})|(.))/g, (_all, code, char) => {
    return code ? String.fromCharCode(Number.parseInt(code, 16)) : (ESCAPES[char] ?? char);
  });
}

function mistake(path, error) {
  const offset = error.location?.start?.offset;
  if (offset === undefined) return `${path} is not a JSONPath: ${error.message}`;
  if (!path.startsWith("$")) return `${path} is not a JSONPath: it must start with $, as in $.name or $..name`;
  const found = offset >= path.length ? "its end" : JSON.stringify(path.slice(offset, offset + 10));
  return `${path} is not a JSONPath: something is wrong at character ${offset + 1}, at ${found}`;
}

/** Whether a value has more than `charsMax` characters as JSON. Stops counting there. */
export function isTooComplex(value, charsMax) {
  let left = charsMax;
  const visit = (one) => {
    if (left < 0) return;
    if (typeof one !== "object" || one === null) {
      left -= String(one).length + 2;
      return;
    }
    for (const [key, inner] of Object.entries(one)) {
      left -= key.length + 3;
      visit(inner);
      if (left < 0) return;
    }
  };
  visit(value);
  return left < 0;
}
