// What `Request` and `Response` share: a body that is read once.

import { URLSearchParams } from "./search-params.js";

const JSON_TYPE = "application/json";

/** Returns the bytes of a body, and the media type that it implies. */
export function bodyBytes(body) {
  if (body === undefined || body === null) return { bytes: new Uint8Array() };
  if (typeof body === "string") return { bytes: encode(body), type: "text/plain;charset=UTF-8" };
  if (isSearchParams(body)) return { bytes: encode(String(body)), type: "application/x-www-form-urlencoded;charset=UTF-8" };
  if (body instanceof ArrayBuffer) return { bytes: new Uint8Array(body) };
  if (ArrayBuffer.isView(body)) return { bytes: new Uint8Array(body.buffer, body.byteOffset, body.byteLength) };
  const found = Object.prototype.toString.call(body).slice(8, -1);
  throw new TypeError(`a body can be a text, bytes or URLSearchParams, not ${found}. For JSON, write body: JSON.stringify(value)`);
}

function isSearchParams(body) {
  return body instanceof URLSearchParams || Object.prototype.toString.call(body) === "[object URLSearchParams]";
}

function encode(text) {
  return new TextEncoder().encode(text);
}

/** A body of bytes, with the methods of the web to read it. */
export class Body {
  #bytes;
  bodyUsed = false;

  constructor(bytes) {
    this.#bytes = bytes;
  }

  /** Returns the bytes, and marks them as read. */
  takeBytes() {
    if (this.bodyUsed) throw new TypeError("the body has been read already. Keep its value, or call clone() first");
    this.bodyUsed = true;
    return this.#bytes;
  }

  /** Returns the bytes for a copy. */
  copyBytes() {
    if (this.bodyUsed) throw new TypeError("the body has been read already, so it cannot be copied");
    return this.#bytes;
  }

  async bytes() {
    return this.takeBytes();
  }

  async arrayBuffer() {
    return this.takeBytes().slice().buffer;
  }

  async text() {
    return new TextDecoder().decode(this.takeBytes());
  }

  async json() {
    return JSON.parse(await this.text());
  }
}

export { JSON_TYPE };
