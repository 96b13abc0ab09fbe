// Secrets that the operator reveals to this plugin.

import * as host from "#host";
import { Denied, otherMessage, thrownVariant, Unavailable } from "./errors.js";
import { requested } from "./requested.js";

/** Reads the value of a secret that the operator reveals to this plugin. */
export const secrets = {
  /** Returns the value. `plugin.toml` requests the secret with `reveal = true`. */
  get(name) {
    const functions = requested(host.secrets, "secrets");
    try {
      return functions.get(String(name));
    } catch (thrown) {
      throw secretError(name, thrown);
    }
  },
};

function secretError(name, thrown) {
  const { tag, val } = thrownVariant(thrown);
  if (tag === "not-granted") return new Denied(`the secret \`${name}\` is not shown to this plugin`);
  return new Unavailable(`the secret \`${name}\` is not available: ${tag === "other" ? otherMessage(val) : val}`);
}
