// The schema builder: the JSON Schema, and how arguments are read.

import assert from "node:assert/strict";
import { test } from "node:test";
import { parametersOf, s } from "../src/schema.js";

test("schemas say what the model needs", () => {
  for (const [schema, json] of [
    [s.string("A city.").min(1).max(9).pattern(/^a/), { type: "string", description: "A city.", minLength: 1, maxLength: 9, pattern: "^a" }],
    [s.integer().min(0).max(5).default(2), { type: "integer", minimum: 0, maximum: 5, default: 2 }],
    [s.array(s.boolean()).min(1), { type: "array", items: { type: "boolean" }, minItems: 1 }],
    [s.enum(["a", 1, null]), { type: ["string", "number", "null"], enum: ["a", 1, null] }],
    [s.literal("x"), { type: "string", enum: ["x"] }],
    [s.record(s.number()), { type: "object", additionalProperties: { type: "number" } }],
    [s.union([s.string(), s.number()]), { anyOf: [{ type: "string" }, { type: "number" }] }],
    [s.number().nullable().describe("d"), { anyOf: [{ type: "number" }, { type: "null" }], description: "d" }],
    [s.any().with({ title: "t" }), { title: "t" }],
    [s.object({ a: s.string(), b: s.string().optional() }), {
      type: "object", properties: { a: { type: "string" }, b: { type: "string" } }, required: ["a"], additionalProperties: false,
    }],
  ]) {
    assert.deepEqual(schema.toJSON(), json);
  }
  assert.match(parametersOf({ n: s.uint64() }).schema, /"type":\["integer","string"\],"minimum":0,"maximum":18446744073709551615,/);
});

test("arguments are read in the form that the author's code gets", () => {
  const read = (shape, value) => parametersOf(shape).read(value);
  for (const [shape, value, wanted] of [
    [{ a: s.uint64() }, { a: 5 }, { a: 5n }],
    [{ a: s.uint64() }, { a: "18446744073709551615" }, { a: 2n ** 64n - 1n }],
    [{ a: s.int64() }, { a: -(2n ** 63n) }, { a: -(2n ** 63n) }],
    [{ a: s.number() }, { a: 2n ** 60n }, { a: 2 ** 60 }],
    [{ a: s.number().default(3) }, {}, { a: 3 }],
    [{ a: s.string().optional() }, {}, {}],
    [{ a: s.string().nullable() }, { a: null }, { a: null }],
    [{ a: s.union([s.number(), s.string()]) }, { a: "x" }, { a: "x" }],
    [{ a: s.array(s.object({ b: s.int64() })) }, { a: [{ b: 1 }] }, { a: [{ b: 1n }] }],
    [undefined, {}, {}],
    [s.object({ constructor: s.string() }), { constructor: "c" }, { constructor: "c" }],
    [{ type: "object", properties: {} }, { x: 1 }, { x: 1 }],
  ]) {
    assert.deepEqual(read(shape, value), wanted);
  }
});

test("names of prototypes are names like others", () => {
  const shape = { ["__proto__"]: s.string(), constructor: s.number(), hasOwnProperty: s.boolean().optional() };
  const read = parametersOf(shape).read(JSON.parse('{"__proto__": "p", "constructor": 1}'));
  assert.deepEqual(Object.entries(read), [["__proto__", "p"], ["constructor", 1]]);
  assert.equal(Object.getPrototypeOf(read), Object.prototype);
  const values = parametersOf(s.record(s.any())).read(JSON.parse('{"__proto__": {"x": 1}}'));
  assert.equal(values.x, undefined);
  assert.equal({}.x, undefined);
});

test("wrong arguments are refused with their name", () => {
  for (const [shape, value, message] of [
    [{ a: s.string() }, {}, "the argument a is missing"],
    [{ a: s.string() }, { a: 1 }, "the argument a must be a text, not a number"],
    [{ a: s.string() }, { a: "", b: 1 }, "the argument b is unknown. Known are a"],
    [{}, JSON.parse('{"__proto__": 1}'), "the argument __proto__ is unknown. Known are none"],
    [{ a: s.string() }, [], "the argument must be an object, not a list"],
    [{ a: s.string() }, null, "the argument must be an object, not null"],
    [{ a: s.integer() }, { a: 1.5 }, "the argument a must be a whole number, not a number"],
    [{ a: s.integer() }, { a: 2n ** 60n }, "the argument a is beyond 2^53, where numbers lose digits"],
    [{ a: s.integer().max(3) }, { a: 4 }, "the argument a must be at most 3"],
    [{ a: s.uint64() }, { a: -1 }, "the argument a must be from 0 to 18446744073709551615"],
    [{ a: s.uint64() }, { a: 1.5 }, "the argument a must be a whole number or its digits, not a number"],
    [{ a: s.uint64() }, { a: "1e3" }, "the argument a must be a whole number or its digits, not a string"],
    [{ a: s.uint64() }, { a: 2 ** 60 }, "the argument a was rounded. Pass it as a text of digits"],
    [{ a: s.enum(["x", "y"]) }, { a: "z" }, 'the argument a must be one of "x", "y"'],
    [{ a: s.array(s.object({ b: s.boolean() })) }, { a: [{ b: true }, { b: 1 }] }, "the argument a[1].b must be true or false, not a number"],
    [{ a: s.array(s.any()).min(1) }, { a: [] }, "the argument a must have a number of entries of at least 1"],
    [{ a: s.string().max(1) }, { a: "😀😀" }, "the argument a must have a length of at most 1"],
    [{ a: s.string().pattern(/^b/) }, { a: "c" }, "the argument a must match the pattern ^b"],
    [{ a: s.union([s.number(), s.boolean()]) }, { a: "x" }, "the argument a fits none of its 2 forms"],
    [{ a: s.record(s.number()) }, { a: { "k l": "x" } }, 'the argument a["k l"] must be a number, not a string'],
    [{ a: s.number().refine((n) => n % 2 && "must be even") }, { a: 3 }, "the argument a must be even"],
  ]) {
    assert.throws(() => parametersOf(shape).read(value), { kind: "invalid-arguments", message });
  }
});

test("a schema of another library gives its JSON Schema and its checks", () => {
  const standard = (validate, jsonSchema = { input: () => ({ type: "object" }) }) => ({ "~standard": { version: 1, vendor: "v", validate, jsonSchema } });
  const fine = parametersOf(standard((value) => ({ value: { ...value, added: 1 } })));
  assert.equal(fine.schema, '{"type":"object"}');
  assert.deepEqual(fine.read({ a: 1 }), { a: 1, added: 1 });
  const wrong = parametersOf(standard(() => ({ issues: [{ message: "no", path: ["a", { key: 0 }] }] })));
  assert.throws(() => wrong.read({}), { kind: "invalid-arguments", message: "the argument a[0] is wrong: no" });
  assert.throws(() => parametersOf(standard(async () => ({})) ).read({}), /asynchronously/);
  assert.throws(() => parametersOf({ "~standard": { vendor: "old" } }), /z\.toJSONSchema/);
});
