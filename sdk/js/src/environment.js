// Environment variables that the policy grants.

import * as host from "#host";
import { requested } from "./requested.js";

/** Returns the value of an environment variable, or `undefined`. `plugin.toml` requests `env`. */
export function environment(name) {
  const pairs = requested(host.environment, "env").getEnvironment();
  return pairs.find(([key]) => key === name)?.[1];
}
