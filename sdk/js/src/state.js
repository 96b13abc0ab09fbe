// Persistent state: keys and values of the plugin, separate for each user.

import * as host from "#host";
import { Denied, Failed, otherMessage, thrownVariant, Unavailable } from "./errors.js";
import { fromJson, toJson } from "./json.js";
import { requested } from "./requested.js";

/** How often `update` tries to change a key while other calls change it. */
const ATTEMPTS_MAX = 32;

/** Most keys per page. */
const PAGE_KEYS = 256;

/** Keeps values that JSON can hold. `plugin.toml` requests `state`, and the policy grants it. */
export const state = {
  /** Returns the value of a key, or `undefined`. */
  get(key) {
    const bytes = state.getBytes(key);
    return bytes && valueOf(key, bytes);
  },

  /** Keeps a value, forever or for `expiresInMs` milliseconds. */
  set(key, value, options) {
    state.setBytes(key, bytesOf(value), options);
  },

  /** Returns the bytes of a key, or `undefined`. */
  getBytes(key) {
    return entry(key)?.value;
  },

  /** Keeps bytes as they are. */
  setBytes(key, bytes, { expiresInMs } = {}) {
    call("set", String(key), bytes, milliseconds(expiresInMs));
  },

  /** Changes a value in one step that nothing comes between, and returns the new one. */
  update(key, change, options) {
    for (let attempt = 1; ; attempt += 1) {
      const old = entry(key);
      const value = change(old && valueOf(key, old.value));
      if (replace(key, old, bytesOf(value), options, attempt === ATTEMPTS_MAX)) return value;
    }
  },

  /** Removes a key. Returns whether it existed. */
  delete(key) {
    return call("remove", String(key));
  },

  /** Lists the keys that begin with `prefix`. */
  keys(prefix = "") {
    const keys = [];
    let after;
    do {
      const page = call("listKeys", prefix, after, PAGE_KEYS);
      keys.push(...page.keys);
      after = page.next ?? undefined;
    } while (after !== undefined);
    return keys;
  },
};

function entry(key) {
  return call("get", String(key)) ?? undefined;
}

function valueOf(key, bytes) {
  try {
    return fromJson(new TextDecoder().decode(bytes));
  } catch (error) {
    throw new Failed(`the value of \`${key}\` is not JSON: ${error.message}`);
  }
}

function bytesOf(value) {
  return new TextEncoder().encode(toJson(value, "the value to keep"));
}

/** Replaces an entry if it has not changed. Returns whether it did. */
function replace(key, old, bytes, { expiresInMs } = {}, isLast = false) {
  const expected = old ? { tag: "version", val: old.version } : { tag: "nothing" };
  try {
    requested(host.state, "state").compareAndSet(String(key), expected, bytes, milliseconds(expiresInMs));
    return true;
  } catch (thrown) {
    if (thrownVariant(thrown).tag === "conflict" && !isLast) return false;
    throw stateError(thrown);
  }
}

function milliseconds(duration) {
  if (duration === undefined) return undefined;
  if (!(duration >= 0 && Number.isFinite(duration))) throw new RangeError("expiresInMs must be a number of milliseconds");
  return host.toU64(Math.ceil(duration));
}

function call(name, ...args) {
  const functions = requested(host.state, "state");
  try {
    return functions[name](...args);
  } catch (thrown) {
    throw stateError(thrown);
  }
}

function stateError(thrown) {
  const { tag, val } = thrownVariant(thrown);
  switch (tag) {
    case "not-granted":
      return new Denied("this plugin may not keep anything");
    case "invalid":
      return new Failed(`this cannot be kept: ${val}`);
    case "quota-reached":
      return new Failed(`there is no room to keep this: ${val}`);
    case "conflict":
      return new Unavailable("the kept value has changed in the meantime");
    case "unavailable":
      return new Unavailable(`the store cannot be used: ${val}`);
    default:
      return new Unavailable(otherMessage(val));
  }
}
