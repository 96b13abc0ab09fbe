// `TextEncoder` and `TextDecoder` for UTF-8.

/** Most bytes that are decoded in one step. */
const CHUNK_UNITS = 8192;

/** Encodes text as UTF-8. A lone surrogate becomes U+FFFD. */
export class TextEncoder {
  get encoding() {
    return "utf-8";
  }

  encode(text = "") {
    const units = String(text).toWellFormed();
    const bytes = new Uint8Array(units.length * 3);
    let length = 0;
    for (let index = 0; index < units.length; index += 1) {
      const point = units.codePointAt(index);
      if (point < 0x80) {
        bytes[length] = point;
        length += 1;
        continue;
      }
      if (point > 0xffff) index += 1;
      length = writePoint(bytes, length, point);
    }
    return bytes.slice(0, length);
  }
}

function writePoint(bytes, at, point) {
  const count = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
  bytes[at] = [0, 0xc0, 0xe0, 0xf0][count] | (point >> (6 * count));
  for (let left = count - 1; left >= 0; left -= 1) {
    bytes[at + count - left] = 0x80 | ((point >> (6 * left)) & 0x3f);
  }
  return at + count + 1;
}

/** Decodes UTF-8. Wrong bytes become U+FFFD, or a TypeError with `fatal`. */
export class TextDecoder {
  constructor(label = "utf-8", { fatal = false, ignoreBOM = false } = {}) {
    if (!/^utf-?8$/i.test(String(label).trim())) throw new RangeError(`only utf-8 can be decoded, not ${label}`);
    this.fatal = fatal;
    this.ignoreBOM = ignoreBOM;
  }

  get encoding() {
    return "utf-8";
  }

  decode(input = new Uint8Array()) {
    const bytes = input instanceof Uint8Array ? input : viewOf(input);
    const hasMark = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
    return decodeFrom(bytes, hasMark && !this.ignoreBOM ? 3 : 0, this.fatal);
  }
}

function viewOf(input) {
  if (ArrayBuffer.isView(input)) return new Uint8Array(input.buffer, input.byteOffset, input.byteLength);
  return new Uint8Array(input);
}

function decodeFrom(bytes, start, fatal) {
  const parts = [];
  let units = [];
  for (let at = start; at < bytes.length; ) {
    const first = bytes[at];
    if (first < 0x80) {
      units.push(first);
      at += 1;
    } else {
      const { point, length } = readPoint(bytes, at);
      if (point === undefined && fatal) throw new TypeError("the bytes are not UTF-8");
      pushPoint(units, point ?? 0xfffd);
      at += length;
    }
    if (units.length >= CHUNK_UNITS) {
      parts.push(String.fromCharCode(...units));
      units = [];
    }
  }
  parts.push(String.fromCharCode(...units));
  return parts.join("");
}

function pushPoint(units, point) {
  if (point > 0xffff) units.push(0xd800 + ((point - 0x10000) >> 10), 0xdc00 + ((point - 0x10000) & 0x3ff));
  else units.push(point);
}

/** Reads one code point; without `point`, `length` bytes are wrong. */
function readPoint(bytes, at) {
  const first = bytes[at];
  const count = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
  if (first < 0xc2 || first > 0xf4) return { length: 1 };
  let [low, high] = secondRange(first);
  let point = first & (0x3f >> count);
  for (let index = 1; index <= count; index += 1) {
    const next = bytes[at + index];
    if (next === undefined || next < low || next > high) return { length: index };
    point = (point << 6) | (next & 0x3f);
    [low, high] = [0x80, 0xbf];
  }
  return { point, length: count + 1 };
}

/** The range of the second byte, which rules out long forms, surrogates and points that do not exist. */
function secondRange(first) {
  if (first === 0xe0) return [0xa0, 0xbf];
  if (first === 0xed) return [0x80, 0x9f];
  if (first === 0xf0) return [0x90, 0xbf];
  if (first === 0xf4) return [0x80, 0x8f];
  return [0x80, 0xbf];
}
