import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { call, host } from "sallyport/testing";
import { query } from "../src/plugin.js";

const STORE = JSON.stringify({
  store: { book: [{ title: "A", price: 8.95 }, { title: "B", price: 12.99, isbn: "0" }], "odd'key": [1, null, true] },
  big: "…",
}).replace('"…"', "18446744073709551615");

beforeEach(() => host());

test("values are found", async () => {
  for (const [path, values] of [
    ["$.store.book[*].title", ["A", "B"]],
    ["$..price", [8.95, 12.99]],
    ["$.store.book[?@.price < 10].title", ["A"]],
    ["$.store.book[?@.isbn].title", ["B"]],
    ["$.store.book[-1:].title", ["B"]],
    ["$.store.book[?match(@.title, '[AB]')].price", [8.95, 12.99]],
    ["$.store.book[?length(@.title) == 1 && @.price > 10].title", ["B"]],
    ["$['store'][\"odd'key\"][1]", [null]],
    ["$.nothing", []],
    ["$.constructor", []],
    ["$.__proto__", []],
    ["$['store']['book']['length']", []],
  ]) {
    const { data } = await call(query, { path, json: STORE });
    assert.deepEqual(data.values, values, path);
    assert.equal(data.count, values.length);
  }
});

test("integers of 64 bits keep their digits", async () => {
  const { json } = await call(query, { path: "$.big", json: STORE });
  assert.equal(json, '{"count":1,"values":[18446744073709551615]}');
  const list = '[{"a\\u0001\'\\\\\\n": 12345678901234567890}, {"b": 1}]';
  const found = await call(query, { path: "$..*", json: list, paths: true });
  assert.match(found.json, /12345678901234567890/);
  const compared = await call(query, { path: "$[?@.a > 5].a", json: '[{"a": 12345678901234567890}, {"a": 1}]' });
  assert.equal(compared.json, '{"count":1,"values":[12345678901234567890]}');
});

test("paths are normalized", async () => {
  const { data } = await call(query, { path: "$.store.*[0]", json: STORE, paths: true });
  assert.deepEqual(data.paths, ["$['store']['book'][0]", "$['store']['odd\\'key'][0]"]);
});

test("a limit cuts, and says so", async () => {
  const { data } = await call(query, { path: "$[*]", json: "[1,2,3]", limit: 2 });
  assert.deepEqual([data.values, typeof data.cut], [[1, 2], "string"]);
  const whole = await call(query, { path: "$[*]", json: "[1,2]", limit: 2 });
  assert.equal(whole.data.cut, undefined);
});

test("files are read in granted folders", async () => {
  host({ files: { "/data/a.json": "\ufeff[1]" } });
  assert.deepEqual((await call(query, { path: "$[0]", file: "/data/a.json" })).data.values, [1]);
  await assert.rejects(call(query, { path: "$", file: "/data/b.json" }), { kind: "not-found" });
  await assert.rejects(call(query, { path: "$", file: "/etc/passwd" }), { kind: "denied" });
});

test("mistakes are told with their place", async () => {
  for (const [args, message] of [
    [{ path: "$", json: "1", file: "/a" }, /either json or file/],
    [{ path: "$" }, /either json or file/],
    [{ path: "store", json: "1" }, /^store is not a JSONPath: it must start with \$/],
    [{ path: "$.a[", json: "1" }, /at character 5, at its end/],
    [{ path: "$.a[?@.b = 1]", json: "1" }, /at character \d+, at "/],
    [{ path: "$", json: "{\n  \"a\": x}" }, /^the JSON is not JSON: .*x/],
    [{ path: "$", json: "" }, /^the JSON is not JSON: /],
    [{ path: "", json: "1" }, /the argument path must have a length of at least 1/],
    [{ path: "$", json: "1", limit: 0 }, /the argument limit must be at least 1/],
  ]) {
    await assert.rejects(call(query, args), { kind: "invalid-arguments", message });
  }
});

test("a result that nobody would read is refused", async () => {
  const json = JSON.stringify(Array(900).fill("x".repeat(300)));
  await assert.rejects(call(query, { path: "$", json }), { kind: "failed", message: /narrow the path/ });
});

test("deep JSON is no trap", async () => {
  const deep = "[".repeat(100) + "]".repeat(100);
  assert.equal((await call(query, { path: "$..*", json: deep })).data.count, 99);
});
