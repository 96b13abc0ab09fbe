// What a plugin's folder says: its source and its requests.

import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { BuildError } from "./error.mjs";

const DEFAULT_SOURCES = ["src/plugin.ts", "src/plugin.js"];

/** Reads `package.json` and `plugin.toml`. */
export async function readProject(folder, tools) {
  const about = parsed(await fileOf(folder, "package.json"), "package.json", JSON.parse);
  const { parse } = await tools.load("smol-toml");
  const manifest = parsed(await fileOf(folder, "plugin.toml"), "plugin.toml", parse);
  const source = about.main ?? DEFAULT_SOURCES.find((path) => existsSync(join(folder, path)));
  if (!source || !existsSync(join(folder, source))) {
    throw new BuildError(`package.json: ${source ? `"main" names ${source}, which does not exist` : 'add "main": "src/plugin.js"'}`);
  }
  return { folder, source, isTypeScript: /\.[cm]?tsx?$/.test(source), requests: requestsOf(manifest) };
}

async function fileOf(folder, name) {
  try {
    return await readFile(join(folder, name), "utf8");
  } catch (error) {
    if (error.code === "ENOENT") throw new BuildError(`${join(folder, name)} does not exist. \`sallyport plugin new NAME --lang js\` makes a plugin`);
    throw new BuildError(`${join(folder, name)} cannot be read: ${error.message}`);
  }
}

function parsed(text, name, parse) {
  try {
    return parse(text);
  } catch (error) {
    throw new BuildError(`${name}${error.line ? `:${error.line}:${error.column}` : ""}: ${error.message}`);
  }
}

/** The names of the requested powers. A secret counts only if the plugin reads its value. */
function requestsOf(manifest) {
  const requests = Object.entries(manifest.request ?? {});
  const isUseful = ([name, entries]) => name !== "secrets" || [entries].flat().some((secret) => secret.reveal);
  return new Set(requests.filter(isUseful).map(([name]) => name));
}
