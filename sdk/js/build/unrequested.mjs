// Powers that the plugin uses and `plugin.toml` does not request.

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { BuildError } from "./error.mjs";

/** A module of the SDK, the requests of which it needs one, how code names it, and what to add. */
const POWERS = [
  ["src/state.js", ["state"], /\bstate\s*\./],
  ["src/secrets.js", ["secrets"], /\bsecrets\s*\./],
  ["src/notify.js", ["notify"], /\bnotify\s*\(/],
  ["src/progress.js", ["progress"], /\bprogress\s*\(/],
  ["src/environment.js", ["env"], /\benvironment\s*\(/],
  ["src/files.js", ["fs", "scratch"], /\bfiles\s*\./],
  ["src/web/fetch.js", ["net"], /\bfetch\s*\(/],
];

const EXAMPLES = {
  env: 'name = "…"\n',
  fs: 'access = "read"\n',
  net: 'allow = "GET https://…"\n',
  secrets: 'name = "…"\nreveal = true\n',
};

/** Refuses a plugin that uses what it does not request, with the place in the author's file. */
export async function checkRequests(project, output) {
  for (const [path, requests, pattern] of POWERS) {
    const isUsed = output.inputs[`sallyport:${path}`]?.bytesInOutput > 0;
    if (!isUsed || requests.some((request) => project.requests.has(request))) continue;
    const place = await findUse(project, output, pattern);
    if (place) throw new BuildError(message(place, requests[0]));
  }
}

function message({ file, line, text }, request) {
  return `${file}:${line}: \`${text}\` needs a request, and plugin.toml has none. Add to plugin.toml:

[[request.${request}]]
${EXAMPLES[request] ?? ""}why = "…"`;
}

/** Finds the first use in the author's own files. A package that only might use it is left alone. */
async function findUse(project, output, pattern) {
  const own = Object.keys(output.inputs).filter((path) => !path.startsWith("sallyport:") && !path.includes("node_modules/"));
  for (const file of own) {
    const lines = (await readFile(join(project.folder, file), "utf8")).split("\n");
    const index = lines.findIndex((line) => pattern.test(line.replace(/\/\/.*/, "")));
    if (index >= 0) return { file, line: index + 1, text: lines[index].trim() };
  }
  return undefined;
}
