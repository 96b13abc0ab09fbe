// `TextEncoder` and `TextDecoder` against those of Node.

import assert from "node:assert/strict";
import { test } from "node:test";
import { TextDecoder as GuestDecoder, TextEncoder as GuestEncoder } from "../src/web/text.js";

const TEXTS = ["", "abc", "äöü", "€", "😀", "a😀b", "\ud800", "x\udc00y", "\ufeffa", "\0\x7f\x80\u07ff\u0800\uffff\u{10000}\u{10ffff}", "ü".repeat(20_000)];

const BYTES = [
  [0xff], [0xc0, 0x80], [0xc3], [0xe2, 0x82], [0xe2, 0x28, 0xa1], [0xf0, 0x9f, 0x98], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80],
  [0xef, 0xbb, 0xbf, 0x61], [0x61, 0x80, 0x62], [0xf0, 0x80, 0x80, 0x80], [0xe0, 0x80, 0x80], [0xf8, 0x88, 0x80, 0x80, 0x80], [0xef, 0xbb], [0xc3, 0xc3, 0xa4],
];

test("texts are encoded as Node encodes them", () => {
  for (const text of TEXTS) {
    assert.deepEqual(new GuestEncoder().encode(text), new TextEncoder().encode(text));
  }
});

test("bytes are decoded as Node decodes them", () => {
  const all = [...BYTES, ...TEXTS.map((text) => [...new TextEncoder().encode(text)])];
  for (const options of [{}, { fatal: true }, { ignoreBOM: true }]) {
    for (const bytes of all) {
      const decode = (Kind) => {
        try {
          return new Kind("utf-8", options).decode(Uint8Array.from(bytes));
        } catch (error) {
          return error.name;
        }
      };
      assert.equal(decode(GuestDecoder), decode(TextDecoder), `${bytes.slice(0, 8)} ${JSON.stringify(options)}`);
    }
  }
});

test("only utf-8 is known", () => {
  assert.throws(() => new GuestDecoder("latin1"), { name: "RangeError", message: /only utf-8/ });
  assert.equal(new GuestDecoder("UTF8").decode(new Uint16Array([0x6161]).buffer), "aa");
});
