// Test plugins natively: call a tool as the host does, and set up what the host gives.

import { readArguments, readOutput } from "./call.js";
import { toJson } from "./json.js";
import { fake, resetFake } from "./native/host.js";

const CONTEXT = { callId: "call-1", sessionId: "session-1", userId: "local", conversationId: undefined, deadlineMs: 30_000 };

const nativeFetch = globalThis.fetch;

/**
 * Calls a tool as the host does: the arguments and the result pass through JSON. Rejects with the
 * error of the tool.
 *
 * @param {import("./tool.js").Tool} tool
 * @param {unknown} [args] a value, or a text of JSON
 */
export async function call(tool, args = {}, context = {}) {
  const json = typeof args === "string" ? args : toJson(args, "the arguments");
  const returned = await tool.run(readArguments(tool, json), { ...CONTEXT, ...context });
  const output = readOutput(tool, returned);
  return { data: JSON.parse(output.data), json: output.data, content: output.content, speech: output.speech };
}

/**
 * Sets up the stand-in for the host, anew. `fetch` answers each `Request` with a `Response`; without
 * it, every request is refused.
 */
export function host({ settings = {}, secrets = {}, grant = [], files = {}, environment = {}, fetch } = {}) {
  resetFake();
  Object.assign(fake, { settings, secrets, environment, granted: new Set(grant) });
  for (const [path, contents] of Object.entries(files)) {
    fake.files.set(path, typeof contents === "string" ? new TextEncoder().encode(contents) : contents);
  }
  globalThis.fetch = fetch ? async (input, init) => fetch(new Request(input, init)) : nativeRefusal;
}

async function nativeRefusal(input) {
  throw Object.assign(new TypeError(`${new URL(String(input?.url ?? input)).origin} may not be reached: the test grants nothing`), { kind: "denied" });
}

/** Gives the real `fetch` back to a test. */
export function realFetch() {
  globalThis.fetch = nativeFetch;
}

/** What the plugin has logged, sent, reported and kept since `host()`. */
export const recorded = {
  get log() { return fake.logged; },
  get messages() { return fake.sent; },
  get progress() { return fake.progressed; },
  get state() { return Object.fromEntries([...fake.state].map(([key, { value }]) => [key, JSON.parse(new TextDecoder().decode(value))])); },
  get files() { return Object.fromEntries([...fake.files].map(([path, bytes]) => [path, new TextDecoder().decode(bytes)])); },
};
