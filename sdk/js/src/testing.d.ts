// The types of `sallyport/testing`.

import type { CallContext, Tool } from "./index.js";

/** Calls a tool as the host does: the arguments and the result pass through JSON. */
export function call(
  tool: Tool,
  args?: unknown,
  context?: Partial<CallContext>,
): Promise<{ data: any; json: string; content: { tag: string; val: any }[]; speech: string | undefined }>;

/** Sets up the stand-in for the host, anew. Without `fetch`, every request is refused. */
export function host(setup?: {
  settings?: Record<string, unknown>;
  secrets?: Record<string, string>;
  grant?: ("state" | "notify" | "progress")[];
  files?: Record<string, string | Uint8Array>;
  environment?: Record<string, string>;
  fetch?: (request: Request) => Response | Promise<Response>;
}): void;

/** What the plugin has logged, sent, reported and kept since `host()`. */
export const recorded: {
  readonly log: { level: string; message: string }[];
  readonly messages: { text: string; speech: string | undefined; to: string }[];
  readonly progress: { part: number | undefined; message: string | undefined }[];
  readonly state: Record<string, any>;
  readonly files: Record<string, string>;
};
