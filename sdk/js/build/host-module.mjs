// The module `#host` of a component: what the plugin requests, and `undefined` for the rest.

/** What always exists, and what exists if `plugin.toml` requests it: name, request, module. */
const ALWAYS = [
  ["log", "sallyport:plugin/log@0.1.0"],
  ["config", "sallyport:plugin/config@0.1.0"],
];
const REQUESTED = [
  ["state", "state", "sallyport:plugin/state@0.1.0"],
  ["secrets", "secrets", "sallyport:plugin/secrets@0.1.0"],
  ["notify", "notify", "sallyport:plugin/notify@0.1.0"],
  ["progress", "progress", "sallyport:plugin/progress@0.1.0"],
  ["environment", "env", "wasi:cli/environment@0.2.0"],
];
const OVER_WASI = [
  ["http", ["net"], "./src/wasm/http.js"],
  ["files", ["fs", "scratch"], "./src/wasm/files.js"],
];

/** Returns the source of the module. An unused import is left out of the bundle. */
export function hostModule(requests, engine) {
  const namespace = ([name, path]) => `import * as ${name}Host from ${JSON.stringify(path)};\nexport const ${name} = /* @__PURE__ */ guarded(${JSON.stringify(LABELS[name] ?? name)}, ${name}Host);`;
  const requested = REQUESTED.map(([name, request, path]) => (requests.has(request) ? namespace([name, path]) : absent(name)));
  const adapted = OVER_WASI.map(([name, wanted, path]) => (wanted.some((one) => requests.has(one)) ? from(name, path) : absent(name)));
  return [
    GUARDED,
    ...ALWAYS.map(namespace),
    ...requested,
    ...adapted,
    from("clock", "./src/wasm/clock.js"),
    from("random", "./src/wasm/random.js"),
    `export const toU64 = ${engine.toU64};`,
  ].join("\n");
}

/** What authors know by another name. */
const LABELS = { config: "settings", log: "the log" };

/** While the component is built there is no host, and a call of it would end the engine. */
const GUARDED = `import { needHost } from "./src/wasm/life.js";
function guarded(name, functions) {
  return new Proxy(functions, {
    get(target, key) {
      needHost(name);
      return target[key];
    },
  });
}`;

const absent = (name) => `export const ${name} = undefined;`;
const from = (name, path) => `export { ${name} } from ${JSON.stringify(path)};`;
