// Reads JSON, with the place of a mistake.

import { InvalidArguments, parseJson } from "sallyport";

/** Most characters that are shown around a mistake. */
const EXCERPT_CHARS = 20;

/** An integer that a number cannot hold has at least as many digits. */
const LONG_DIGITS = /\d{16}/;

/**
 * Parses JSON text: `exact` has a BigInt for an integer that a number would round. `name` is what a
 * message calls the text.
 */
export function readDocument(text, name) {
  try {
    const json = text.replace(/^\ufeff/, "");
    const rounded = JSON.parse(json);
    return { rounded, exact: LONG_DIGITS.test(json) ? parseJson(json) : rounded };
  } catch (error) {
    throw new InvalidArguments(`${name} is not JSON: ${reason(error, text)}`);
  }
}

/** The engine's reason, with the line if the engine names a position. */
function reason(error, text) {
  const position = /position (\d+)/.exec(error.message)?.[1];
  if (position === undefined) return error.message;
  const before = text.slice(0, Number(position));
  const line = before.split("\n").length;
  const column = before.length - before.lastIndexOf("\n");
  const excerpt = text.slice(Number(position), Number(position) + EXCERPT_CHARS);
  const what = error.message.replace(/,? ?(in JSON )?at position.*/s, "");
  return `${what} at line ${line}, column ${column}${excerpt ? `, before ${JSON.stringify(excerpt)}` : ", at its end"}`;
}
