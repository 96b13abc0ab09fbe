// Write Sallyport plugins in JavaScript and TypeScript.

export { AuthRequired, Denied, Failed, InvalidArguments, NotFound, ToolError, Unavailable } from "./errors.js";
export { files } from "./files.js";
export { environment } from "./environment.js";
export { fromJson as parseJson } from "./json.js";
export { log } from "./log.js";
export { notify } from "./notify.js";
export { Output } from "./output.js";
export { progress } from "./progress.js";
export { s } from "./schema.js";
export { secrets } from "./secrets.js";
export { settings } from "./settings.js";
export { state } from "./state.js";
export { tool } from "./tool.js";
