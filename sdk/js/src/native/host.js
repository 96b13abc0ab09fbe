// The stand-in for the host outside of WebAssembly, for tests. `testing.js` sets it up. Anything that
// is not set up behaves as with an empty policy.

import { HttpError } from "../web/http-error.js";

/** What the stand-in gives and has recorded. */
export const fake = {};

/** Sets everything back. */
export function resetFake() {
  Object.assign(fake, {
    granted: new Set(),
    settings: {},
    secrets: {},
    state: new Map(),
    lastVersion: 0,
    logged: [],
    sent: [],
    progressed: [],
    files: new Map(),
    environment: {},
    answer: undefined,
  });
}

resetFake();

const variant = (tag, val) => ({ tag, val });

function need(power) {
  if (!fake.granted.has(power)) throw variant("not-granted");
}

export const toU64 = (value) => value;

export const log = { log: (level, message) => fake.logged.push({ level, message }) };

export const config = {
  get: (key) => (Object.hasOwn(fake.settings, key) ? JSON.stringify(fake.settings[key]) : undefined),
  getAll: () => JSON.stringify(fake.settings),
};

export const secrets = {
  get(name) {
    if (!Object.hasOwn(fake.secrets, name)) throw variant("not-granted");
    return fake.secrets[name];
  },
};

export const notify = {
  send({ text, speech, audience }) {
    need("notify");
    if (text.trim() === "") throw variant("invalid", "the message is empty");
    fake.sent.push({ text, speech, to: audience.tag });
  },
};

export const progress = {
  report(part, message) {
    if (fake.granted.has("progress")) fake.progressed.push({ part, message });
  },
};

export const state = {
  get(key) {
    need("state");
    return fake.state.get(key);
  },

  set(key, value) {
    need("state");
    if (key === "") throw variant("invalid", "the key is empty");
    fake.lastVersion += 1;
    fake.state.set(key, { value, version: fake.lastVersion });
    return fake.lastVersion;
  },

  compareAndSet(key, expected, value) {
    need("state");
    const present = fake.state.get(key)?.version;
    const wanted = expected.tag === "version" ? expected.val : undefined;
    if (present !== wanted) throw variant("conflict", present);
    return state.set(key, value);
  },

  remove(key) {
    need("state");
    return fake.state.delete(key);
  },

  listKeys(prefix, after, limit) {
    need("state");
    const keys = [...fake.state.keys()].filter((key) => key.startsWith(prefix)).sort();
    const rest = keys.filter((key) => after === undefined || key > after);
    return { keys: rest.slice(0, limit), next: rest.length > limit ? rest[limit - 1] : undefined };
  },
};

export const http = {
  async exchange(request) {
    if (!fake.answer) throw HttpError.denied(request);
    const response = await fake.answer(request);
    const body = new Uint8Array(await response.arrayBuffer());
    if (body.length > request.bytesMax) throw HttpError.tooLarge(request);
    return { status: response.status, headers: [...response.headers], body };
  },
};

export const environment = { getEnvironment: () => Object.entries(fake.environment) };

/** Files by their whole path. A folder exists as soon as a file is in it. */
export const files = {
  read(path, bytesMax) {
    const bytes = existing(path);
    if (bytes.length > bytesMax) throw variantError("file-too-large");
    return bytes;
  },

  write(path, bytes, append) {
    needFolder(path);
    const old = append ? [...(fake.files.get(path) ?? [])] : [];
    fake.files.set(path, Uint8Array.from([...old, ...bytes]));
  },

  list(path) {
    const inner = [...fake.files.keys()].filter((one) => one.startsWith(`${path}/`)).map((one) => one.slice(path.length + 1));
    if (inner.length === 0) throw variantError("no-entry");
    const names = new Map(inner.map((one) => [one.split("/")[0], one.includes("/")]));
    return [...names].map(([name, isFolder]) => ({ name, isFolder }));
  },

  stat(path) {
    needFolder(path);
    if (fake.files.has(path)) return { size: fake.files.get(path).length, isFolder: false };
    files.list(path);
    return { size: 0, isFolder: true };
  },

  createFolder: (path) => needFolder(path),

  remove(path) {
    existing(path);
    fake.files.delete(path);
  },

  granted: () => [...new Set([...fake.files.keys()].map((path) => `/${path.split("/")[1]}`))],
};

function existing(path) {
  needFolder(path);
  const bytes = fake.files.get(path);
  if (!bytes) throw variantError("no-entry");
  return bytes;
}

function needFolder(path) {
  const isGranted = files.granted().some((folder) => path === folder || path.startsWith(`${folder}/`));
  if (!isGranted) throw variantError("not-permitted");
}

function variantError(code) {
  return Object.assign(new Error(code), { code });
}
