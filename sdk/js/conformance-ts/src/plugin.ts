// The tools of the conformance set, in TypeScript. `tests/conformance/` says what each must do.

import { AuthRequired, Denied, Failed, files, InvalidArguments, log, NotFound, Output, s, secrets, settings, state, tool, ToolError, Unavailable } from "sallyport";

export const types = tool({
  name: "types",
  description: "Returns its arguments.",
  readOnly: true,
  parameters: {
    flag: s.boolean(),
    count: s.integer().min(-(2 ** 31)).max(2 ** 31 - 1),
    big: s.uint64(),
    ratio: s.number(),
    text: s.string(),
    choice: s.enum(["red", "green", "blue"]),
    items: s.array(s.string()),
    record: s.object({ x: s.number(), y: s.number() }),
    note: s.string().nullable().default(null),
  },
  run: (args) => ({ ...args, big: String(args.big) }),
});

export const echo = tool({
  name: "echo",
  description: "Returns a text as a part of the output.",
  parameters: { text: s.string() },
  run: ({ text }) => new Output().text(text),
});

export const large = tool({
  name: "large",
  description: "Returns a text of that many bytes.",
  parameters: { bytes: s.integer().min(0) },
  run: ({ bytes }) => new Output().text("x".repeat(bytes)),
});

const ERRORS: Record<string, new (message: string) => ToolError> = {
  "invalid-arguments": InvalidArguments,
  "not-found": NotFound,
  denied: Denied,
  "auth-required": AuthRequired,
  unavailable: Unavailable,
  failed: Failed,
};

export const fail = tool({
  name: "fail",
  description: "Fails with an error of that kind.",
  parameters: { kind: s.string(), message: s.string() },
  run({ kind, message }) {
    const Kind = ERRORS[kind];
    throw Kind ? new Kind(message) : new ToolError(kind, message);
  },
});

export const logLine = tool({
  name: "log_line",
  description: "Writes a line to the log.",
  parameters: { level: s.enum(["trace", "debug", "info", "warn", "error"]), text: s.string() },
  run({ level, text }) {
    log[level](text);
  },
});

export const setting = tool({
  name: "setting",
  description: "Returns a setting, or null.",
  parameters: { key: s.string() },
  run: ({ key }) => settings.get(key),
});

export const request = tool({
  name: "fetch",
  description: "Sends a request.",
  openWorld: true,
  parameters: { url: s.string(), method: s.string().optional() },
  async run({ url, method = "GET" }) {
    const response = await fetch(url, { method });
    return { status: response.status, body: await response.text() };
  },
});

export const readFile = tool({
  name: "read_file",
  description: "Returns the text of a file.",
  parameters: { path: s.string() },
  run: ({ path }) => new Output().text(files.readText(path)),
});

export const writeFile = tool({
  name: "write_file",
  description: "Writes a file.",
  parameters: { path: s.string(), text: s.string() },
  run({ path, text }) {
    files.write(path, text);
  },
});

export const stateSet = tool({
  name: "state_set",
  description: "Keeps a value.",
  parameters: { key: s.string(), value: s.string() },
  run({ key, value }) {
    state.set(key, value);
  },
});

export const stateGet = tool({
  name: "state_get",
  description: "Returns a kept value, or null.",
  parameters: { key: s.string() },
  run: ({ key }) => state.get(key),
});

export const secretKnown = tool({
  name: "secret_known",
  description: "Returns whether the value of a secret is revealed.",
  parameters: { name: s.string() },
  run({ name }) {
    try {
      return secrets.get(name).length > 0;
    } catch (error) {
      if (error instanceof Denied) return false;
      throw error;
    }
  },
});

export const trap = tool({
  name: "trap",
  description: "Traps.",
  // A mistake is an exception in TypeScript. Only recursion without end stops the engine itself.
  run() {
    const deeper = (depth: number): number => deeper(depth + 1) + 1;
    return deeper(0);
  },
});

export const spin = tool({
  name: "spin",
  description: "Never ends.",
  run() {
    for (;;);
  },
});

export const grow = tool({
  name: "grow",
  description: "Allocates that many bytes.",
  parameters: { bytes: s.integer().min(0) },
  run: ({ bytes }) => new Uint8Array(bytes).fill(1).length,
});
