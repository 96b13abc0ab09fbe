// A Promise whose reactions run when the SDK says so. A call of a tool is synchronous in the
// contract, and neither engine lets a synchronous function wait for its own promises. So the build
// lowers `async` to functions of this class, and `settle` runs its reactions until a tool is done.

const NativePromise = globalThis.Promise;

const jobs = [];
let jobIndex = 0;
const unhandled = new Set();

/** Runs a function after the present ones. */
export function enqueue(job) {
  if (typeof job !== "function") throw new TypeError("queueMicrotask needs a function");
  jobs.push(job);
}

/** Runs all queued functions, and those that they queue. */
export function runJobs() {
  while (jobIndex < jobs.length) {
    const job = jobs[jobIndex];
    jobIndex += 1;
    job();
  }
  jobs.length = 0;
  jobIndex = 0;
}

/** Returns the reasons of promises that were rejected and that nothing has handled. */
export function takeUnhandled() {
  const reasons = [...unhandled].map((promise) => promise.reason);
  unhandled.clear();
  return reasons;
}

/** Stands in for `Promise`. */
export class GuestPromise {
  #state = "pending";
  #value = undefined;
  #reactions = [];

  constructor(executor) {
    if (typeof executor !== "function") throw new TypeError("new Promise needs a function");
    const { resolve, reject } = this.#resolvers();
    try {
      executor(resolve, reject);
    } catch (error) {
      reject(error);
    }
  }

  then(onFulfilled, onRejected) {
    return new GuestPromise((resolve, reject) => {
      this.#react({ onFulfilled, onRejected, resolve, reject });
    });
  }

  catch(onRejected) {
    return this.then(undefined, onRejected);
  }

  finally(onFinally) {
    if (typeof onFinally !== "function") return this.then(onFinally, onFinally);
    return this.then(
      (value) => GuestPromise.resolve(onFinally()).then(() => value),
      (reason) => GuestPromise.resolve(onFinally()).then(() => { throw reason; }),
    );
  }

  /** `pending`, `fulfilled` or `rejected`. */
  get state() {
    return this.#state;
  }

  /** The value of a fulfilled promise. */
  get value() {
    return this.#value;
  }

  /** The reason of a rejected promise. */
  get reason() {
    return this.#value;
  }

  get [Symbol.toStringTag]() {
    return "Promise";
  }

  /** Returns the two functions that settle the promise; only their first call counts. */
  #resolvers() {
    let isDone = false;
    const once = (settle) => (value) => {
      if (isDone) return;
      isDone = true;
      settle(value);
    };
    return {
      resolve: once((value) => this.#resolve(value)),
      reject: once((reason) => this.#settle("rejected", reason)),
    };
  }

  #resolve(value) {
    if (value === this) return this.#settle("rejected", new TypeError("a promise cannot wait for itself"));
    if (Object(value) !== value) return this.#settle("fulfilled", value);
    let then;
    try {
      then = value.then;
    } catch (error) {
      return this.#settle("rejected", error);
    }
    if (typeof then !== "function") return this.#settle("fulfilled", value);
    return enqueue(() => this.#follow(value, then));
  }

  #follow(value, then) {
    const { resolve, reject } = this.#resolvers();
    try {
      then.call(value, resolve, reject);
    } catch (error) {
      reject(error);
    }
  }

  #settle(state, value) {
    this.#state = state;
    this.#value = value;
    if (state === "rejected" && this.#reactions.length === 0) unhandled.add(this);
    this.#reactions.forEach((reaction) => this.#schedule(reaction));
    this.#reactions = [];
  }

  #react(reaction) {
    unhandled.delete(this);
    if (this.#state === "pending") this.#reactions.push(reaction);
    else this.#schedule(reaction);
  }

  #schedule({ onFulfilled, onRejected, resolve, reject }) {
    const isFulfilled = this.#state === "fulfilled";
    const handler = isFulfilled ? onFulfilled : onRejected;
    enqueue(() => {
      if (typeof handler !== "function") return isFulfilled ? resolve(this.#value) : reject(this.#value);
      try {
        return resolve(handler(this.#value));
      } catch (error) {
        return reject(error);
      }
    });
  }

  static resolve(value) {
    return value instanceof GuestPromise ? value : new GuestPromise((resolve) => resolve(value));
  }

  static reject(reason) {
    return new GuestPromise((_resolve, reject) => reject(reason));
  }

  static withResolvers() {
    const parts = {};
    parts.promise = new GuestPromise((resolve, reject) => Object.assign(parts, { resolve, reject }));
    return parts;
  }

  static try(run, ...args) {
    return new GuestPromise((resolve) => resolve(run(...args)));
  }

  // These work with any class that has `resolve` and `then`.
  static all = NativePromise.all;
  static allSettled = NativePromise.allSettled;
  static any = NativePromise.any;
  static race = NativePromise.race;
}
