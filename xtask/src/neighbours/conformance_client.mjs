// The client that the conformance suite judges: Sallyport, used as a person would use it.
//
// Argument: the address of the server. Environment: SALLYPORT_PROGRAM, and from the suite
// MCP_CONFORMANCE_CONTEXT with the calls to make and the application to sign in as, where it says so.

import { execFile, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const LOGIN = "sallyport mcp login suite";
const POLICY = '[[rule]]\ntool = "suite.*"\ndecision = "allow"\n';

// Answers the questions of a server as a user would who takes what is offered.
const HOOK = `
import { createInterface } from "node:readline";
const valueOf = ({ kind, options = [] }) => {
  const [first] = options.map(({ value }) => value);
  return { text: "a name", number: 5, "yes-no": true, choice: first, choices: [first] }[kind];
};
for await (const line of createInterface({ input: process.stdin })) {
  const { hash, form } = JSON.parse(line);
  const needed = (form?.fields ?? []).filter((field) => field.required && field.default === undefined);
  const values = Object.fromEntries(needed.map((field) => [field.name, valueOf(field)]));
  console.log(JSON.stringify({ hash, answer: "once", ...(form && { values }) }));
  break;
}
`;

const program = process.env.SALLYPORT_PROGRAM;
const url = process.argv.at(-1);
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? "{}");
const home = mkdtempSync(join(tmpdir(), "conformance-"));
const env = {
  ...process.env,
  SALLYPORT_HOME: home,
  SALLYPORT_BROWSER: "none",
  SALLYPORT_COLOR: "never",
  CLIENT_SECRET: context.client_secret ?? "",
};

// Runs a command to its end, and logs what it prints.
function run(...args) {
  return new Promise((resolve) => {
    execFile(program, args, { env }, (error, stdout, stderr) => {
      console.log(`$ ${args.join(" ")}\n${stdout}${stderr}`);
      resolve({ succeeded: error === null, stdout, log: stdout + stderr });
    });
  });
}

// Signs in, and opens the page that the program names as a browser would.
async function signInOnce() {
  const own = context.client_id ? ["--client-id", context.client_id] : [];
  const secret = context.client_secret ? ["--client-secret-from-env", "CLIENT_SECRET"] : [];
  const args = ["mcp", "login", "suite", ...own, ...secret];
  const login = spawn(program, args, { env, stdio: ["ignore", "inherit", "pipe"] });
  const ended = new Promise((resolve) => login.on("close", resolve));
  let log = "";
  for await (const line of createInterface({ input: login.stderr })) {
    console.log(line);
    log += line;
    if (/^https?:/.test(line)) await fetch(line).catch(console.log);
  }
  return { succeeded: (await ended) === 0, log };
}

// Signs in, and once more if the server wants another account or more permissions by then.
async function signIn() {
  const first = await signInOnce();
  return first.log.includes(LOGIN) ? (await signInOnce()).succeeded : first.succeeded;
}

// A value that fits a schema.
function sampleOf({ type, enum: values, properties = {}, required = [] }) {
  if (values) return values[0];
  if (type === "object") {
    return Object.fromEntries(required.map((name) => [name, sampleOf(properties[name] ?? {})]));
  }
  return { number: 5, integer: 5, boolean: true, array: [] }[type] ?? "a";
}

// The suite may name the calls. A null does not fit the schemas, so those arguments are left out.
function callsOf(schemas) {
  if (context.toolCalls) {
    return context.toolCalls.map(({ name, arguments: args }) => [
      name,
      Object.fromEntries(Object.entries(args).filter(([, value]) => value !== null)),
    ]);
  }
  return Object.entries(schemas).map(([name, schema]) => {
    // One tool wants to see the schema of another as it arrived.
    const echoed = { schema: schemas.json_schema_2020_12_tool };
    return [name, name === "json_schema_echo" ? echoed : sampleOf(schema)];
  });
}

// Calls a tool, and once more after a sign-in that the program asks for.
async function call(name, args) {
  const once = () => run("call", `suite.${name}`, JSON.stringify(args));
  const { log } = await once();
  if (log.includes(LOGIN) && (await signIn())) await once();
}

writeFileSync(join(home, "policy.toml"), POLICY);
writeFileSync(join(home, "hook.mjs"), HOOK);
const hook = JSON.stringify([process.execPath, join(home, "hook.mjs")]);
writeFileSync(join(home, "sallyport.toml"), `[approvals]\nhook = ${hook}\n`);
const added = await run("mcp", "add", "suite", "--yes", "--url", url);
const isReady = added.log.includes(LOGIN) ? await signIn() : added.succeeded;
const { stdout } = await run("tool", "list", "--output", "json");
const schemas = Object.fromEntries(
  JSON.parse(stdout || "[]")
    .map(({ function: tool }) => [...tool.name.split("__"), tool.parameters])
    .filter(([plugin]) => plugin === "suite")
    .map(([, name, schema]) => [name, schema]),
);
for (const [name, args] of callsOf(schemas)) await call(name, args);
rmSync(home, { recursive: true });
process.exit(isReady ? 0 : 1);
