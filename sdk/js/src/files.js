// Files below the granted folders.

import * as host from "#host";
import { Denied, Failed, InvalidArguments, NotFound, ToolError, Unavailable } from "./errors.js";
import { requested } from "./requested.js";

/** The longest file that is read, in bytes, unless the author says otherwise. */
const FILE_BYTES_MAX = 16 * 1024 * 1024;

/** Reads and writes files. `plugin.toml` requests `fs`, and the policy grants folders. */
export const files = {
  /** Returns the text of a file, which must be UTF-8. */
  readText(path, options) {
    const bytes = files.read(path, options);
    try {
      return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    } catch {
      throw new Failed(`${path} is not a text in UTF-8`);
    }
  },

  /** Returns the bytes of a file. */
  read(path, { bytesMax = FILE_BYTES_MAX } = {}) {
    return call(path, (functions) => functions.read(path, bytesMax));
  },

  /** Writes a file: a text or bytes. The folder must exist. */
  write(path, contents, { append = false } = {}) {
    const bytes = typeof contents === "string" ? new TextEncoder().encode(contents) : contents;
    call(path, (functions) => functions.write(path, bytes, append));
  },

  /** Lists a folder as `{ name, isFolder }`, sorted by name. */
  list(path) {
    const entries = call(path, (functions) => functions.list(path));
    return entries.sort((a, b) => (a.name < b.name ? -1 : 1));
  },

  /** Returns whether a file or folder exists. */
  exists(path) {
    try {
      files.stat(path);
      return true;
    } catch (error) {
      if (error instanceof NotFound) return false;
      throw error;
    }
  },

  /** Returns `{ size, isFolder }`, with the size in bytes. */
  stat(path) {
    return call(path, (functions) => functions.stat(path));
  },

  /** Creates a folder. */
  createFolder(path) {
    call(path, (functions) => functions.createFolder(path));
  },

  /** Removes a file, or a folder without entries. */
  remove(path) {
    call(path, (functions) => functions.remove(path));
  },

  /** Returns the paths of the granted folders. */
  granted() {
    return call("", (functions) => functions.granted()).sort();
  },
};

function call(path, run) {
  const functions = requested(host.files, "fs");
  if (typeof path !== "string") throw new InvalidArguments("a path must be a text");
  try {
    return run(functions);
  } catch (thrown) {
    throw thrown instanceof ToolError ? thrown : fileError(path, thrown);
  }
}

const REASONS = {
  exist: "it exists already",
  "is-directory": "it is a folder",
  "not-directory": "it is not a folder",
  "not-empty": "the folder is not empty",
  "insufficient-space": "there is no room left",
  "file-too-large": "it is too long",
  quota: "the quota is reached",
  invalid: "the path or the operation is invalid",
};

const DENIED = new Set(["access", "not-permitted", "read-only"]);

function fileError(path, thrown) {
  const code = thrown?.payload ?? thrown?.code ?? thrown;
  if (code === "no-entry") return new NotFound(`${path} does not exist`);
  if (DENIED.has(code)) return new Denied(`${path} is not granted for this`);
  if (code === "io" || code === "busy") return new Unavailable(`${path} cannot be used at the moment`);
  return new Failed(`${path}: ${REASONS[code] ?? String(thrown?.message ?? code)}`);
}
