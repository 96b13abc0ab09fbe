// `AbortController` and `AbortSignal`. A request blocks, so a signal counts before it and as its timeout.

export class AbortSignal {
  #listeners = new Set();
  aborted = false;
  reason = undefined;
  timeoutMs = undefined;
  onabort = null;

  static timeout(milliseconds) {
    const signal = new AbortSignal();
    signal.timeoutMs = milliseconds;
    return signal;
  }

  static abort(reason) {
    const signal = new AbortSignal();
    signal.abortWith(reason);
    return signal;
  }

  addEventListener(type, listener) {
    if (type === "abort") this.#listeners.add(listener);
  }

  removeEventListener(_type, listener) {
    this.#listeners.delete(listener);
  }

  throwIfAborted() {
    if (this.aborted) throw this.reason;
  }

  abortWith(reason = Object.assign(new Error("this operation was aborted"), { name: "AbortError" })) {
    if (this.aborted) return;
    this.aborted = true;
    this.reason = reason;
    this.onabort?.({ type: "abort", target: this });
    this.#listeners.forEach((listener) => listener({ type: "abort", target: this }));
  }
}

export class AbortController {
  signal = new AbortSignal();

  abort(reason) {
    this.signal.abortWith(reason);
  }
}
