// The types that `tool()` infers, checked by the TypeScript compiler.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const sdk = dirname(dirname(fileURLToPath(import.meta.url)));
const compiler = join(process.env.SALLYPORT_NODE_MODULES ?? join(sdk, "node_modules"), "typescript/bin/tsc");
const skip = existsSync(compiler) ? false : "the packages of tools.txt are not installed (SALLYPORT_NODE_MODULES)";

/** Lines that follow `// error: TEXT` must have that error, and no other line may have one. */
const PROGRAM = `
import { NotFound, Output, s, state, tool, type Infer } from "sallyport";
import { call, host } from "sallyport/testing";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends (<T>() => T extends B ? 1 : 2) ? true : false;
const same = <A, B>(_: Same<A, B>): void => {};

export const all = tool({
  name: "all",
  description: "d",
  parameters: {
    text: s.string(), flag: s.boolean(), ratio: s.number().min(0), count: s.integer(), big: s.uint64().max(5n),
    choice: s.enum(["red", "green"]), fixed: s.literal(3), items: s.array(s.string()).max(2), map: s.record(s.number()),
    point: s.object({ x: s.number(), y: s.number().optional() }), either: s.union([s.string(), s.boolean()]),
    maybe: s.string("A text.").optional(), given: s.integer().default(1), none: s.string().nullable(), free: s.any(),
  },
  run(args, context) {
    same<typeof args, {
      text: string; flag: boolean; ratio: number; count: number; big: bigint; choice: "red" | "green"; fixed: 3; items: string[];
      map: Record<string, number>; point: { x: number; y?: number | undefined }; either: string | boolean; maybe?: string | undefined;
      given: number; none: string | null; free: any;
    }>(true);
    same<typeof context.deadlineMs, number | undefined>(true);
    // error: Property 'typo' does not exist
    args.typo;
    // error: Type 'bigint' is not assignable to type 'number'
    const wrong: number = args.big;
    return new Output({ wrong }).text(args.text).speech("x");
  },
});

export const point = s.object({ x: s.int64() });
same<Infer<typeof point>, { x: bigint }>(true);
export const whole = tool({ name: "whole", description: "d", parameters: point, run: async ({ x }) => x + 1n });
export const none = tool({ name: "none", description: "d", run: () => null });
export const json = tool({ name: "json", description: "d", parameters: { type: "object", properties: {} }, run: (args) => args["x"] });

declare const zod: { readonly "~standard": { readonly vendor: string; readonly types?: { readonly input: unknown; readonly output: { n: number } } | undefined } };
export const standard = tool({ name: "standard", description: "d", parameters: zod, run: ({ n }) => n.toFixed(1) });

// error: Property 'description' is missing
tool({ name: "x", run: () => 1 });
// error: Property 'run' is missing
tool({ name: "x", description: "d" });
// error: Argument of type 'string' is not assignable to parameter of type 'number'
s.string().min("1");
// error: Argument of type 'string' is not assignable to parameter of type 'number'
s.integer().default("1");
// error: not assignable
tool({ name: "x", description: "d", parameters: { a: s.string }, run: () => 1 });
// error: 'parms' does not exist
tool({ name: "x", description: "d", parms: {}, run: () => 1 });
// error: Expected 1-2 arguments, but got 0
new NotFound();
// error: 'a' does not exist in type
fetch("https://a.example/", { method: "POST", body: { a: 1 } });
// error: Cannot find name 'document'
document.title;
// error: Cannot find name 'process'
process.env;
// error: Type '"email"' is not assignable
host({ grant: ["email"] });

export async function uses(): Promise<number> {
  const response = await fetch(new URL("/x", "https://a.example/"), { signal: AbortSignal.timeout(5) });
  console.log(response.ok, response.headers.get("a"), new TextEncoder().encode("x").length, crypto.randomUUID());
  setTimeout(() => {}, 5);
  const { data, content } = await call(all, { text: "x" });
  return state.update("n", (old?: number) => (old ?? 0) + 1) + data.length + content.length;
}
`;

test("arguments have the types that the schema says", { skip }, () => {
  const folder = mkdtempSync(join(tmpdir(), "sallyport-js-types-"));
  mkdirSync(join(folder, "node_modules"));
  symlinkSync(sdk, join(folder, "node_modules/sallyport"));
  writeFileSync(join(folder, "program.ts"), PROGRAM);
  const options = ["--noEmit", "--strict", "--pretty", "false", "--target", "es2024", "--lib", "es2024", "--module", "esnext", "--moduleResolution", "bundler", "--types", ""];
  const { stdout } = spawnSync(process.execPath, [compiler, ...options, "program.ts"], { cwd: folder, encoding: "utf8" });
  rmSync(folder, { recursive: true });
  const found = new Map([...stdout.matchAll(/^program\.ts\((\d+),\d+\): error (.*)/gm)].map(([, line, text]) => [Number(line), text]));
  const lines = PROGRAM.split("\n");
  const wanted = lines.flatMap((line, index) => (line.includes("// error: ") ? [[index + 2, line.split("// error: ")[1]]] : []));
  assert.deepEqual([...found.keys()], wanted.map(([line]) => line), stdout);
  for (const [line, text] of wanted) assert.ok(found.get(line).includes(text), `${line}: ${found.get(line)}`);
});
