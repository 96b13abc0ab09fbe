// `fetch`, `Request` and `Response`, as the web has them, over the requests that the host sends.

import * as host from "#host";
import { requested } from "../requested.js";
import { Body, bodyBytes, JSON_TYPE } from "./body.js";
import { Headers } from "./headers.js";
import { HttpError } from "./http-error.js";

/** Longest wait for a complete response: it leaves time for an answer to the user. */
const TIMEOUT_MS = 10_000;

/** Longest body of a response. A plugin has it in memory, often also as parsed JSON. */
const BODY_BYTES_MAX = 4 * 1024 * 1024;

const REDIRECTS_MAX = 5;
const REDIRECT_STATUSES = new Set([301, 302, 303, 307, 308]);

const METHOD = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** A request. */
export class Request extends Body {
  constructor(input, init = {}) {
    const base = input instanceof Request ? input : undefined;
    const method = methodOf(init.method ?? base?.method ?? "GET");
    const { bytes, type } = init.body === undefined && base ? { bytes: base.copyBytes() } : bodyBytes(init.body);
    super(bytes);
    if (bytes.length > 0 && ["GET", "HEAD"].includes(method)) throw new TypeError(`a ${method} request cannot have a body`);
    this.method = method;
    this.url = base ? base.url : parsedUrl(input).href;
    this.headers = new Headers(init.headers ?? base?.headers);
    if (type && !this.headers.has("content-type")) this.headers.set("content-type", type);
    this.redirect = init.redirect ?? base?.redirect ?? "follow";
    this.signal = init.signal ?? base?.signal;
  }

  clone() {
    return new Request(this);
  }
}

function methodOf(method) {
  const text = String(method);
  if (!METHOD.test(text)) throw new TypeError(`${JSON.stringify(text)} is not an HTTP method`);
  return /^(get|head|post|put|delete|options|patch)$/i.test(text) ? text.toUpperCase() : text;
}

function parsedUrl(input) {
  const url = new URL(String(input));
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw HttpError.invalid(`only http and https addresses can be requested, not ${url.protocol}`);
  }
  if (url.username || url.password) throw HttpError.invalid("the address may hold neither a user nor a password");
  return url;
}

/** A response. */
export class Response extends Body {
  constructor(body = null, { status = 200, statusText = "", headers } = {}) {
    const { bytes, type } = bodyBytes(body);
    super(bytes);
    this.status = status;
    this.statusText = statusText;
    this.headers = new Headers(headers);
    if (type && !this.headers.has("content-type")) this.headers.set("content-type", type);
    this.url = "";
    this.redirected = false;
    this.type = "default";
  }

  get ok() {
    return this.status >= 200 && this.status <= 299;
  }

  clone() {
    const copy = new Response(this.copyBytes(), this);
    return Object.assign(copy, { url: this.url, redirected: this.redirected });
  }

  static json(value, init = {}) {
    const headers = new Headers(init.headers);
    if (!headers.has("content-type")) headers.set("content-type", JSON_TYPE);
    return new Response(JSON.stringify(value), { ...init, headers });
  }
}

/**
 * Sends a request. It blocks the plugin until the complete response has arrived.
 *
 * @param {string | URL | Request} input
 * @param {RequestInit & { bytesMax?: number }} [init] `bytesMax` is the longest accepted response
 */
export async function fetch(input, init = {}) {
  const functions = requested(host.http, "net");
  const request = new Request(input, init);
  request.signal?.throwIfAborted();
  const limits = { timeoutMs: request.signal?.timeoutMs ?? TIMEOUT_MS, bytesMax: init.bytesMax ?? BODY_BYTES_MAX };
  return follow(functions, plainRequest(request, limits), request.redirect);
}

function plainRequest(request, limits) {
  const { method, headers } = request;
  return { ...limits, method, url: new URL(request.url), headers: [...headers], body: request.takeBytes() };
}

/** Sends a request and follows its redirects. The policy decides about each of them. */
async function follow(functions, first, redirect) {
  let request = first;
  for (let count = 0; count <= REDIRECTS_MAX; count += 1) {
    const answer = await functions.exchange(request);
    const location = redirectTarget(request, answer);
    if (location === undefined || redirect === "manual") return responseOf(request, answer, count > 0);
    if (redirect === "error") throw HttpError.unreachable(request, "it redirects to another address");
    request = redirected(request, location, answer.status);
  }
  throw HttpError.unreachable(first, `it redirects more than ${REDIRECTS_MAX} times`);
}

function redirectTarget(request, { status, headers }) {
  if (!REDIRECT_STATUSES.has(status)) return undefined;
  const location = headers.find(([name]) => name.toLowerCase() === "location")?.[1];
  return location === undefined ? undefined : parsedUrl(new URL(location, request.url.href));
}

/** The request to the target of a redirect, without what belongs to the first one alone. */
function redirected(request, url, status) {
  const becomesGet = status === 303 ? request.method !== "HEAD" : status <= 302 && request.method === "POST";
  const isElsewhere = url.origin !== request.url.origin;
  const dropped = (name) => (isElsewhere && /^(authorization|cookie)$/i.test(name))
    || (becomesGet && /^content-/i.test(name));
  const headers = request.headers.filter(([name]) => !dropped(name));
  if (!becomesGet) return { ...request, url, headers };
  return { ...request, url, headers, method: "GET", body: new Uint8Array() };
}

function responseOf(request, { status, headers, body }, wasRedirected) {
  const response = new Response(body, { status, headers });
  return Object.assign(response, { url: request.url.href, redirected: wasRedirected });
}
