// The errors of tools. The model reads the message, so it states what to do next.

/** Why a call failed. Throw one of its subclasses. */
export class ToolError extends Error {
  /**
   * @param {string} kind the kind, as the contract spells it
   * @param {string} message the text for the model
   * @param {ErrorOptions} [options]
   */
  constructor(kind, message, options) {
    super(message, options);
    this.name = new.target.name;
    this.kind = kind;
  }
}

/** The arguments are invalid; state which ones and why. */
export class InvalidArguments extends ToolError {
  constructor(message, options) {
    super("invalid-arguments", message, options);
  }
}

/** The requested thing does not exist. */
export class NotFound extends ToolError {
  constructor(message, options) {
    super("not-found", message, options);
  }
}

/** Something that the tool needs was refused. */
export class Denied extends ToolError {
  constructor(message, options) {
    super("denied", message, options);
  }
}

/** The user has to sign in somewhere first. */
export class AuthRequired extends ToolError {
  /**
   * @param {string} message
   * @param {ErrorOptions & { connection?: string, scopes?: string[] }} [options] the missing
   *   connection, and the scopes that it needs, as the service names them
   */
  constructor(message, options = {}) {
    super("auth-required", message, options);
    this.connection = options.connection;
    this.scopes = options.scopes ?? [];
  }
}

/** A service or a setting is unavailable at the moment; a later call may succeed. */
export class Unavailable extends ToolError {
  constructor(message, options) {
    super("unavailable", message, options);
  }
}

/** Any other failure. */
export class Failed extends ToolError {
  constructor(message, options) {
    super("failed", message, options);
  }
}

/** The kinds of error whose value in the contract is the message. */
const PLAIN_KINDS = new Set(["invalid-arguments", "not-found", "denied", "unavailable", "failed"]);

/** Converts an error into the variant `tool-error` of the contract. */
export function errorToWit(error) {
  const message = String(error.message).toWellFormed();
  if (error instanceof AuthRequired) {
    const { connection, scopes } = error;
    return { tag: "auth-required", val: { message, connection, scopes, extra: undefined } };
  }
  if (PLAIN_KINDS.has(error.kind)) return { tag: error.kind, val: message };
  return { tag: "other", val: JSON.stringify({ kind: String(error.kind), message }) };
}

/** Returns the variant that a function of the host threw, as `{ tag, val }`. */
export function thrownVariant(thrown) {
  const variant = thrown?.payload ?? thrown;
  if (typeof variant === "string") return { tag: variant, val: undefined };
  return variant && typeof variant.tag === "string" ? variant : { tag: "other", val: String(thrown) };
}

/** Returns the message of an `other` case, which is JSON with a `message`. */
export function otherMessage(json) {
  try {
    return String(JSON.parse(json).message ?? json);
  } catch {
    return String(json);
  }
}
