// The packages that build a plugin: where they are, and the links that editors and tests use.

import { existsSync } from "node:fs";
import { lstat, mkdir, readFile, readlink, rm, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { BuildError } from "./error.mjs";

/** The folder of this SDK. */
export const sdkFolder = dirname(dirname(fileURLToPath(import.meta.url)));

/** Finds the packages: in SALLYPORT_NODE_MODULES, in the plugin's folder, or next to the SDK. */
export async function findTools(folder) {
  const given = process.env.SALLYPORT_NODE_MODULES;
  const places = [given, join(folder, "node_modules"), join(sdkFolder, "node_modules")].filter(Boolean);
  const pathOf = (name) => places.map((place) => join(place, name)).find(existsSync);
  return {
    pathOf: async (name) => pathOf(name) ?? missing(name),
    find: pathOf,
    load: async (name) => import(pathToFileURL(await entryOf(pathOf(name) ?? (await missing(name))))),
  };
}

async function missing(name) {
  const pinned = (await pinnedTools()).find((line) => line.startsWith(`${name}@`)) ?? name;
  throw new BuildError(`the npm package ${pinned} is missing. To fix: sallyport plugin build --get-tools
or install it next to the plugin: npm install --no-save ${pinned}`);
}

async function pinnedTools() {
  const texts = await Promise.all(["tools.txt", "tools-spidermonkey.txt"].map((name) => readFile(join(sdkFolder, name), "utf8")));
  return texts.join("\n").split("\n").filter(Boolean);
}

/** The main module of a package. */
async function entryOf(path) {
  const about = JSON.parse(await readFile(join(path, "package.json"), "utf8"));
  const exported = about.exports?.["."] ?? about.exports;
  return join(path, firstPath(exported) ?? about.module ?? about.main ?? "index.js");
}

function firstPath(exported) {
  if (typeof exported === "string" || exported === undefined) return exported;
  return firstPath(exported.node ?? exported.import ?? exported.default);
}

/** Links the SDK and its tools into the plugin's `node_modules`, for the tests and for editors. */
export async function linkPackages({ folder }, tools) {
  const targets = [["sallyport", sdkFolder], ["esbuild", tools.find("esbuild")], ["typescript", tools.find("typescript")]];
  for (const [name, target] of targets) {
    const link = join(folder, "node_modules", name);
    if (target && target !== link) await linkTo(link, target);
  }
}

/** Replaces a link of an earlier build. A folder that the author has installed stays. */
async function linkTo(link, target) {
  try {
    await mkdir(dirname(link), { recursive: true });
    if ((await lstat(link).catch(() => undefined))?.isSymbolicLink()) {
      if ((await readlink(link)) === target) return;
      await rm(link);
    }
    await symlink(target, link, "dir");
  } catch {
    // Another build has made it, or the folder is read-only. The component is built without links.
  }
}
