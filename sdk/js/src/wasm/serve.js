// The exported interface `tools`.

import { findTool, readArguments, readOutput, witError } from "../call.js";
import { log } from "../log.js";
import { exportedTools } from "../tool.js";
import { begin } from "./life.js";
import { takeUnhandled } from "./promise.js";
import { settle } from "./timers.js";
import { authorStack, described } from "./trace.js";

/** Makes the exports of a component from the author's module. */
export function serve(author) {
  const tools = exportedTools(author);
  const specs = tools.map((tool) => tool.spec);
  return {
    listTools: () => specs,
    callTool(context, name, json) {
      begin();
      return callTool(tools, context, name, json);
    },
  };
}

function callTool(tools, context, name, json) {
  try {
    const tool = findTool(tools, name);
    const returned = settle(tool.run(readArguments(tool, json), plainContext(context)));
    return readOutput(tool, returned);
  } catch (thrown) {
    if (thrown instanceof Error && thrown.kind === undefined) log.error(authorStack(thrown));
    throw witError(name, thrown, described);
  } finally {
    takeUnhandled().forEach((reason) => log.warn(`a promise was rejected and nothing handled it: ${authorStack(reason)}`));
  }
}

/** The context without `null`, which one engine has for a missing value. */
function plainContext({ callId, sessionId, userId, conversationId, deadlineMs }) {
  return { callId, sessionId, userId, conversationId: conversationId ?? undefined, deadlineMs: deadlineMs ?? undefined };
}
