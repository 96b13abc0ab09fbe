import assert from "node:assert/strict";
import { test } from "node:test";
import { call } from "sallyport/testing";
import { countWords } from "../src/plugin.js";

test("counts words", async () => {
  const { data } = await call(countWords, { text: "One, two. Three!" });
  assert.deepEqual(data, { words: 3, sentences: 2, reading_seconds: 1 });
});

test("refuses a text without words", async () => {
  await assert.rejects(call(countWords, { text: "" }), { kind: "invalid-arguments" });
});
