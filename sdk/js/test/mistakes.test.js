// Mistakes of authors: each gets one clear message, with file and line where there is one.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { exportedTools, tool } from "../src/tool.js";
import { s } from "../src/schema.js";

const sdk = dirname(dirname(fileURLToPath(import.meta.url)));
const hasTools = existsSync(join(process.env.SALLYPORT_NODE_MODULES ?? join(sdk, "node_modules"), "componentize-qjs"));
const skip = hasTools ? false : "the packages of tools.txt are not installed (SALLYPORT_NODE_MODULES)";

const run = () => 1;
let count = 0;
const fine = () => ({ name: `fine_${(count += 1)}`, description: "d", run });

test("mistakes in a definition say what to do", () => {
  tool({ ...fine(), name: "taken" });
  for (const [definition, message] of [
    [undefined, "tool() needs an object: tool({ name, description, parameters, run })"],
    ["x", "tool() needs an object: tool({ name, description, parameters, run })"],
    [{ description: "d", run }, 'tool() needs a name of letters, digits, "_" and "-", not undefined'],
    [{ name: "a b", description: "d", run }, 'tool() needs a name of letters, digits, "_" and "-", not "a b"'],
    [{ name: "a", run }, "the tool a needs a description. The model decides by it when to call the tool"],
    [{ name: "a", description: " ", run }, "the tool a needs a description. The model decides by it when to call the tool"],
    [{ name: "a", description: "d" }, "the tool a needs a function: run(args) { … }"],
    [{ name: "a", description: "d", run: "x" }, "the tool a needs a function: run(args) { … }"],
    [{ ...fine(), name: "taken" }, "two tools have the name taken. Give one of them another name"],
    [{ name: "a", description: "d", run, params: {} }, /^the tool a has the unknown key params\. Known are name, title, /],
    [{ name: "a", description: "d", run, parameters: { x: s.string } }, 'the tool a: the property "x" needs a schema such as s.string(), not a function. Did you forget to call it, as in s.string()?'],
    [{ name: "a", description: "d", run, parameters: { x: "string" } }, 'the tool a: the property "x" needs a schema such as s.string(), not a string'],
    [{ name: "a", description: "d", run, parameters: s.string() }, "the tool a: the parameters must be an object: s.object({ … }), or only { … }"],
    [{ name: "a", description: "d", run, parameters: { __proto__: { x: s.string() } } }, /Write a property called __proto__ as \["__proto__"\]/],
    [{ name: "a", description: "d", run, output: { maximum: NaN } }, /^the tool a: the schema of the output\.maximum is NaN/],
  ]) {
    assert.throws(() => tool(definition), { name: "TypeError", message });
  }
  for (const [make, message] of [
    [() => s.enum([]), /needs a list of values/],
    [() => s.enum("ab"), /needs a list of values/],
    [() => s.enum([{}]), /takes texts, numbers, booleans and null/],
    [() => s.array(), /^s\.array\(\) needs a schema such as s\.string\(\), not a undefined|^s\.array\(\)/],
    [() => s.union([]), /needs a list of schemas/],
    [() => s.integer().default(1.5), /default must be a whole number/],
  ]) {
    assert.throws(make, { message });
  }
  assert.throws(() => exportedTools({}), { message: "the tool taken is not exported. Write: export const … = tool({ … })" });
});

const work = mkdtempSync(join(tmpdir(), "sallyport-js-test-"));
after(() => rmSync(work, { recursive: true, force: true }));

const MANIFEST = 'name = "p"\nversion = "0.1.0"\ndescription = "d"\n';
const TOOL = 'import { s, tool } from "sallyport";\nexport const t = tool({ name: "t", description: "d", run: () => 1 });\n';

/** Builds a plugin of some files, and returns what the build prints. */
function build(files, args = []) {
  const folder = mkdtempSync(join(work, "p-"));
  const all = { "package.json": '{"type": "module"}', "plugin.toml": MANIFEST, ...files };
  for (const [name, text] of Object.entries(all)) {
    if (text === undefined) continue;
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  const run = spawnSync(process.execPath, [join(sdk, "build.mjs"), folder, join(folder, "out.wasm"), ...args], { encoding: "utf8" });
  assert.equal(existsSync(join(folder, "out.wasm")), run.status === 0);
  return { status: run.status, text: run.stdout + run.stderr };
}

const source = (text) => ({ "src/plugin.js": text });
const typed = (text) => ({ "src/plugin.ts": text });

test("mistakes in a folder are told by the build", { skip }, () => {
  for (const [files, message, args] of [
    [{ "package.json": undefined }, /package\.json does not exist\. `sallyport plugin new NAME --lang js` makes a plugin/],
    [{ "package.json": "{" }, /^package\.json: /],
    [{ "plugin.toml": undefined }, /plugin\.toml does not exist/],
    [{ "plugin.toml": "name = \n" }, /^plugin\.toml:1:\d+: /],
    [{}, /^package\.json: add "main": "src\/plugin\.js"/],
    [{ "package.json": '{"main": "x.js"}' }, /^package\.json: "main" names x\.js, which does not exist/],
    [source("const a = ;\n"), /Unexpected ";"[\s\S]*src\/plugin\.js:1:10/],
    [source('import "./gone.js";\n'), /Could not resolve "\.\/gone\.js"[\s\S]*src\/plugin\.js:1:7/],
    [source('import fs from "node:fs";\nexport const a = fs;\n'), /src\/plugin\.js:1:15[\s\S]*A plugin has no modules of Node\.js\. For files, import \{ files \}/],
    [source('import left from "left-pad";\nexport const a = left;\n'), /src\/plugin\.js:1:17[\s\S]*npm install/],
    [source('import { tool, state2 } from "sallyport";\nexport const a = [tool, state2];\n'), /src\/plugin\.js:1:15[\s\S]*|No matching export/],
    [source('import "sallyport/testing";\n'), /src\/plugin\.js:1:7[\s\S]*|sallyport\/testing is for tests/],
    [source("await null;\n"), /src\/plugin\.js:1:0[\s\S]*Modules of a plugin run when it is built\. Move the await into run\(\)/],
    [source('import { state, tool } from "sallyport";\n\nexport const a = tool({ name: "a", description: "d", run: () => state.get("x") });\n'), /^src\/plugin\.js:3: `.*state\.get.*` needs a request, and plugin\.toml has none\. Add to plugin\.toml:\n\n\[\[request\.state\]\]\nwhy = "…"/],
    [source(`${TOOL}export const b = tool({ name: "b", description: "d", run: () => fetch("https://a.example/") });\n`), /^src\/plugin\.js:3: [\s\S]*\[\[request\.net\]\]\nallow = "GET https:\/\/…"/],
    [typed(`${TOOL}const n: number = "x";\n`), /src\/plugin\.ts\(3,7\): error TS2322/],
    [typed(`${TOOL}tool({ name: "u", description: "d", parameters: { a: s.string() }, run: ({ b }) => b });\n`), /src\/plugin\.ts\(3,\d+\): error TS2339: Property 'b' does not exist/],
    [source(TOOL), /there is no option --fast/, ["--fast"]],
    [source(TOOL), /there is no engine v8\. Known are quickjs and spidermonkey/, ["--engine", "v8"]],
  ]) {
    const { status, text } = build(files, args);
    assert.equal(status, 1, text);
    assert.match(text, message);
    assert.doesNotMatch(text, /node:internal|at async/, "a stack of the build program is no message");
  }
});

test("mistakes that show when the module runs have a place in the author's file", { skip }, () => {
  const shared = 'export function boom() {\n  throw new RangeError("too far");\n}\n';
  for (const [files, message] of [
    [{ "src/a.js": shared, ...source('import { boom } from "./a.js";\n\nboom();\n') }, /^src\/a\.js:2: too far/],
    [source('import { tool } from "sallyport";\n\nexport const t = tool({ name: "t" });\n'), /^src\/plugin\.js:3: the tool t needs a description/],
    [source('import { settings } from "sallyport";\n\nconst a = settings.get("a");\n'), /^src\/plugin\.js:3: settings cannot be used while the plugin is built\. Use it in run\(\)/],
    [source("export const nothing = 1;\n"), /^the plugin exports no tool/],
  ]) {
    const { status, text } = build(files);
    assert.equal(status, 1, text);
    assert.match(text, message);
  }
});

test("a sound plugin is built to the same bytes in two folders", { skip }, async () => {
  const { readFile } = await import("node:fs/promises");
  const outs = [];
  for (const name of ["one", "two/deeper"]) {
    const folder = join(work, name);
    mkdirSync(join(folder, "src"), { recursive: true });
    writeFileSync(join(folder, "package.json"), "{}");
    writeFileSync(join(folder, "plugin.toml"), MANIFEST);
    writeFileSync(join(folder, "src/plugin.js"), TOOL);
    const out = join(folder, "p.wasm");
    const run = spawnSync(process.execPath, [join(sdk, "build.mjs"), folder, out], { encoding: "utf8" });
    assert.equal(run.status, 0, run.stderr);
    outs.push(await readFile(out));
  }
  assert.ok(outs[0].equals(outs[1]), "the bytes differ");
});
