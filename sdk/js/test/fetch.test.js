// `fetch` as people know it, against the stand-in for the host.

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { call, host } from "../src/testing.js";
import { fetch, Request as GuestRequest, Response as GuestResponse } from "../src/web/fetch.js";
import { Headers as GuestHeaders } from "../src/web/headers.js";
import { AbortSignal as GuestSignal } from "../src/web/abort.js";
import { tool } from "../src/index.js";

beforeEach(() => host());

test("without a grant a request is denied, and the error names the origin only", async () => {
  await assert.rejects(fetch("https://a.example/secret?key=1"), { kind: "denied", message: /^https:\/\/a\.example may not be reached/ });
});

test("a tool uses the global fetch", async () => {
  host({ fetch: (request) => new Response(`${request.method} ${request.url}`) });
  const ask = tool({ name: "ask", description: "d", run: async () => (await globalThis.fetch("https://a.example/x?ü=1")).text() });
  assert.equal((await call(ask)).data, "GET https://a.example/x?%C3%BC=1");
});

test("requests are sent as the web sends them", async () => {
  const seen = [];
  host({
    async fetch(request) {
      seen.push([request.method, request.headers.get("content-type"), await request.text(), request.headers.get("x-a")]);
      return new Response("");
    },
  });
  await fetch("https://a.example/", { method: "post", body: "ü" });
  await fetch("https://a.example/", { method: "PUT", body: JSON.stringify({ a: 1 }), headers: { "Content-Type": "application/json", "X-A": "1" } });
  await fetch(new GuestRequest("https://a.example/", { method: "PATCH", body: new URLSearchParams("a=b") }));
  await fetch("https://a.example/", { method: "POST", body: new Uint8Array([0x61]), headers: [["x-a", "1"], ["X-A", "2"]] });
  assert.deepEqual(seen, [
    ["POST", "text/plain;charset=UTF-8", "ü", null],
    ["PUT", "application/json", '{"a":1}', "1"],
    ["PATCH", "application/x-www-form-urlencoded;charset=UTF-8", "a=b", null],
    ["POST", null, "a", "1, 2"],
  ]);
});

test("responses are read once, in every form", async () => {
  host({ fetch: () => new Response('{"a":"ü"}', { status: 404, headers: { "X-B": "2" } }) });
  const response = await fetch("https://a.example/x#y");
  assert.deepEqual([response.status, response.ok, response.headers.get("x-b"), response.redirected], [404, false, "2", false]);
  const copy = response.clone();
  assert.deepEqual(await response.json(), { a: "ü" });
  assert.equal((await copy.arrayBuffer()).byteLength, 10);
  await assert.rejects(response.text(), /read already/);
  assert.throws(() => copy.clone(), /cannot be copied/);
  assert.equal(await GuestResponse.json([1]).text(), "[1]");
  await assert.rejects(new GuestResponse("{").json(), SyntaxError);
});

test("redirects are followed within bounds", async () => {
  const seen = [];
  const redirect = (status, location) => new Response(null, { status, headers: { location } });
  host({
    fetch(request) {
      seen.push(`${request.method} ${request.url} ${request.headers.get("authorization")} ${request.headers.get("content-type")}`);
      const { pathname } = new URL(request.url);
      if (pathname === "/see") return redirect(303, "/done?x=1");
      if (pathname === "/away") return redirect(307, "https://b.example/done");
      if (pathname === "/loop") return redirect(302, "/loop");
      if (pathname === "/bad") return redirect(302, "ftp://a.example/");
      return new Response("done");
    },
  });
  const send = (path, init) => fetch(`https://a.example${path}`, init);
  const options = { method: "POST", body: "b", headers: { authorization: "x" } };
  assert.equal((await send("/see", options)).url, "https://a.example/done?x=1");
  assert.equal((await send("/away", options)).redirected, true);
  assert.deepEqual(seen, [
    "POST https://a.example/see x text/plain;charset=UTF-8",
    "GET https://a.example/done?x=1 x null",
    "POST https://a.example/away x text/plain;charset=UTF-8",
    "POST https://b.example/done null text/plain;charset=UTF-8",
  ]);
  assert.equal((await send("/loop", { redirect: "manual" })).status, 302);
  await assert.rejects(send("/loop"), { kind: "unavailable", message: /redirects more than 5 times/ });
  await assert.rejects(send("/see", { redirect: "error" }), { kind: "unavailable" });
  await assert.rejects(send("/bad"), { kind: "failed", message: /only http and https/ });
});

test("mistakes in requests reach nobody", async () => {
  host({ fetch: () => assert.fail("a request was sent") });
  for (const [input, init, message] of [
    ["a.example", {}, /invalid URL/i],
    ["ftp://a.example/", {}, /only http and https/],
    ["https://u:p@a.example/", {}, /neither a user nor a password/],
    ["https://a.example/", { method: "A B" }, /not an HTTP method/],
    ["https://a.example/", { body: "x" }, /GET request cannot have a body/],
    ["https://a.example/", { method: "POST", body: { a: 1 } }, /JSON\.stringify/],
    ["https://a.example/", { headers: { "a b": "1" } }, /not a name of a header/],
    ["https://a.example/", { headers: { a: "1\n2" } }, /line breaks/],
    ["https://a.example/", { signal: GuestSignal.abort() }, /aborted/],
  ]) {
    await assert.rejects(fetch(input, init), message);
  }
});

test("a response that is too long is refused", async () => {
  host({ fetch: () => new Response("12345") });
  await assert.rejects(fetch("https://a.example/", { bytesMax: 4 }), { kind: "failed", message: /more than 4 bytes/ });
  assert.equal(await (await fetch("https://a.example/", { bytesMax: 5 })).text(), "12345");
});

test("headers are as those of the web", () => {
  for (const Kind of [Headers, GuestHeaders]) {
    const headers = new Kind({ B: " 2 ", a: 1 });
    headers.append("b", "3");
    headers.set("C", "4");
    headers.delete("A");
    assert.deepEqual([[...headers], headers.get("B"), headers.has("x"), headers.get("x")], [[["b", "2, 3"], ["c", "4"]], "2, 3", false, null]);
    assert.deepEqual([...new Kind(headers).keys()], ["b", "c"]);
    assert.throws(() => headers.get("ü"), TypeError);
  }
});
