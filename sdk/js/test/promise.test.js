// The Promise of components against that of Node, and the loop that runs it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { enqueue, GuestPromise, runJobs, takeUnhandled } from "../src/wasm/promise.js";
import { settle, setInterval as guestInterval, clearInterval as guestClear } from "../src/wasm/timers.js";

/** Programs that write into `out`, for any kind of promise. */
const PROGRAMS = {
  "the order of reactions": (Kind, out) => {
    const first = Kind.resolve(1);
    first.then((value) => out.push(`a${value}`)).then(() => out.push("c"));
    first.then(() => out.push("b"));
    out.push("now");
  },
  "a throw becomes a rejection": (Kind, out) => {
    new Kind(() => { throw new Error("x"); }).catch((error) => out.push(error.message));
    Kind.reject("r").then(() => out.push("never"), (reason) => out.push(reason));
  },
  "a promise within a promise": (Kind, out) => {
    new Kind((resolve) => resolve(Kind.resolve("inner"))).then((value) => out.push(value));
    Kind.resolve().then(() => Kind.reject(new Error("y"))).catch((error) => out.push(error.message));
  },
  "thenables": (Kind, out) => {
    Kind.resolve({ then: (done) => done("t") }).then((value) => out.push(value));
    Kind.resolve({ then() { throw "thrown"; } }).catch((reason) => out.push(reason));
    Kind.resolve({ get then() { throw "getter"; } }).catch((reason) => out.push(reason));
    Kind.resolve({ then(done, fail) { done(1); fail(2); throw 3; } }).then((value) => out.push(value));
  },
  "only the first call settles": (Kind, out) => {
    new Kind((resolve, reject) => { resolve(1); resolve(2); reject(3); }).then((value) => out.push(value));
  },
  "finally": (Kind, out) => {
    Kind.resolve(1).finally(() => out.push("f")).then((value) => out.push(value));
    Kind.reject(2).finally(() => 3).catch((reason) => out.push(reason));
    Kind.resolve(4).finally(() => { throw 5; }).catch((reason) => out.push(reason));
  },
  "all and its relatives": (Kind, out) => {
    Kind.all([1, Kind.resolve(2)]).then((values) => out.push(...values));
    Kind.all([Kind.reject("no"), 1]).catch((reason) => out.push(reason));
    Kind.race([new Kind(() => {}), Kind.resolve("r")]).then((value) => out.push(value));
    Kind.allSettled([1, Kind.reject(2)]).then((all) => out.push(...all.map(({ status }) => status)));
    Kind.any([Kind.reject(1), Kind.resolve("any")]).then((value) => out.push(value));
    Kind.any([Kind.reject(1)]).catch((error) => out.push(error.constructor.name));
  },
  "itself": (Kind, out) => {
    let resolve;
    const own = new Kind((done) => { resolve = done; });
    resolve(own);
    own.catch((error) => out.push(error.name));
  },
};

test("programs run as with Node's promises", async () => {
  for (const [name, program] of Object.entries(PROGRAMS)) {
    const [native, guest] = [[], []];
    program(Promise, native);
    await new Promise((resolve) => { setImmediate(resolve); });
    program(GuestPromise, guest);
    runJobs();
    assert.deepEqual([...guest].map(String).sort(), [...native].map(String).sort(), name);
  }
  takeUnhandled();
});

test("what is no promise is returned as it is", () => {
  for (const value of [undefined, null, 1, "x", { then: 1 }]) assert.equal(settle(value), value);
});

test("a rejection is thrown, and one that nothing handles is kept", () => {
  assert.throws(() => settle(GuestPromise.reject(new RangeError("r"))), RangeError);
  assert.deepEqual(takeUnhandled(), []);
  GuestPromise.reject("lost");
  GuestPromise.reject("found").catch(() => {});
  assert.deepEqual(takeUnhandled(), ["lost"]);
});

test("a promise that nothing can settle is an error", () => {
  assert.throws(() => settle(new GuestPromise(() => {})), { kind: "failed", message: /never settles/ });
});

test("microtasks and timers need functions", () => {
  assert.throws(() => enqueue("x"), TypeError);
  assert.throws(() => guestInterval("x"), TypeError);
  guestClear(undefined);
});
