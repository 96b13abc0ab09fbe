// Runs before the author's modules: replaces what the engine lacks or freezes into its snapshot.

import { guestConsole } from "../web/console.js";
import { GuestPromise } from "./promise.js";

// `async` functions are lowered to helpers that use the global `Promise`.
globalThis.Promise = GuestPromise;
globalThis.console = guestConsole;
