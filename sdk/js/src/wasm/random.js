// Random numbers of the host.

import { getRandomBytes } from "wasi:random/random@0.2.0";
import { toU64 } from "#host";
import { needHost } from "./life.js";

export const random = {
  bytes(count) {
    needHost("a random number");
    return getRandomBytes(toU64(count));
  },
};
