// Makes the plain component: node build.mjs WIT_FOLDER OUT. SALLYPORT_NODE_MODULES names the folder
// with the generator.
import { readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [witPath, out] = process.argv.slice(2);
const modules = process.env.SALLYPORT_NODE_MODULES;
const entry = createRequire(join(modules, "any.js")).resolve("componentize-qjs");
const { componentize } = await import(pathToFileURL(entry));
const jsPath = new URL("plain.js", import.meta.url).pathname;
const { component } = await componentize({
  witPath, world: "plain", jsSource: await readFile(jsPath, "utf8"), jsPath, sync: true, stubWasi: true,
});
await writeFile(out, component);
