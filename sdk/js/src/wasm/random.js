// Random numbers of the host. The engine's own `Math.random` would repeat in every call, because
// its seed is part of the snapshot.

import { getRandomBytes } from "wasi:random/random@0.2.0";
import { toU64 } from "#host";

export const random = { bytes: (count) => getRandomBytes(toU64(count)) };
