// The progress of a call.

import * as host from "#host";
import { requested } from "./requested.js";

/**
 * Reports how far the call has come: a part from 0 to 1, or `undefined`, and a few words.
 * `plugin.toml` requests `progress`. Without the grant, nothing is shown.
 *
 * @param {number | undefined} part
 * @param {string} [message]
 */
export function progress(part, message) {
  requested(host.progress, "progress").report(part, message === undefined ? undefined : String(message));
}
