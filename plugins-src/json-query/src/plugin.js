// Finds values in JSON with JSONPath.

import { Failed, files, InvalidArguments, s, tool } from "sallyport";
import { isTooComplex, find } from "./query.js";
import { readDocument } from "./document.js";

/** Most values of one answer, unless the caller asks for fewer. A model reads no more. */
const RESULTS_MAX = 1000;

/** Longest result in characters of JSON, for the same reason. */
const RESULT_CHARS_MAX = 200_000;

/** Longest JSON file in bytes. As a value it takes about ten times as much memory. */
const FILE_BYTES_MAX = 4 * 1024 * 1024;

export const query = tool({
  name: "query",
  title: "Query JSON",
  description: `Finds values in JSON with a JSONPath of RFC 9535, such as $.store.book[?@.price < 10].title. \
Give the JSON as text, or the path of a file in a granted folder.`,
  readOnly: true,
  idempotent: true,
  openWorld: false,
  parameters: {
    path: s.string("The JSONPath. It starts with $.").min(1).max(1000),
    json: s.string("The JSON to search. Leave it out if file is given.").optional(),
    file: s.string("The path of a JSON file, such as /data/orders.json.").optional(),
    limit: s.integer(`The most values to return. ${RESULTS_MAX} when absent.`).min(1).max(RESULTS_MAX).default(RESULTS_MAX),
    paths: s.boolean("Also return the normalized path of each value.").default(false),
  },
  run({ path, json, file, limit, paths }) {
    const document = readDocument(textOf(json, file), file ?? "the JSON");
    const { matches, isCut } = find(document, path, limit);
    return bounded(answer(matches, paths, isCut));
  },
});

function textOf(json, file) {
  if ((json === undefined) === (file === undefined)) {
    throw new InvalidArguments("give either json or file, not both and not neither");
  }
  return json ?? files.readText(file, { bytesMax: FILE_BYTES_MAX });
}

function answer(matches, paths, isCut) {
  const values = matches.map(({ value }) => value);
  return {
    count: matches.length,
    values,
    ...(paths ? { paths: matches.map((match) => match.path) } : {}),
    ...(isCut ? { cut: "there are more values; narrow the path or raise the limit" } : {}),
  };
}

/** Refuses a result that no model would read to its end. */
function bounded(result) {
  if (isTooComplex(result, RESULT_CHARS_MAX)) {
    throw new Failed(`the ${result.count} values have more than ${RESULT_CHARS_MAX} characters; narrow the path or lower the limit`);
  }
  return result;
}
