// The world of a component: the tools that it exports, and exactly the interfaces that it imports.

import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { BuildError } from "./error.mjs";
import { sdkFolder } from "./tools.mjs";

/** The name of the world. */
export const WORLD = "js-plugin";

/** Writes the WIT of a component into a folder below `work`, and returns it. */
export async function writeWorld(work, imports, engine) {
  const folder = join(work, "wit");
  await mkdir(join(folder, "deps"), { recursive: true });
  await copyWasi(join(folder, "deps"), engine.wasi);
  await copyContract(join(folder, "deps", "sallyport-plugin"));
  const lines = imports.map((path) => `    import ${path};`);
  const world = `package sallyport:js;\n\nworld ${WORLD} {\n${lines.join("\n")}\n    export sallyport:plugin/tools@0.1.0;\n}\n`;
  await writeFile(join(folder, "world.wit"), world);
  return folder;
}

/** Copies the interfaces of WASI, under the namespace that the engine wants. */
async function copyWasi(target, namespace) {
  for (const name of await readdir(join(sdkFolder, "wit"))) {
    const text = await readFile(join(sdkFolder, "wit", name), "utf8");
    await mkdir(join(target, name.replace(".wit", "")));
    await writeFile(join(target, name.replace(".wit", ""), name), text.replaceAll("wasi:", `${namespace}:`));
  }
}

/** Copies the contract, which SALLYPORT_WIT names or which is in the repository. */
async function copyContract(target) {
  const places = [process.env.SALLYPORT_WIT, join(sdkFolder, "..", "..", "wit"), join(sdkFolder, "..", "wit")];
  const from = places.find((place) => place && existsSync(join(place, "world.wit")));
  if (!from) throw new BuildError("the contract is missing. Set SALLYPORT_WIT to the folder wit/ of Sallyport");
  await mkdir(target);
  for (const name of (await readdir(from)).filter((one) => one.endsWith(".wit"))) {
    await writeFile(join(target, name), await readFile(join(from, name)));
  }
}
