// JSON without loss.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fromJson, toJson } from "../src/json.js";

test("what JSON can hold is written as JSON.stringify writes it", () => {
  const shared = { a: 1 };
  for (const value of [
    null, true, 0, -0, 1.5, 1e21, 5e-324, "", "ü\n\"\\\u2028", [], {}, [[[]]], { a: undefined, b: [undefined, null] }, new Date(0),
    { toJSON: () => "x" }, [shared, shared], Object.create({ inherited: 1 }), Object.create(null), { ["__proto__"]: 1, constructor: 2 }, "x".repeat(1e6),
    { [Symbol("s")]: 1 }, new String("boxed").toString(), JSON.parse('{"__proto__": {"a": 1}}'),
  ]) {
    assert.equal(toJson(value), JSON.stringify(value));
  }
  assert.equal(toJson(undefined), "null");
});

test("integers of 64 bits keep their digits", () => {
  const max = 18446744073709551615n;
  assert.equal(toJson({ max, min: -(2n ** 63n) }), '{"max":18446744073709551615,"min":-9223372036854775808}');
  assert.deepEqual(fromJson('{"a":18446744073709551615,"b":9007199254740991,"c":1.0000000000000000001,"d":"18446744073709551615","e":1e30,"f":"#\\"1234567890123456789"}'), {
    a: max, b: 9007199254740991, c: 1, d: "18446744073709551615", e: 1e30, f: '#"1234567890123456789',
  });
  assert.equal(fromJson("-9223372036854775808"), -(2n ** 63n));
});

test("lone surrogates become U+FFFD, in values and keys", () => {
  assert.equal(toJson({ "\ud800": "a\udc00b" }), '{"\ufffd":"a\ufffdb"}');
});

test("what JSON cannot hold is an error with its place and a way out", () => {
  const cycle = { list: [] };
  cycle.list.push(cycle);
  let deep = [];
  for (let level = 0; level < 200; level += 1) deep = [deep];
  const selfish = { toJSON() { return this; } };
  for (const [value, message] of [
    [NaN, /^the result is NaN, .*null or a text/],
    [{ a: [1, Infinity] }, /^the result\.a\[1\] is Infinity/],
    [2n ** 64n, /beyond 64 bits/],
    [-(2n ** 63n) - 1n, /beyond 64 bits/],
    [{ f() {} }, /^the result\.f is a function/],
    [Symbol("s"), /^the result is a symbol/],
    [cycle, /^the result\.list\[0\] contains itself/],
    [deep, /nested deeper than 120/],
    [{ m: new Map() }, /\.m is a Map\. Use Object\.fromEntries/],
    [new Set(), /is a Set\. Use \[\.\.\.set\]/],
    [{ "a b": new Error("x") }, /^the result\["a b"\] is an Error\. Throw it/],
    [Promise.resolve(1), /is a Promise\. Did you forget await/],
    [new Uint8Array(1), /is binary/],
    [new ArrayBuffer(1), /is binary/],
    [/x/, /is a RegExp/],
    [new Date(NaN), /invalid Date/],
    [new WeakMap(), /weak/],
    [selfish, /toJSON\(\) that returns itself/],
  ]) {
    assert.throws(() => toJson(value, "the result"), { name: "TypeError", message });
  }
});
