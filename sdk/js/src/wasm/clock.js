// Clocks and waiting, over `wasi:clocks`.

import { now as monotonicNow, subscribeDuration } from "wasi:clocks/monotonic-clock@0.2.0";
import { now as wallNow } from "wasi:clocks/wall-clock@0.2.0";
import { toU64 } from "#host";
import { isRunning } from "./life.js";

const NANOS_PER_MILLI = 1e6;
const MILLIS_PER_SECOND = 1000;

export const clock = {
  /** Milliseconds since the call began; 0 while the component is built. */
  elapsed: () => (isRunning() ? Number(monotonicNow()) / NANOS_PER_MILLI : 0),

  /** Milliseconds since 1970; 0 while the component is built, so that its bytes stay the same. */
  wall() {
    if (!isRunning()) return 0;
    const { seconds, nanoseconds } = wallNow();
    return Number(seconds) * MILLIS_PER_SECOND + Math.floor(nanoseconds / NANOS_PER_MILLI);
  },

  /** Waits for some milliseconds. */
  sleep(milliseconds) {
    const pollable = subscribeDuration(toU64(Math.ceil(milliseconds * NANOS_PER_MILLI)));
    pollable.block();
    pollable[Symbol.dispose]();
  },
};
