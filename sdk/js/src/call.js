// One call of a tool, from the JSON of its arguments to its output or its error.

import { errorToWit, Failed, InvalidArguments, NotFound, ToolError } from "./errors.js";
import { fromJson, JsonError } from "./json.js";
import { outputToWit } from "./output.js";

/** Reads the arguments of a call. */
export function readArguments(tool, json) {
  let value;
  try {
    value = fromJson(json);
  } catch (error) {
    throw new InvalidArguments(`the arguments are not JSON: ${error.message}`);
  }
  return tool.read(value);
}

/** Finds a tool by its name. */
export function findTool(tools, name) {
  const found = tools.find((one) => one.name === name);
  if (!found) throw new NotFound(`there is no tool called ${name}`);
  return found;
}

/** Converts the result of `run`, and turns a mistake in it into an error for the model. */
export function readOutput(tool, returned) {
  try {
    return outputToWit(returned);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw new Failed(`${tool.name}: ${error.message}`);
  }
}

/** Turns anything that was thrown into the error of the contract. */
export function witError(toolName, thrown, describe) {
  if (thrown instanceof ToolError) return errorToWit(thrown);
  return errorToWit(new Failed(`${toolName}: ${thrownMessage(thrown, describe)}`));
}

function thrownMessage(thrown, describe) {
  if (thrown instanceof Error) return describe?.(thrown) ?? `${thrown.name}: ${thrown.message}`;
  if (typeof thrown === "string" && thrown !== "") return thrown;
  return `threw ${printed(thrown)} instead of an Error`;
}

function printed(thrown) {
  try {
    return typeof thrown === "object" && thrown !== null ? JSON.stringify(thrown) : String(thrown);
  } catch {
    return "something";
  }
}
