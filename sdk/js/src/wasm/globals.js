// The globals of the web that the engine lacks. The build puts each of them into a component only if
// the plugin names it.

export { AbortController, AbortSignal } from "../web/abort.js";
export { crypto } from "../web/crypto.js";
export { fetch, Request, Response } from "../web/fetch.js";
export { Headers } from "../web/headers.js";
export { URLSearchParams } from "../web/search-params.js";
export { TextDecoder, TextEncoder } from "../web/text.js";
export { URL } from "../web/url.js";
export { enqueue as queueMicrotask } from "./promise.js";
export { clearInterval, clearTimeout, setInterval, setTimeout } from "./timers.js";
