// The QuickJS runtime without random numbers and clocks of its own, so that a build is reproducible.
//
// The compiler runs the runtime once and keeps its memory. That memory would hold seeds from the
// machine that builds. So the calls that draw them are removed from the runtime, which the package
// carries inside of its native library. The SDK gives authors the host's clocks and random numbers.

import { readFile } from "node:fs/promises";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { eachCall, importedFunctions, MAGIC, sectionsOf } from "./wasm-calls.mjs";

const [IMPORTS, CODE] = [2, 10];

const NOP = 0x01;
/** Drops the address of the result, which stays as it was. */
const DROP = [0x1a];
/** The constant 0 of 64 bits. */
const ZERO = [0x42, 0x00];

/** What replaces a call of each function, without its version. */
const REPLACEMENTS = {
  "wasi:random/insecure-seed#insecure-seed": DROP,
  "wasi:clocks/wall-clock#now": DROP,
  "wasi:clocks/monotonic-clock#now": ZERO,
};

/** Returns the bytes of the runtime, or `undefined` if this version of the package differs. */
export async function deterministicRuntime(packageFolder) {
  const library = await readFile(nativeLibrary(packageFolder));
  const runtimes = modulesIn(library).filter(isSynchronousRuntime);
  const largest = runtimes.sort((a, b) => b.length - a.length)[0];
  return largest && withoutSeeds(largest);
}

function nativeLibrary(packageFolder) {
  const scope = join(packageFolder, "..", "@andreiltd");
  const name = readdirSync(scope).find((one) => one.startsWith("componentize-qjs-binding-"));
  const file = readdirSync(join(scope, name)).find((one) => one.endsWith(".node"));
  return join(scope, name, file);
}

function modulesIn(library) {
  const modules = [];
  for (let at = library.indexOf(MAGIC); at >= 0; at = library.indexOf(MAGIC, at + 1)) {
    const { sections, end } = sectionsOf(library, at);
    if (sections.some(({ id }) => id === CODE)) modules.push(library.subarray(at, end));
  }
  return modules;
}

/** The runtime loads modules; the one for asynchronous components also knows tasks. */
function isSynchronousRuntime(module) {
  const imports = functionsOf(module);
  return imports.includes("local:init/module-loader#load") && !imports.some((name) => /\[(task|subtask|waitable)/.test(name));
}

function functionsOf(module) {
  const section = sectionsOf(module).sections.find(({ id }) => id === IMPORTS);
  return section ? importedFunctions(module, section) : [];
}

function withoutSeeds(module) {
  const bytes = Buffer.from(module);
  const replacements = functionsOf(bytes).map((name) => REPLACEMENTS[name.replace(/@[^#]*/, "")]);
  eachCall(bytes, sectionsOf(bytes).sections.find(({ id }) => id === CODE), (index, start, end) => {
    const replacement = replacements[index];
    if (!replacement) return;
    bytes.fill(NOP, start, end);
    bytes.set(replacement, start);
  });
  return bytes;
}
