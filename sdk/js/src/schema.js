// The schema builder: one description of the arguments gives the JSON Schema for the model, the
// check of the values, and the TypeScript types (in `index.d.ts`).

import { InvalidArguments } from "./errors.js";
import { pathText, toJson } from "./json.js";

/** Describes one value. Every method returns a new schema. */
export class Schema {
  #json;
  #read;
  #isOptional;
  #fallback;

  /**
   * @param {object} json the JSON Schema
   * @param {(value: unknown, path: (string | number)[]) => unknown} read checks and converts a value
   */
  constructor(json, read, { isOptional = false, fallback } = {}) {
    this.#json = json;
    this.#read = read;
    this.#isOptional = isOptional;
    this.#fallback = fallback;
  }

  /** Adds a description for the model. */
  describe(text) {
    return this.with({ description: text });
  }

  /** The property may be left out. */
  optional() {
    return this.#copy({ isOptional: true });
  }

  /** The property may be left out, and then has this value. */
  default(value) {
    this.read(value, ["default"]);
    return this.#copy({ json: { ...this.#json, default: value }, isOptional: true, fallback: value });
  }

  /** The value may also be null. */
  nullable() {
    const read = (value, path) => (value === null ? null : this.#read(value, path));
    return new Schema({ anyOf: [this.#json, { type: "null" }] }, read, {
      isOptional: this.#isOptional,
      fallback: this.#fallback,
    });
  }

  /** Adds keywords of JSON Schema, for the model and the host. */
  with(keywords) {
    return this.#copy({ json: { ...this.#json, ...keywords } });
  }

  /** Adds a check. `test` returns what is wrong, or nothing. */
  refine(test) {
    return this.#copy({ read: (value, path) => passed(test, this.#read(value, path), path) });
  }

  /** Returns the JSON Schema. */
  toJSON() {
    return this.#json;
  }

  /** Whether the property may be left out. */
  get isOptional() {
    return this.#isOptional;
  }

  /** The value of a property that is left out. */
  get fallback() {
    return this.#fallback;
  }

  /** Checks a value and returns it in the form that the author's code gets. */
  read(value, path = []) {
    return this.#read(value, path);
  }

  #copy({ json = this.#json, read = this.#read, isOptional = this.#isOptional, fallback = this.#fallback }) {
    return new this.constructor(json, read, { isOptional, fallback });
  }
}

/** A schema with a smallest and a largest size. */
class SizedSchema extends Schema {
  /** Sets the smallest value or length. */
  min(limit) {
    return this.with({ [sizeKeyword(this, "min")]: limit }).refine((value) => sizeOf(value) < limit
      && `must ${sizeVerb(value)} at least ${limit}`);
  }

  /** Sets the largest value or length. */
  max(limit) {
    return this.with({ [sizeKeyword(this, "max")]: limit }).refine((value) => sizeOf(value) > limit
      && `must ${sizeVerb(value)} at most ${limit}`);
  }
}

class StringSchema extends SizedSchema {
  /** Sets the pattern that the text must match. */
  pattern(regexp) {
    const source = typeof regexp === "string" ? regexp : regexp.source;
    const compiled = typeof regexp === "string" ? new RegExp(regexp, "u") : regexp;
    return this.with({ pattern: source }).refine((text) => text.search(compiled) < 0
      && `must match the pattern ${source}`);
  }
}

function passed(test, value, path) {
  const wrong = test(value);
  if (wrong) throw invalid(path, typeof wrong === "string" ? wrong : "is not allowed");
  return value;
}

const SIZE_KEYWORDS = { string: "Length", array: "Items" };

function sizeKeyword(schema, end) {
  const suffix = SIZE_KEYWORDS[schema.toJSON().type];
  return suffix ? `${end}${suffix}` : `${end}imum`;
}

function sizeOf(value) {
  return typeof value === "string" || Array.isArray(value) ? [...value].length : value;
}

function sizeVerb(value) {
  if (typeof value === "string") return "have a length of";
  return Array.isArray(value) ? "have a number of entries of" : "be";
}

function invalid(path, what) {
  const name = pathText(path).replace(/^\./, "");
  return new InvalidArguments(name ? `the argument ${name} ${what}` : `the argument ${what}`);
}

/** Names what a value is, for messages. */
function kindOf(value) {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  const kind = typeof value;
  return kind === "object" ? "an object" : kind === "bigint" ? "a large number" : `a ${kind}`;
}

function expect(isRight, wanted) {
  return (value, path) => {
    if (!isRight(value)) throw invalid(path, `must be ${wanted}, not ${kindOf(value)}`);
    return value;
  };
}

const described = (json, description) => (description === undefined ? json : { ...json, description });

function string(description) {
  const read = expect((value) => typeof value === "string", "a text");
  return new StringSchema(described({ type: "string" }, description), read);
}

function boolean(description) {
  return new Schema(described({ type: "boolean" }, description), expect((value) => typeof value === "boolean", "true or false"));
}

function number(description) {
  return new SizedSchema(described({ type: "number" }, description), readNumber);
}

function readNumber(value, path) {
  if (typeof value === "bigint") return Number(value);
  return expect((given) => Number.isFinite(given), "a number")(value, path);
}

function integer(description) {
  return new SizedSchema(described({ type: "integer" }, description), (value, path) => {
    if (typeof value === "bigint" || (Number.isInteger(value) && !Number.isSafeInteger(value))) {
      throw invalid(path, "is beyond 2^53, where numbers lose digits");
    }
    return expect(Number.isInteger, "a whole number")(value, path);
  });
}

/** A 64-bit integer: a BigInt in your code, a number or decimal digits in JSON. */
function bigInteger(minimum, maximum) {
  const pattern = minimum < 0n ? "^-?[0-9]{1,19}$" : "^[0-9]{1,20}$";
  const json = { type: ["integer", "string"], minimum, maximum, pattern };
  const read = (value, path) => {
    const big = toBigInt(value, path);
    if (big < minimum || big > maximum) throw invalid(path, `must be from ${minimum} to ${maximum}`);
    return big;
  };
  return (description) => new SizedSchema(described(json, description), read);
}

function toBigInt(value, path) {
  if (typeof value === "bigint" || Number.isSafeInteger(value)) return BigInt(value);
  if (typeof value === "string" && /^-?\d{1,20}$/.test(value)) return BigInt(value);
  if (Number.isInteger(value)) throw invalid(path, "was rounded. Pass it as a text of digits");
  throw invalid(path, `must be a whole number or its digits, not ${kindOf(value)}`);
}

function oneOf(values, description) {
  if (!Array.isArray(values) || values.length === 0) throw new TypeError('s.enum() needs a list of values, such as ["a", "b"]');
  const types = [...new Set(values.map(jsonType))];
  const json = { type: types.length === 1 ? types[0] : types, enum: values };
  return new Schema(described(json, description), (value, path) => {
    if (!values.includes(value)) throw invalid(path, `must be one of ${values.map((one) => JSON.stringify(one)).join(", ")}`);
    return value;
  });
}

function jsonType(value) {
  if (value === null) return "null";
  const type = typeof value;
  if (!["string", "number", "boolean"].includes(type)) throw new TypeError("s.enum() takes texts, numbers, booleans and null");
  return type;
}

function array(items, description) {
  needSchema(items, "s.array()");
  const json = described({ type: "array", items: items.toJSON() }, description);
  return new SizedSchema(json, (value, path) => {
    expect(Array.isArray, "a list")(value, path);
    return value.map((item, index) => items.read(item, [...path, index]));
  });
}

function record(values, description) {
  needSchema(values, "s.record()");
  const json = described({ type: "object", additionalProperties: values.toJSON() }, description);
  return new Schema(json, (value, path) => {
    expectObject(value, path);
    const read = (key) => [key, values.read(value[key], [...path, key])];
    return Object.fromEntries(Object.keys(value).map(read));
  });
}

function object(shape, description) {
  const entries = shapeEntries(shape);
  const properties = Object.fromEntries(entries.map(([key, schema]) => [key, schema.toJSON()]));
  const required = entries.filter(([, schema]) => !schema.isOptional).map(([key]) => key);
  const json = described({ type: "object", properties, required, additionalProperties: false }, description);
  const known = new Map(entries);
  return new Schema(json, (value, path) => readObject(known, value, path));
}

function shapeEntries(shape) {
  if (Object.getPrototypeOf(shape) !== Object.prototype && Object.getPrototypeOf(shape) !== null) {
    throw new TypeError('s.object() needs a plain object. Write a property called __proto__ as ["__proto__"]');
  }
  const entries = Object.entries(shape);
  entries.forEach(([key, schema]) => needSchema(schema, `the property ${JSON.stringify(key)}`));
  return entries;
}

function readObject(known, value, path) {
  expectObject(value, path);
  for (const key of Object.keys(value)) {
    if (!known.has(key)) throw invalid([...path, key], `is unknown. Known are ${[...known.keys()].join(", ") || "none"}`);
  }
  const read = [];
  for (const [key, schema] of known) {
    if (Object.hasOwn(value, key)) read.push([key, schema.read(value[key], [...path, key])]);
    else if (schema.fallback !== undefined) read.push([key, schema.fallback]);
    else if (!schema.isOptional) throw invalid([...path, key], "is missing");
  }
  return Object.fromEntries(read);
}

function expectObject(value, path) {
  expect((given) => typeof given === "object" && given !== null && !Array.isArray(given), "an object")(value, path);
}

function union(options, description) {
  if (!Array.isArray(options) || options.length === 0) throw new TypeError("s.union() needs a list of schemas");
  options.forEach((option) => needSchema(option, "s.union()"));
  const json = described({ anyOf: options.map((option) => option.toJSON()) }, description);
  return new Schema(json, (value, path) => readFirst(options, value, path));
}

function readFirst(options, value, path) {
  for (const option of options) {
    try {
      return option.read(value, path);
    } catch (error) {
      if (!(error instanceof InvalidArguments)) throw error;
    }
  }
  throw invalid(path, `fits none of its ${options.length} forms`);
}

function any(description) {
  return new Schema(described({}, description), (value) => value);
}

function needSchema(schema, where) {
  if (schema instanceof Schema) return;
  const given = typeof schema === "function" ? "a function. Did you forget to call it, as in s.string()?" : `${kindOf(schema)}`;
  throw new TypeError(`${where} needs a schema such as s.string(), not ${given}`);
}

/** Builds schemas. */
export const s = {
  string,
  boolean,
  number,
  integer,
  int64: bigInteger(-(2n ** 63n), 2n ** 63n - 1n),
  uint64: bigInteger(0n, 2n ** 64n - 1n),
  enum: oneOf,
  literal: (value, description) => oneOf([value], description),
  array,
  record,
  object,
  union,
  any,
};

/** How a tool reads its arguments: the JSON Schema as text, and a function that reads a value. */
export function parametersOf(parameters) {
  if (parameters === undefined) return fromSchema(object({}));
  if (parameters instanceof Schema) return fromSchema(parameters);
  const standard = parameters?.["~standard"];
  if (standard) return fromStandard(standard);
  if (isJsonSchema(parameters)) return { schema: toJson(parameters, "the schema"), read: (value) => value };
  return fromSchema(object(parameters));
}

function fromSchema(schema) {
  if (schema.toJSON().type !== "object") {
    throw new TypeError("the parameters must be an object: s.object({ … }), or only { … }");
  }
  return { schema: toJson(schema, "the schema"), read: (value) => schema.read(value) };
}

/** Takes a schema of Zod 4.2 or of another library with Standard JSON Schema. */
function fromStandard(standard) {
  if (!standard.jsonSchema) {
    throw new TypeError(`this version of ${standard.vendor} cannot write JSON Schema. Pass z.toJSONSchema(schema), or update it`);
  }
  const schema = standard.jsonSchema.input({ target: "draft-2020-12" });
  return { schema: toJson(schema, "the schema"), read: (value) => readStandard(standard, value) };
}

function readStandard(standard, value) {
  const result = standard.validate(value);
  if (typeof result?.then === "function") throw new TypeError("a schema that checks asynchronously cannot be used here");
  const issue = result.issues?.[0];
  if (!issue) return result.value;
  const path = (issue.path ?? []).map((part) => (typeof part === "object" ? part.key : part));
  throw invalid(path, `is wrong: ${issue.message}`);
}

function isJsonSchema(parameters) {
  const isSchema = Object.values(parameters ?? {}).some((value) => value instanceof Schema);
  return !isSchema && (parameters?.type === "object" || "$schema" in Object(parameters));
}
