// Requests, over `wasi:http`. One exchange blocks until the complete response has arrived.

import { subscribeDuration } from "wasi:clocks/monotonic-clock@0.2.0";
import { handle } from "wasi:http/outgoing-handler@0.2.0";
import { Fields, IncomingBody, OutgoingBody, OutgoingRequest, RequestOptions } from "wasi:http/types@0.2.0";
import { poll } from "wasi:io/poll@0.2.0";
import { toU64 } from "#host";
import { thrownVariant } from "../errors.js";
import { HttpError } from "../web/http-error.js";

/** Most bytes of one read or write; `blocking-write-and-flush` takes no more than 4096. */
const READ_BYTES = 64 * 1024;
const WRITE_BYTES = 4096;

const NANOS_PER_MILLI = 1e6;

const dispose = (resource) => resource[Symbol.dispose]();

/** Sends a request and waits for the complete response. */
function exchange(request) {
  const timer = subscribeDuration(toU64(Math.ceil(request.timeoutMs * NANOS_PER_MILLI)));
  try {
    const pending = send(request);
    wait(pending, timer, request);
    const response = received(pending, request);
    dispose(pending);
    return read(response, timer, request);
  } finally {
    dispose(timer);
  }
}

function send(request) {
  const outgoing = new OutgoingRequest(fieldsOf(request));
  outgoing.setMethod(methodOf(request.method));
  outgoing.setScheme({ tag: request.url.protocol === "https:" ? "HTTPS" : "HTTP" });
  outgoing.setAuthority(request.url.host);
  outgoing.setPathWithQuery(request.url.pathname + request.url.search);
  const body = outgoing.body();
  const pending = attempt(request, () => handle(outgoing, optionsOf(request)));
  attempt(request, () => writeBody(body, request.body));
  return pending;
}

function fieldsOf(request) {
  const encoder = new TextEncoder();
  try {
    return Fields.fromList(request.headers.map(([name, value]) => [name, encoder.encode(value)]));
  } catch (thrown) {
    throw HttpError.invalid(`a header is refused: ${thrownVariant(thrown).tag}`);
  }
}

const METHODS = new Set(["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"]);

function methodOf(method) {
  return METHODS.has(method) ? { tag: method.toLowerCase() } : { tag: "other", val: method };
}

function optionsOf(request) {
  const options = new RequestOptions();
  const nanos = toU64(Math.ceil(request.timeoutMs * NANOS_PER_MILLI));
  options.setConnectTimeout(nanos);
  options.setFirstByteTimeout(nanos);
  options.setBetweenBytesTimeout(nanos);
  return options;
}

function writeBody(body, bytes) {
  const stream = body.write();
  for (let at = 0; at < bytes.length; at += WRITE_BYTES) {
    stream.blockingWriteAndFlush(bytes.subarray(at, at + WRITE_BYTES));
  }
  dispose(stream);
  OutgoingBody.finish(body, undefined);
}

/** Waits until something is ready, or throws if the time is over. */
function wait(resource, timer, request) {
  const pollable = resource.subscribe();
  const ready = poll([pollable, timer]);
  dispose(pollable);
  if (!ready.includes(0)) throw HttpError.timeout(request);
}

function received(pending, request) {
  const result = pending.get();
  const outer = result?.tag === undefined ? result : unwrap(result, request);
  return outer?.tag === undefined ? outer : unwrap(outer, request);
}

function unwrap(result, request) {
  if (result.tag === "err") throw HttpError.of(request, thrownVariant(result.val));
  return result.val;
}

function attempt(request, run) {
  try {
    return run();
  } catch (thrown) {
    throw thrown instanceof HttpError ? thrown : HttpError.of(request, thrownVariant(thrown));
  }
}

function read(response, timer, request) {
  const fields = response.headers();
  const headers = headersOf(fields);
  dispose(fields);
  const status = response.status();
  const body = response.consume();
  const stream = body.stream();
  const bytes = readBody(stream, timer, request);
  dispose(stream);
  dispose(IncomingBody.finish(body));
  dispose(response);
  return { status, headers, body: bytes };
}

function headersOf(fields) {
  const decoder = new TextDecoder();
  return fields.entries().map(([name, value]) => [name, decoder.decode(value)]);
}

function readBody(stream, timer, request) {
  const chunks = [];
  let length = 0;
  for (;;) {
    wait(stream, timer, request);
    const chunk = nextChunk(stream, request);
    if (chunk === undefined) return joined(chunks, length);
    chunks.push(chunk);
    length += chunk.length;
    if (length > request.bytesMax) throw HttpError.tooLarge(request);
  }
}

function nextChunk(stream, request) {
  try {
    return stream.read(toU64(READ_BYTES));
  } catch (thrown) {
    const { tag, val } = thrownVariant(thrown);
    if (tag === "closed") return undefined;
    throw HttpError.unreachable(request, val?.toDebugString?.() ?? "the connection broke");
  }
}

function joined(chunks, length) {
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
}

export const http = { exchange };
