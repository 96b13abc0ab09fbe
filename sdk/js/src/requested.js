// Functions of the host that `plugin.toml` has to request.

import { Denied } from "./errors.js";

/** Returns the functions, or throws what to write into `plugin.toml`. */
export function requested(functions, request) {
  if (functions) return functions;
  throw new Denied(`the plugin does not request ${request}. Add [[request.${request}]] to plugin.toml and build it again`);
}
