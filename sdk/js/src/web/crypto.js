// Random numbers: `crypto.getRandomValues`, `crypto.randomUUID`, and `Math.random`.

import * as host from "#host";

/** Most bytes that `getRandomValues` fills, as in browsers. */
const BYTES_MAX = 65536;

/** Stands in for `crypto`. Hashes and keys are not part of it. */
export const crypto = {
  getRandomValues(array) {
    if (!ArrayBuffer.isView(array)) throw new TypeError("getRandomValues needs a typed array");
    if (array.byteLength > BYTES_MAX) throw new RangeError(`getRandomValues fills at most ${BYTES_MAX} bytes`);
    new Uint8Array(array.buffer, array.byteOffset, array.byteLength).set(host.random.bytes(array.byteLength));
    return array;
  },

  randomUUID() {
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
    return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
  },
};

/** Stands in for `Math.random`, whose seed would be part of the snapshot. */
export function mathRandom() {
  const [high, low] = crypto.getRandomValues(new Uint32Array(2));
  return ((high >>> 5) * 2 ** 26 + (low >>> 6)) / 2 ** 53;
}
