// Runs before the author's modules: replaces what the engine lacks or would freeze into its snapshot.

import * as host from "#host";
import { guestConsole } from "../web/console.js";
import { mathRandom } from "../web/crypto.js";
import { GuestPromise } from "./promise.js";

const EngineDate = globalThis.Date;

/** The engine's `Date`, with the host's clock: see `build/quickjs-runtime.mjs`. */
const GuestDate = new Proxy(EngineDate, {
  construct: (target, args, newTarget) => Reflect.construct(target, args.length === 0 ? [host.clock.wall()] : args, newTarget),
  apply: () => new EngineDate(host.clock.wall()).toString(),
});
EngineDate.now = () => host.clock.wall();
EngineDate.prototype.constructor = GuestDate;

globalThis.Date = GuestDate;
globalThis.performance = { now: () => host.clock.elapsed(), get timeOrigin() { return host.clock.wall() - host.clock.elapsed(); } };
Math.random = mathRandom;
globalThis.console = guestConsole;

// `async` functions are lowered to helpers that use the global `Promise`.
globalThis.Promise = GuestPromise;
