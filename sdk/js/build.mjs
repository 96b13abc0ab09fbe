// Makes a component of a plugin: node build.mjs PROJECT OUT [--engine quickjs|spidermonkey]

import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { bundle } from "./build/bundle.mjs";
import { BuildError } from "./build/error.mjs";
import { engines } from "./build/engines.mjs";
import { readProject } from "./build/project.mjs";
import { findTools, linkPackages } from "./build/tools.mjs";
import { checkTypes } from "./build/types.mjs";
import { writeWorld } from "./build/world.mjs";

const USAGE = "usage: node build.mjs PROJECT OUT [--engine quickjs|spidermonkey]";

/** Reads the command line. */
function readArguments(args) {
  const [places, options] = [[], { engine: "quickjs" }];
  for (let index = 0; index < args.length; index += 1) {
    if (args[index] === "--engine") options.engine = args[(index += 1)];
    else if (args[index].startsWith("--engine=")) options.engine = args[index].slice("--engine=".length);
    else if (args[index].startsWith("-")) throw new BuildError(`there is no option ${args[index]}\n${USAGE}`);
    else places.push(args[index]);
  }
  if (places.length !== 2) throw new BuildError(USAGE);
  if (!Object.hasOwn(engines, options.engine)) {
    throw new BuildError(`there is no engine ${options.engine}. Known are ${Object.keys(engines).join(" and ")}`);
  }
  return { folder: resolve(places[0]), out: resolve(places[1]), ...options };
}

async function build({ folder, out, engine }) {
  const tools = await findTools(folder);
  const project = await readProject(folder, tools);
  const work = await mkdtemp(join(tmpdir(), "sallyport-js-"));
  try {
    await linkPackages(project, tools);
    if (project.isTypeScript) await checkTypes(project, tools);
    const bundled = await bundle(project, tools, engines[engine]);
    const world = await writeWorld(work, bundled.imports, engines[engine]);
    const component = await engines[engine].componentize({ bundled, world, work, tools });
    await mkdir(dirname(out), { recursive: true });
    await writeFile(out, component);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

try {
  await build(readArguments(process.argv.slice(2)));
} catch (error) {
  if (!(error instanceof BuildError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}
