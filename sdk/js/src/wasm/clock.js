// Waiting, over `wasi:clocks`.

import { subscribeDuration } from "wasi:clocks/monotonic-clock@0.2.0";
import { toU64 } from "#host";

const NANOS_PER_MILLI = 1e6;

export const clock = {
  /** Waits for some milliseconds. */
  sleep(milliseconds) {
    const pollable = subscribeDuration(toU64(Math.ceil(milliseconds * NANOS_PER_MILLI)));
    pollable.block();
    pollable[Symbol.dispose]();
  },
};
