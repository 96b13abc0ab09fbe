// Speaks with the service. The cookie of the log-in goes along by itself; the header shows that a
// page of the console asks, because another page cannot send it.

const HEADERS = { "sallyport-console": "1" };

/** An error of the service, in words for people. */
export class ApiProblem extends Error {
  constructor({ type, status, title, detail }) {
    const sentence = `${title.charAt(0).toUpperCase()}${title.slice(1)}`;
    super(detail ? `${sentence}: ${detail}.` : `${sentence}.`);
    this.type = type;
    this.status = status;
  }
}

const UNREACHABLE = { type: "unreachable", status: 0, title: "the service cannot be reached" };

let whenLoggedOut = () => {};

/** Sets what happens when the log-in has ended. */
export function onLoggedOut(handler) {
  whenLoggedOut = handler;
}

/** Makes a request, and returns the answer as it comes. */
async function send(method, path, { body, headers = {}, signal } = {}) {
  const all = { ...HEADERS, ...headers };
  if (body !== undefined) all["content-type"] = "application/json";
  const text = body === undefined ? undefined : JSON.stringify(body);
  let response;
  try {
    response = await fetch(path, { method, headers: all, body: text, signal, cache: "no-store", redirect: "error" });
  } catch (error) {
    throw error.name === "AbortError" ? error : new ApiProblem(UNREACHABLE);
  }
  if (!response.ok) throw await problemOf(response);
  return response;
}

async function problemOf(response) {
  const fallback = { type: "unknown", status: response.status, title: `the service answered ${response.status}` };
  const problem = await response.json().catch(() => fallback);
  return new ApiProblem({ ...fallback, ...problem });
}

/** Makes a request, and returns the JSON of its answer. */
export async function request(method, path, body, { signal, isLogin = false } = {}) {
  try {
    const response = await send(method, path, { body, signal });
    return response.status === 204 ? null : await response.json();
  } catch (error) {
    if (error.type === "unauthorized" && !isLogin) whenLoggedOut();
    throw error;
  }
}

/**
 * Saves an answer as a file. It is no link, because a browser that follows one sends no header of
 * ours, and without TLS nothing else shows which page asks.
 */
export async function download(path, name) {
  const response = await send("GET", path);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await response.blob());
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

export const get = (path, options) => request("GET", path, undefined, options);
export const post = (path, body, options) => request("POST", path, body, options);

/** Makes a path of parts that may have any characters. */
export const path = (...parts) => `/${parts.map(encodeURIComponent).join("/")}`;

/** Makes a query of the fields that have a value. */
export function query(fields) {
  const given = Object.entries(fields).filter(([, value]) => value !== "" && value !== null && value !== undefined && value !== false);
  return given.length ? `?${new URLSearchParams(given)}` : "";
}

/** Waits, unless the signal ends the wait. */
export const pause = (ms, signal) =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });

/** The waits between attempts to connect again, in milliseconds. The last one repeats. */
const WAITS_MS = [500, 1000, 2000, 5000, 10000];

/**
 * Follows the events of a session until it ends or the signal stops it. It connects again by itself.
 *
 * `on.event` receives each event, `on.connected` whether the stream lives, `on.forgotten` returns the
 * ID to continue after when events are lost, and `on.closed` hears that the session has ended.
 */
export async function followEvents(sessionId, lastId, on, signal) {
  let [after, failures] = [lastId, 0];
  while (!signal.aborted) {
    let end = "broken";
    try {
      const headers = after ? { "last-event-id": after } : {};
      const response = await send("GET", path("v1", "sessions", sessionId, "events"), { headers, signal });
      failures = 0;
      on.connected(true);
      end = await readEvents(response, (id, event) => {
        after = id;
        on.event(event);
      });
    } catch (error) {
      if (signal.aborted) return;
      end = endOfProblem(error);
    }
    if (end === "token-ended") return whenLoggedOut();
    if (end === "closed") return on.closed();
    if (end === "too-slow") after = await on.forgotten().catch(() => after);
    if (end === "time-up" || signal.aborted) continue;
    on.connected(false);
    await pause(WAITS_MS[Math.min(failures, WAITS_MS.length - 1)], signal);
    failures += 1;
  }
}

function endOfProblem(error) {
  const ends = { 401: "token-ended", 404: "closed", 409: "closed", 410: "too-slow", 400: "too-slow" };
  return ends[error.status] ?? "broken";
}

/** Reads server-sent events, and returns why they end. */
async function readEvents(response, take) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return "broken";
    const pieces = (rest + value).split("\n\n");
    rest = pieces.pop();
    for (const piece of pieces) {
      const fields = fieldsOf(piece);
      if (fields.event === "end") return JSON.parse(fields.data).reason;
      if (fields.data) take(fields.id, JSON.parse(fields.data));
    }
  }
}

function fieldsOf(piece) {
  const lines = piece.split("\n").filter((line) => !line.startsWith(":"));
  return Object.fromEntries(lines.map((line) => [line.split(":", 1)[0], line.slice(line.indexOf(":") + 1).trimStart()]));
}
