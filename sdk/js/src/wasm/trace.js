// Places in the author's files. The build appends a table that leads from each line of the bundle to
// the file and line that it was made of.

/** `file:line` of a position such as `/plugin.js:120:7`, or `undefined` for the SDK's own lines. */
function authorPlace(line) {
  const table = globalThis.__sallyportLines;
  if (!table) return undefined;
  const [file, at] = (table.lines[line - 1] ?? "").split(":");
  return table.files[file] && `${table.files[file]}:${at}`;
}

/** The places of an error's stack that are in the author's files. */
function places(error) {
  const frames = String(error?.stack ?? "").split("\n");
  const found = frames.map((frame) => /:(\d+)(?::\d+)?\)?\s*$/.exec(frame)?.[1]);
  return found.filter(Boolean).map((line) => authorPlace(Number(line))).filter(Boolean);
}

/** Describes an error for the model: its name, its message, and where it was thrown. */
export function described(error) {
  const [place] = places(error);
  return `${error.name}: ${error.message}${place ? ` (${place})` : ""}`;
}

/** Describes an error for the log, with all its places. */
export function authorStack(error) {
  if (!(error instanceof Error)) return String(error);
  const lines = [`${error.name}: ${error.message}`, ...places(error).map((place) => `    at ${place}`)];
  return lines.join("\n");
}
