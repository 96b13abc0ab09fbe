// Errors of requests.

import { ToolError } from "../errors.js";

/**
 * Why a request failed. It names the origin and never the whole address, because a query may
 * contain data that a model should not read.
 */
export class HttpError extends ToolError {
  /** The URL, a header or the body is invalid. */
  static invalid(reason) {
    return new HttpError("failed", `the request cannot be sent: ${reason}`);
  }

  /** The policy does not grant the request. */
  static denied(request) {
    return new HttpError("denied", `${request.url.origin} may not be reached: the policy does not grant it`);
  }

  /** The complete response did not arrive in time. */
  static timeout(request) {
    return new HttpError("unavailable", `${request.url.origin} did not answer within ${request.timeoutMs} ms`);
  }

  /** The response is longer than the request allows. */
  static tooLarge(request) {
    return new HttpError("failed", `${request.url.origin} sent more than ${request.bytesMax} bytes`);
  }

  /** The service could not be reached, or the connection broke. */
  static unreachable(request, reason) {
    return new HttpError("unavailable", `${request.url.origin} cannot be reached: ${reason}`);
  }

  /** Converts an `error-code` of `wasi:http`. */
  static of(request, { tag, val }) {
    if (tag === "HTTP-request-denied") return HttpError.denied(request);
    if (tag === "HTTP-response-body-size") return HttpError.tooLarge(request);
    if (/timeout/i.test(tag)) return HttpError.timeout(request);
    if (/^HTTP-request/.test(tag)) return HttpError.invalid(words(tag));
    return HttpError.unreachable(request, typeof val === "string" ? val : words(tag));
  }
}

function words(tag) {
  return tag.replaceAll("-", " ").toLowerCase();
}
