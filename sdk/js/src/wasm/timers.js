// Timers, and the loop that runs promises and timers until a tool is done.

import * as host from "#host";
import { Failed } from "../errors.js";
import { GuestPromise, runJobs } from "./promise.js";

/** Timers by their id, in the order in which they were set. */
const timers = new Map();
let lastId = 0;

function add(callback, delay, args, repeats) {
  if (typeof callback !== "function") throw new TypeError("a timer needs a function, not a text");
  const every = Math.max(Number(delay) || 0, repeats ? 1 : 0);
  lastId += 1;
  timers.set(lastId, { due: performance.now() + every, run: () => callback(...args), every: repeats ? every : undefined });
  return lastId;
}

/** Runs a function after some milliseconds. */
export function setTimeout(callback, delay, ...args) {
  return add(callback, delay, args, false);
}

/** Runs a function every so many milliseconds. */
export function setInterval(callback, delay, ...args) {
  return add(callback, delay, args, true);
}

/** Cancels a timer. */
export function clearTimeout(id) {
  timers.delete(id);
}

export { clearTimeout as clearInterval };

/** Waits for the value that a function returns, which may be a promise. */
export function settle(returned) {
  if (typeof returned?.then !== "function") return returned;
  const promise = GuestPromise.resolve(returned);
  promise.then(undefined, () => {});
  runJobs();
  while (promise.state === "pending") {
    if (!runNextTimer()) throw new Failed("the promise that run() returned never settles: nothing is left to wait for");
    runJobs();
  }
  if (promise.state === "rejected") throw promise.reason;
  return promise.value;
}

/** Waits for the next timer and runs it. Returns whether there was one. */
function runNextTimer() {
  let [nextId, next] = [undefined, undefined];
  for (const [id, timer] of timers) {
    if (next === undefined || timer.due < next.due) [nextId, next] = [id, timer];
  }
  if (next === undefined) return false;
  const wait = next.due - performance.now();
  if (wait > 0) host.clock.sleep(wait);
  if (next.every === undefined) timers.delete(nextId);
  else next.due += next.every;
  next.run();
  return true;
}
