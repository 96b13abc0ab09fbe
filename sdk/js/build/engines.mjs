// The engines that run a plugin, and how each makes a component.

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { BuildError } from "./error.mjs";
import { authorMessage } from "./lines.mjs";
import { deterministicRuntime } from "./quickjs-runtime.mjs";
import { WORLD } from "./world.mjs";

/**
 * QuickJS: small, and quick to start. It has numbers where the contract has 64-bit integers.
 *
 * Its compiler runs the component once, and links its own WASI then. Resources of that WASI do not fit
 * the stubs of the interfaces that it does not know, such as HTTP. So the plugin's interfaces of WASI
 * have another namespace of the same length until the component is made.
 */
const quickjs = {
  toU64: "(value) => value",
  wasi: "wasq",
  async componentize({ bundled, world, work, tools }) {
    const { componentize } = await tools.load("componentize-qjs");
    const jsPath = await writeBundle(work, bundled);
    const runtimeBytes = await deterministicRuntime(await tools.pathOf("componentize-qjs"));
    const runtime = runtimeBytes ? { runtimeBytes } : { sync: true };
    const options = { witPath: world, world: WORLD, jsSource: bundled.source, jsPath, ...runtime };
    const { component } = await componentize(options).catch((error) => refuse(error, bundled));
    return withRealNamespace(component);
  },
};

function withRealNamespace(component) {
  const names = component.toString("latin1").replace(/wasq:(?=(?:cli|clocks|filesystem|http|io|random)\/)/g, "wasi:");
  return Buffer.from(names, "latin1");
}

/** SpiderMonkey: faster at long computations, seven times as large. */
const spidermonkey = {
  toU64: "BigInt",
  wasi: "wasi",
  async componentize({ bundled, world, work, tools }) {
    const { componentize } = await tools.load("@bytecodealliance/componentize-js");
    const sourcePath = await writeBundle(work, bundled);
    const disableFeatures = ["http", "fetch-event", "random", "stdio"];
    const options = { sourcePath, witPath: world, worldName: WORLD, disableFeatures };
    const { component } = await componentize(options).catch((error) => refuse(error, bundled));
    return component;
  },
};

export const engines = { quickjs, spidermonkey };

async function writeBundle(work, { source }) {
  const path = join(work, "plugin.js");
  await writeFile(path, source);
  return path;
}

function refuse(error, bundled) {
  throw new BuildError(authorMessage(String(error.message), bundled.lines));
}
