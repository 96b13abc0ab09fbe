// Calls: results, errors, and the stand-in for the host.

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { AuthRequired, Denied, environment, Failed, files, InvalidArguments, log, NotFound, notify, Output, progress, s, secrets, settings, state, tool, ToolError, Unavailable } from "../src/index.js";
import { witError } from "../src/call.js";
import { call, host, recorded } from "../src/testing.js";

beforeEach(() => host());

let count = 0;
const made = (run, parameters) => tool({ name: `t${(count += 1)}`, description: "d", parameters, run });

test("results are data, with further parts", async () => {
  for (const [returned, data] of [
    [undefined, null], [null, null], ["x", "x"], [{ a: undefined }, {}], [[1n], [1]], [new Output({ a: 1 }), { a: 1 }], [Promise.resolve(2), 2],
  ]) {
    assert.deepEqual((await call(made(() => returned))).data, data);
  }
  const bytes = new Uint8Array([1]);
  const output = new Output(1).text("t\ud800").image(bytes, "image/png", "a.png").audio(bytes.buffer, "audio/ogg").link("x:y", { title: "T" }).file("f:a", "text").file("f:b", bytes).speech("s");
  const { content, speech } = await call(made(() => output));
  assert.deepEqual(content.map(({ tag }) => tag), ["text", "image", "audio", "link", "embedded", "embedded"]);
  assert.deepEqual([content[0].val, content[1].val.name, content[5].val.data.tag, speech], ["t\ufffd", "a.png", "binary", "s"]);
  assert.throws(() => new Output().image(bytes), /media type such as "image\/png"/);
  assert.throws(() => new Output().image("x", "image/png"), /Uint8Array/);
});

test("a result that JSON cannot hold is a failure that names the tool", async () => {
  await assert.rejects(call(made(() => ({ a: NaN }))), { kind: "failed", message: /^t\d+: the result\.a is NaN/ });
});

test("arguments that are no JSON are refused", async () => {
  await assert.rejects(call(made(() => 1), "{"), { kind: "invalid-arguments", message: /not JSON/ });
});

test("everything that is thrown becomes an error of the contract", () => {
  const circular = {};
  circular.self = circular;
  for (const [thrown, tag, val] of [
    [new InvalidArguments("m"), "invalid-arguments", "m"],
    [new NotFound("m"), "not-found", "m"],
    [new Denied("m"), "denied", "m"],
    [new Unavailable("m\ud800"), "unavailable", "m\ufffd"],
    [new Failed("m"), "failed", "m"],
    [new ToolError("rate-limited", "m"), "other", '{"kind":"rate-limited","message":"m"}'],
    [new TypeError("x is undefined"), "failed", "t: TypeError: x is undefined"],
    ["a text", "failed", "t: a text"],
    ["", "failed", "t: threw  instead of an Error"],
    [undefined, "failed", "t: threw undefined instead of an Error"],
    [null, "failed", "t: threw null instead of an Error"],
    [{ code: 5 }, "failed", 't: threw {"code":5} instead of an Error'],
    [circular, "failed", "t: threw something instead of an Error"],
    [5n, "failed", "t: threw 5 instead of an Error"],
    [Symbol("s"), "failed", "t: threw Symbol(s) instead of an Error"],
  ]) {
    assert.deepEqual(witError("t", thrown), { tag, val });
  }
  const signIn = witError("t", new AuthRequired("m", { connection: "mail", scopes: ["read"] }));
  assert.deepEqual(signIn, { tag: "auth-required", val: { message: "m", connection: "mail", scopes: ["read"], extra: undefined } });
});

test("without a grant every power is refused", () => {
  for (const use of [() => state.get("a"), () => state.set("a", 1), () => state.keys(), () => notify("x"), () => secrets.get("s"), () => files.readText("/a/b")]) {
    assert.throws(use, { kind: "denied" });
  }
  progress(0.5, "half");
  assert.deepEqual(recorded.progress, []);
  assert.equal(environment("HOME"), undefined);
});

test("settings are read with their types", () => {
  host({ settings: { a: [1], n: null } });
  assert.deepEqual([settings.get("a"), settings.get("x"), settings.get("constructor"), settings.all()], [[1], undefined, undefined, { a: [1], n: null }]);
  assert.throws(() => settings.require("x"), { kind: "unavailable", message: "the setting `x` is not given" });
});

test("state is kept, updated and listed", () => {
  host({ grant: ["state"] });
  state.set("a", { big: 2n ** 64n - 1n });
  assert.deepEqual(state.get("a"), { big: 2n ** 64n - 1n });
  assert.equal(state.update("n", (old = 0) => old + 1), 1);
  assert.equal(state.update("n", (old) => old + 1), 2);
  for (let index = 0; index < 600; index += 1) state.set(`k${String(index).padStart(3, "0")}`, index);
  assert.equal(state.keys("k").length, 600);
  assert.deepEqual([state.delete("a"), state.delete("a"), state.get("a")], [true, false, undefined]);
  state.setBytes("bytes", new Uint8Array([0xff]));
  assert.throws(() => state.get("bytes"), { kind: "failed", message: /`bytes` is not JSON/ });
  assert.throws(() => state.set("", 1), { kind: "failed", message: /the key is empty/ });
  assert.throws(() => state.set("x", () => 1), /function/);
  assert.throws(() => state.set("x", 1, { expiresInMs: NaN }), RangeError);
});

test("an update tries again until nobody was faster, and gives up against a flood", () => {
  host({ grant: ["state"] });
  let rivals = 2;
  const sum = state.update("sum", (old = 0) => {
    if (rivals > 0) {
      rivals -= 1;
      state.set("sum", old + 10);
    }
    return old + 1;
  });
  assert.equal(sum, 21);
  const flood = () => state.update("sum", (old) => {
    state.set("sum", old);
    return old;
  });
  assert.throws(flood, { kind: "unavailable", message: /changed in the meantime/ });
});

test("messages, progress, secrets and the log are recorded", () => {
  host({ grant: ["notify", "progress"], secrets: { pin: "4711" } });
  notify("hello", { speech: "Hello.", to: "user" });
  progress(0.5, "half");
  log.warn("w\ud800");
  assert.deepEqual(recorded.messages, [{ text: "hello", speech: "Hello.", to: "user" }]);
  assert.deepEqual(recorded.progress, [{ part: 0.5, message: "half" }]);
  assert.deepEqual(recorded.log, [{ level: "warn", message: "w\ufffd" }]);
  assert.equal(secrets.get("pin"), "4711");
  assert.throws(() => notify(" "), { kind: "failed" });
});

test("files are read and written in granted folders", () => {
  host({ files: { "/notes/a.txt": "ä", "/notes/sub/b.bin": new Uint8Array([0xff]) } });
  assert.deepEqual(files.list("/notes"), [{ name: "a.txt", isFolder: false }, { name: "sub", isFolder: true }]);
  files.write("/notes/a.txt", "b", { append: true });
  assert.deepEqual([files.readText("/notes/a.txt"), files.exists("/notes/x"), files.stat("/notes/a.txt").size, files.granted()], ["äb", false, 3, ["/notes"]]);
  assert.throws(() => files.readText("/notes/sub/b.bin"), { kind: "failed", message: /not a text in UTF-8/ });
  assert.throws(() => files.readText("/notes/x"), { kind: "not-found", message: "/notes/x does not exist" });
  assert.throws(() => files.readText("/etc/passwd"), { kind: "denied" });
  assert.throws(() => files.read("/notes/a.txt", { bytesMax: 1 }), { kind: "failed" });
  assert.throws(() => files.read(5), { kind: "invalid-arguments" });
});

test("a schema with a refinement that throws is the author's mistake", async () => {
  const broken = made(() => 1, { a: s.any().refine(() => { throw new RangeError("bug"); }) });
  await assert.rejects(call(broken, { a: 1 }), RangeError);
});
