// The table that leads from lines of the bundle to the author's lines.

const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/** Makes the table of a source map: for each line of the bundle `file:line`, or an empty text. */
export function lineTable({ mappings, sources }) {
  const isOwn = (source) => !source.includes("sallyport:") && !source.includes("node_modules/");
  const files = sources.map((source) => (isOwn(source) ? source.replace(/^(\.\.\/)+/, "") : ""));
  let [source, line] = [0, 0];
  const lines = mappings.split(";").map((segments) => {
    let first = "";
    for (const segment of segments.split(",").filter(Boolean)) {
      const [, sourceStep, lineStep] = numbers(segment);
      if (sourceStep === undefined) continue;
      [source, line] = [source + sourceStep, line + lineStep];
      if (first === "" && files[source] !== "") first = `${source}:${line + 1}`;
    }
    return first;
  });
  return { files, lines };
}

/** Decodes one segment: numbers in Base64, with a sign in the lowest bit and a mark for more digits. */
function numbers(segment) {
  const found = [];
  let [value, shift] = [0, 0];
  for (const char of segment) {
    const digit = DIGITS.indexOf(char);
    value |= (digit & 31) << shift;
    shift += 5;
    if (digit & 32) continue;
    found.push(value & 1 ? -(value >> 1) : value >> 1);
    [value, shift] = [0, 0];
  }
  return found;
}

/** Replaces the places of a stack by the author's. Returns the first place and the message. */
export function authorMessage(text, { files, lines }) {
  const message = /evaluation: (?:\w*Error: )?(.*)/.exec(text)?.[1] ?? /Error: (.*)/.exec(text)?.[1] ?? text;
  const found = [...text.matchAll(/plugin\.js:(\d+)/g)].map(([, line]) => (lines[Number(line) - 1] ?? "").split(":"));
  const place = found.find(([file]) => file && files[file]);
  return place ? `${files[place[0]]}:${place[1]}: ${message}` : message;
}
