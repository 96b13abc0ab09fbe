// A tool: what the model reads of it, and the function that runs.

import { parametersOf } from "./schema.js";
import { toJson } from "./json.js";

/** What a name may look like; the contract says so. */
const NAME = /^[A-Za-z0-9_.:-]{1,128}$/;

const KEYS = new Set([
  "name", "title", "description", "parameters", "output", "run",
  "readOnly", "destructive", "idempotent", "openWorld",
]);

const made = [];

/** A tool, made by `tool()`. */
export class Tool {
  constructor(definition, parameters) {
    this.name = definition.name;
    this.run = definition.run;
    this.read = parameters.read;
    this.spec = specOf(definition, parameters.schema);
  }
}

/**
 * Makes a tool. Export it, and the plugin has it.
 *
 * @param {object} definition see `index.d.ts`
 */
export function tool(definition) {
  checkDefinition(definition);
  const parameters = inTool(definition.name, () => parametersOf(definition.parameters));
  const one = inTool(definition.name, () => new Tool(definition, parameters));
  made.push(one);
  return one;
}

/** Returns the tools that a module exports, in the order in which they were made. */
export function exportedTools(module) {
  const exported = new Set(Object.values(module).flat().filter((value) => value instanceof Tool));
  const forgotten = made.find((one) => !exported.has(one));
  if (forgotten) {
    throw new TypeError(`the tool ${forgotten.name} is not exported. Write: export const … = tool({ … })`);
  }
  if (exported.size === 0) throw new TypeError("the plugin exports no tool. Write: export const … = tool({ … })");
  return made.filter((one) => exported.has(one));
}

function checkDefinition(definition) {
  if (typeof definition !== "object" || definition === null) {
    throw new TypeError("tool() needs an object: tool({ name, description, parameters, run })");
  }
  const { name, description, run } = definition;
  if (typeof name !== "string" || !NAME.test(name)) {
    throw new TypeError(`tool() needs a name of letters, digits, "_" and "-", not ${JSON.stringify(name)}`);
  }
  if (typeof description !== "string" || description.trim() === "") {
    throw new TypeError(`the tool ${name} needs a description. The model decides by it when to call the tool`);
  }
  if (typeof run !== "function") throw new TypeError(`the tool ${name} needs a function: run(args) { … }`);
  checkKeys(definition);
  if (made.some((other) => other.name === name)) {
    throw new TypeError(`two tools have the name ${name}. Give one of them another name`);
  }
}

function checkKeys(definition) {
  const unknown = Object.keys(definition).find((key) => !KEYS.has(key));
  if (unknown === undefined) return;
  throw new TypeError(`the tool ${definition.name} has the unknown key ${unknown}. Known are ${[...KEYS].join(", ")}`);
}

function inTool(name, make) {
  try {
    return make();
  } catch (error) {
    if (error instanceof Error && !error.message.startsWith("the tool ")) error.message = `the tool ${name}: ${error.message}`;
    throw error;
  }
}

function specOf(definition, schema) {
  const { name, title, description, output, readOnly, destructive, idempotent, openWorld } = definition;
  const outputSchema = output === undefined ? undefined : toJson(output, "the schema of the output");
  const hints = { readOnly, destructive, idempotent, openWorld, extra: undefined };
  return { name, title, description, parameters: schema, output: outputSchema, hints, extra: undefined };
}
