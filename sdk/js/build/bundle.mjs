// One module of the plugin, of what it imports and of the SDK, by esbuild.

import { readFile } from "node:fs/promises";
import { join, posix } from "node:path";
import { BuildError } from "./error.mjs";
import { hostModule } from "./host-module.mjs";
import { lineTable } from "./lines.mjs";
import { sdkFolder } from "./tools.mjs";
import { checkRequests } from "./unrequested.mjs";

/** The SDK's files have names of their own, so that the bundle is the same wherever the SDK is. */
const SDK = "sallyport";

/** The engines run no functions of `async` in a synchronous call, see `src/wasm/promise.js`. */
const LOWERED = { "async-await": false, "async-generator": false, "for-await": false, "top-level-await": false };

/** Bundles a plugin. Returns the source, the interfaces that it imports, and its table of lines. */
export async function bundle(project, tools, engine) {
  const esbuild = await tools.load("esbuild");
  const result = await esbuild.build(options(project, engine)).catch((error) => refuse(esbuild, error));
  const [output] = Object.values(result.metafile.outputs).filter(({ entryPoint }) => entryPoint);
  await checkRequests(project, output);
  const map = JSON.parse(result.outputFiles.find(({ path }) => path.endsWith(".map")).text);
  const lines = lineTable(map);
  const code = result.outputFiles.find(({ path }) => path.endsWith(".js")).text;
  const source = `${code}\nglobalThis.__sallyportLines = ${JSON.stringify(lines)};\n`;
  const imports = [...new Set(output.imports.filter(({ external }) => external).map(({ path }) => path))].sort();
  return { source, imports, lines };
}

function options(project, engine) {
  return {
    absWorkingDir: project.folder,
    entryPoints: [{ in: `${SDK}/entry`, out: "plugin" }],
    inject: [`${SDK}/globals`],
    define: { "process.env.NODE_ENV": '"production"' },
    plugins: [sdkPlugin(project, engine)],
    bundle: true,
    write: false,
    outdir: "out",
    format: "esm",
    platform: "neutral",
    mainFields: ["module", "main"],
    conditions: ["import", "module"],
    target: "esnext",
    supported: LOWERED,
    charset: "utf8",
    legalComments: "none",
    sourcemap: "external",
    metafile: true,
    logLevel: "silent",
  };
}

async function refuse(esbuild, error) {
  if (!error.errors) throw error;
  const errors = error.errors.map((one) => ({ ...one, notes: [...one.notes, ...advice(one.text)] }));
  const texts = await esbuild.formatMessages(errors, { kind: "error", color: false });
  throw new BuildError(texts.join("").trimEnd());
}

function advice(text) {
  if (/Could not resolve "(node:|fs|path|http|https|os|crypto|child_process|buffer)/.test(text)) {
    return [{ text: "A plugin has no modules of Node.js. For files, import { files } from \"sallyport\"; for HTTP, use fetch()." }];
  }
  if (text.startsWith("Could not resolve")) return [{ text: "Install it in the plugin's folder, with npm install." }];
  if (text.includes("op-level await")) return [{ text: "Modules of a plugin run when it is built. Move the await into run()." }];
  return [];
}

/** Resolves the SDK's modules, the module of the host, and the interfaces of the contract. */
function sdkPlugin(project, engine) {
  const inSdk = (path) => ({ path, namespace: SDK, sideEffects: path === "src/wasm/start.js" || path === "entry" });
  return {
    name: SDK,
    setup(build) {
      build.onResolve({ filter: /^sallyport\/entry$/ }, () => inSdk("entry"));
      build.onResolve({ filter: /^sallyport\/globals$/ }, () => inSdk("src/wasm/globals.js"));
      build.onResolve({ filter: /^sallyport$/ }, () => inSdk("src/index.js"));
      build.onResolve({ filter: /^sallyport\/testing$/ }, () => ({ errors: [{ text: "sallyport/testing is for tests, not for a plugin" }] }));
      build.onResolve({ filter: /^#host$/, namespace: SDK }, () => inSdk("host"));
      build.onResolve({ filter: /^sallyport:plugin\// }, ({ path }) => ({ path, external: true, sideEffects: false }));
      build.onResolve({ filter: /^wasi:/ }, ({ path }) => {
        return { path: path.replace("wasi", engine.wasi), external: true, sideEffects: false };
      });
      build.onResolve({ filter: /^#author$/, namespace: SDK }, () => ({ path: join(project.folder, project.source) }));
      build.onResolve({ filter: /^\./, namespace: SDK }, ({ path, importer }) => inSdk(posix.join(posix.dirname(importer), path)));
      build.onLoad({ filter: /.*/, namespace: SDK }, ({ path }) => loadSdk(path, project, engine));
    },
  };
}

const ENTRY = `import "./src/wasm/start.js";
import * as author from "#author";
import { serve } from "./src/wasm/serve.js";
export const tools = serve(author);
`;

async function loadSdk(path, project, engine) {
  if (path === "entry") return { contents: ENTRY };
  if (path === "host") return { contents: hostModule(project.requests, engine) };
  return { contents: await readFile(join(sdkFolder, path), "utf8") };
}

