// Removes the types of a TypeScript file with esbuild, which `sallyport plugin build` links.

import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

/** Loads a file for Node's module loader. */
export async function load(url, context, nextLoad) {
  if (!/\.[cm]?ts$/.test(new URL(url).pathname)) return nextLoad(url, context);
  const path = fileURLToPath(url);
  const { code } = await esbuildNear(path).transform(await readFile(path, "utf8"), {
    loader: "ts",
    format: "esm",
    sourcefile: path,
    sourcemap: "inline",
    target: "node20",
  });
  return { format: "module", source: code, shortCircuit: true };
}

function esbuildNear(path) {
  try {
    return createRequire(path)("esbuild");
  } catch (error) {
    if (error.code !== "MODULE_NOT_FOUND") throw error;
    throw new Error("esbuild is missing. Run `sallyport plugin build` once: it links esbuild into node_modules/");
  }
}
