// Messages to the user, independent of the results of tools.

import * as host from "#host";
import { Denied, Failed, otherMessage, thrownVariant, Unavailable } from "./errors.js";
import { requested } from "./requested.js";

/**
 * Sends a message to the user. `plugin.toml` requests `notify`.
 *
 * @param {string} text
 * @param {{ speech?: string, to?: "conversation" | "user" }} [options]
 */
export function notify(text, { speech, to = "conversation" } = {}) {
  const functions = requested(host.notify, "notify");
  try {
    functions.send({ text: String(text).toWellFormed(), speech, audience: { tag: to }, extra: undefined });
  } catch (thrown) {
    throw notifyError(thrown);
  }
}

function notifyError(thrown) {
  const { tag, val } = thrownVariant(thrown);
  switch (tag) {
    case "not-granted":
      return new Denied("this plugin may not send messages to the user");
    case "invalid":
      return new Failed(`the message cannot be sent: ${val}`);
    case "too-many":
      return new Unavailable(`there were too many messages: ${val}`);
    case "unavailable":
      return new Unavailable(`the message did not get through: ${val}`);
    default:
      return new Unavailable(otherMessage(val));
  }
}
