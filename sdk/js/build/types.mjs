// Type checking with the TypeScript compiler.

import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { BuildError } from "./error.mjs";

const DEFAULTS = [
  "--strict", "--target", "es2024", "--lib", "es2024", "--module", "esnext", "--moduleResolution", "bundler",
  "--skipLibCheck", "--types", "",
];

/** Checks the types of a plugin. The compiler's messages are printed as they are. */
export async function checkTypes({ folder, source }, tools) {
  const compiler = join(await tools.pathOf("typescript"), "bin", "tsc");
  const what = existsSync(join(folder, "tsconfig.json")) ? ["--project", "tsconfig.json"] : [...DEFAULTS, source];
  const options = ["--noEmit", "--pretty", "false", ...what];
  const run = spawnSync(process.execPath, [compiler, ...options], { cwd: folder, encoding: "utf8" });
  if (run.error) throw new BuildError(`the TypeScript compiler cannot be started: ${run.error.message}`);
  if (run.status !== 0) throw new BuildError((run.stdout + run.stderr).trimEnd());
}
