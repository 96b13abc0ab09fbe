// Test plugins natively: call a tool as the host does, and set up what the host gives.

import { readArguments, readOutput } from "./call.js";
import { toJson } from "./json.js";
import { fake, resetFake } from "./native/host.js";
import { fetch as guestFetch } from "./web/fetch.js";

const CONTEXT = { callId: "call-1", sessionId: "session-1", userId: "local", conversationId: undefined, deadlineMs: 30_000 };

// The plugin's requests go to the stand-in, with the same rules as in a component.
globalThis.fetch = guestFetch;

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
  if (fetch) fake.answer = ({ url, method, headers, body }) => fetch(new Request(url.href, { method, headers, body: body.length > 0 ? body : undefined }));
}

/** What the plugin has logged, sent, reported and kept since `host()`. */
export const recorded = {
  get log() { return fake.logged; },
  get messages() { return fake.sent; },
  get progress() { return fake.progressed; },
  get state() { return Object.fromEntries([...fake.state].map(([key, { value }]) => [key, JSON.parse(new TextDecoder().decode(value))])); },
  get files() { return Object.fromEntries([...fake.files].map(([path, bytes]) => [path, new TextDecoder().decode(bytes)])); },
};
