// Reads just enough of a core module to replace calls of imported functions in place.

/** Reads an unsigned LEB128 number: its value and the offset behind it. */
export function readU32(bytes, at) {
  let [value, shift, next] = [0, 0, at];
  for (;;) {
    const byte = bytes[next];
    next += 1;
    value += (byte & 0x7f) * 2 ** shift;
    shift += 7;
    if (byte < 0x80) return [value, next];
  }
}

/** What a module begins with. */
export const MAGIC = Buffer.from([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]);

const LAST_SECTION = 13;

const isModule = (bytes, at) => MAGIC.equals(bytes.subarray(at, at + MAGIC.length));

/** Lists the sections of a module as `{ id, start, end }`, and says where the module ends. */
export function sectionsOf(bytes, at = 0) {
  const sections = [];
  let next = at + 8;
  while (next < bytes.length && bytes[next] <= LAST_SECTION && !isModule(bytes, next)) {
    const [size, start] = readU32(bytes, next + 1);
    if (size === 0 || start + size > bytes.length) break;
    sections.push({ id: bytes[next], start, end: start + size });
    next = start + size;
  }
  return { sections, end: next };
}

/** Lists the imported functions as `MODULE#NAME`, in the order of their indices. */
export function importedFunctions(bytes, { start }) {
  const names = [];
  let [count, at] = readU32(bytes, start);
  for (; count > 0; count -= 1) {
    const [module, afterModule] = readName(bytes, at);
    const [name, afterName] = readName(bytes, afterModule);
    if (bytes[afterName] === 0) names.push(`${module}#${name}`);
    at = afterImport(bytes, afterName);
  }
  return names;
}

function readName(bytes, at) {
  const [length, start] = readU32(bytes, at);
  return [Buffer.from(bytes.subarray(start, start + length)).toString(), start + length];
}

/** The offset behind the description of an import: a function, table, memory, global or tag. */
function afterImport(bytes, at) {
  const kind = bytes[at];
  if (kind === 0) return readU32(bytes, at + 1)[1];
  if (kind === 3) return at + 3;
  if (kind === 4) return readU32(bytes, at + 2)[1];
  const limits = kind === 1 ? at + 2 : at + 1;
  const afterMinimum = readU32(bytes, limits + 1)[1];
  return bytes[limits] & 1 ? readU32(bytes, afterMinimum)[1] : afterMinimum;
}

/** Calls `found(index, start, end)` for each instruction `call` of a code section. */
export function eachCall(bytes, { start }, found) {
  let [count, at] = readU32(bytes, start);
  for (; count > 0; count -= 1) {
    const [size, body] = readU32(bytes, at);
    at = body + size;
    let next = afterLocals(bytes, body);
    while (next < at) {
      const opcode = bytes[next];
      const end = afterInstruction(bytes, next);
      if (opcode === 0x10) found(readU32(bytes, next + 1)[0], next, end);
      next = end;
    }
  }
}

function afterLocals(bytes, at) {
  let [count, next] = readU32(bytes, at);
  for (; count > 0; count -= 1) next = readU32(bytes, next)[1] + 1;
  return next;
}

const skip = (bytes, at, count) => {
  let next = at;
  for (let left = count; left > 0; left -= 1) next = readU32(bytes, next)[1];
  return next;
};

const memoryAccess = (bytes, at) => skip(bytes, at, bytes[at] & 0x40 ? 3 : 2);

/** How many LEB128 numbers follow an opcode; those that are missing have none. */
const NUMBERS = new Map([
  ...[0x02, 0x03, 0x04, 0x0c, 0x0d, 0x10, 0x12, 0x3f, 0x40, 0x41, 0x42, 0xd0, 0xd2].map((opcode) => [opcode, 1]),
  ...[0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26].map((opcode) => [opcode, 1]),
  ...[0x11, 0x13].map((opcode) => [opcode, 2]),
]);

/** The same for the opcodes behind 0xfc. */
const BULK_NUMBERS = new Map([[8, 2], [9, 1], [10, 2], [11, 1], [12, 2], [13, 1], [14, 2], [15, 1], [16, 1], [17, 1]]);

/** The offset behind an instruction. */
function afterInstruction(bytes, at) {
  const opcode = bytes[at];
  if (opcode >= 0x28 && opcode <= 0x3e) return memoryAccess(bytes, at + 1);
  switch (opcode) {
    case 0x0e: {
      const [count, next] = readU32(bytes, at + 1);
      return skip(bytes, next, count + 1);
    }
    case 0x1c: {
      const [count, next] = readU32(bytes, at + 1);
      return next + count;
    }
    case 0x43:
      return at + 5;
    case 0x44:
      return at + 9;
    case 0xfc: {
      const [sub, next] = readU32(bytes, at + 1);
      return skip(bytes, next, BULK_NUMBERS.get(sub) ?? 0);
    }
    case 0xfd:
      return afterVector(bytes, at + 1);
    case 0xfe: {
      const [sub, next] = readU32(bytes, at + 1);
      return sub === 3 ? next + 1 : memoryAccess(bytes, next);
    }
    default:
      return skip(bytes, at + 1, NUMBERS.get(opcode) ?? 0);
  }
}

function afterVector(bytes, at) {
  const [sub, next] = readU32(bytes, at);
  if (sub <= 11 || sub === 92 || sub === 93) return memoryAccess(bytes, next);
  if (sub === 12 || sub === 13) return next + 16;
  if (sub >= 84 && sub <= 91) return memoryAccess(bytes, next) + 1;
  return sub >= 21 && sub <= 34 ? next + 1 : next;
}
