// Lines for the operator's log. Models do not see them.

import * as host from "#host";

const write = (level) => (message) => host.log.log(level, String(message).toWellFormed());

/** Writes a line of one importance. `console.log` and its relatives write here too. */
export const log = {
  trace: write("trace"),
  debug: write("debug"),
  info: write("info"),
  warn: write("warn"),
  error: write("error"),
};
