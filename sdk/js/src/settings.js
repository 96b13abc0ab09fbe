// The plugin's own settings, from `[settings.PLUGIN]` in the host's configuration.

import * as host from "#host";
import { Unavailable } from "./errors.js";
import { fromJson } from "./json.js";

/** Reads the settings that `plugin.toml` describes. The host checks them and fills in defaults. */
export const settings = {
  /** Returns one setting, or `undefined`. */
  get(key) {
    const text = host.config.get(String(key));
    return text === undefined || text === null ? undefined : fromJson(text);
  },

  /** Returns one setting, or throws `Unavailable` if it is not set. */
  require(key) {
    const value = settings.get(key);
    if (value === undefined || value === null) throw new Unavailable(`the setting \`${key}\` is not given`);
    return value;
  },

  /** Returns all settings as an object. */
  all() {
    return fromJson(host.config.getAll());
  },
};
