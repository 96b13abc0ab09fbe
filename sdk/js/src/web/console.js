// `console`, which writes to the operator's log.

import { log } from "../log.js";
import { authorStack } from "../wasm/trace.js";

/** Most levels of nested objects that are printed. */
const DEPTH_MAX = 4;

/** Prints a value as people expect it from a console. */
export function inspect(value, depth = 0, parents = []) {
  if (typeof value === "string") return depth === 0 ? value : JSON.stringify(value);
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value === "function") return `[function ${value.name || "anonymous"}]`;
  if (typeof value !== "object" || value === null) return String(value);
  if (value instanceof Error) return authorStack(value);
  if (parents.includes(value)) return "[circular]";
  if (depth >= DEPTH_MAX) return Array.isArray(value) ? "[…]" : "{…}";
  return inspectObject(value, depth, [...parents, value]);
}

function inspectObject(value, depth, parents) {
  const inner = (one) => inspect(one, depth + 1, parents);
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? "Invalid Date" : value.toISOString();
  if (Array.isArray(value) || ArrayBuffer.isView(value)) return `[${Array.from(value, inner).join(", ")}]`;
  if (value instanceof Set) return `Set {${[...value].map(inner).join(", ")}}`;
  if (value instanceof Map) return `Map {${[...value].map(([key, one]) => `${inner(key)} => ${inner(one)}`).join(", ")}}`;
  return `{${Object.keys(value).map((key) => `${key}: ${inner(value[key])}`).join(", ")}}`;
}

const print = (level) => (...values) => log[level](values.map((value) => inspect(value)).join(" "));

/** Stands in for `console`. */
export const guestConsole = {
  trace: print("trace"),
  debug: print("debug"),
  log: print("info"),
  info: print("info"),
  warn: print("warn"),
  error: print("error"),
  dir: print("info"),
  assert: (condition, ...values) => { if (!condition) guestConsole.error("assertion failed", ...values); },
};
