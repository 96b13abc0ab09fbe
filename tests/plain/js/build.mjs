// Makes the plain component: node build.mjs WIT_FOLDER OUT, beside a `node_modules` with the
// generator.
import { writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { componentize } from "@bytecodealliance/componentize-js";

const [witPath, out] = process.argv.slice(2);
const sourcePath = fileURLToPath(new URL("plain.js", import.meta.url));
const disableFeatures = ["clocks", "fetch-event", "http", "random", "stdio"];
const { component } = await componentize({ sourcePath, witPath, worldName: "plain", disableFeatures });
await writeFile(out, component);
