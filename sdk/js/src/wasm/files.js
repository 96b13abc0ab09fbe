// Files, over `wasi:filesystem`.

import { getDirectories } from "wasi:filesystem/preopens@0.2.0";
import { toU64 } from "#host";

/** Most bytes of one read or write. */
const CHUNK_BYTES = 256 * 1024;

const FOLLOW = { symlinkFollow: true };

/** Finds the granted folder that contains a path, and runs a function with it and the rest. */
function below(path, run) {
  const wanted = normalized(path);
  const found = getDirectories().map(([descriptor, mount]) => ({ descriptor, mount: normalized(mount) }));
  const holds = ({ mount }) => mount === "/" || wanted === mount || wanted.startsWith(`${mount}/`);
  const best = found.filter(holds).sort((a, b) => b.mount.length - a.mount.length)[0];
  try {
    if (!best) throw new FileError("not-permitted");
    const rest = wanted.slice(best.mount === "/" ? 1 : best.mount.length + 1) || ".";
    return run(best.descriptor, rest);
  } finally {
    found.forEach(({ descriptor }) => descriptor[Symbol.dispose]());
  }
}

/** Removes `.`, `..` and empty parts. The host checks the path again. */
function normalized(path) {
  const parts = [];
  for (const part of path.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== "" && part !== ".") parts.push(part);
  }
  return `/${parts.join("/")}`;
}

class FileError extends Error {
  constructor(code, message) {
    super(message ?? code);
    this.code = code;
  }
}

function withFile(path, openFlags, flags, run) {
  return below(path, (folder, rest) => {
    const file = folder.openAt(FOLLOW, rest, openFlags, flags);
    try {
      return run(file);
    } finally {
      file[Symbol.dispose]();
    }
  });
}

function readAll(file, bytesMax) {
  const size = Number(file.stat().size);
  const chunks = [];
  let length = 0;
  for (let isEnd = size === 0; !isEnd; ) {
    const [chunk, end] = file.read(toU64(CHUNK_BYTES), toU64(length));
    chunks.push(chunk);
    length += chunk.length;
    if (length > bytesMax) throw new FileError("file-too-large", `it has more than ${bytesMax} bytes`);
    isEnd = end || chunk.length === 0;
  }
  return joined(chunks, length);
}

function joined(chunks, length) {
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
}

function writeAll(file, bytes, start) {
  for (let at = 0; at < bytes.length; ) {
    at += Number(file.write(bytes.subarray(at, at + CHUNK_BYTES), toU64(start + at)));
  }
}

function entries(folder) {
  const stream = folder.readDirectory();
  const found = [];
  for (let entry = stream.readDirectoryEntry(); entry; entry = stream.readDirectoryEntry()) {
    found.push({ name: entry.name, isFolder: entry.type === "directory" });
  }
  stream[Symbol.dispose]();
  return found;
}

export const files = {
  read: (path, bytesMax) => withFile(path, {}, { read: true }, (file) => readAll(file, bytesMax)),

  write(path, bytes, append) {
    const openFlags = append ? { create: true } : { create: true, truncate: true };
    withFile(path, openFlags, { write: true }, (file) => {
      writeAll(file, bytes, append ? Number(file.stat().size) : 0);
    });
  },

  list: (path) => withFile(path, { directory: true }, { read: true }, entries),

  stat: (path) => below(path, (folder, rest) => {
    const { type, size } = folder.statAt(FOLLOW, rest);
    return { size: Number(size), isFolder: type === "directory" };
  }),

  createFolder: (path) => below(path, (folder, rest) => folder.createDirectoryAt(rest)),

  remove: (path) => below(path, (folder, rest) => {
    const { type } = folder.statAt({}, rest);
    if (type === "directory") folder.removeDirectoryAt(rest);
    else folder.unlinkFileAt(rest);
  }),

  granted: () => getDirectories().map(([descriptor, mount]) => {
    descriptor[Symbol.dispose]();
    return mount;
  }),
};
