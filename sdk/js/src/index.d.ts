/// <reference path="./globals.d.ts" />
// The types of the SDK.

/** Any JSON value, and what the SDK writes as one: a BigInt becomes a number with all its digits. */
export type Data = unknown;

/** Why a call failed. The model reads the message, so state what to do next. */
export class ToolError extends Error {
  constructor(kind: string, message: string, options?: ErrorOptions);
  readonly kind: string;
}
/** The arguments are invalid; state which ones and why. */
export class InvalidArguments extends ToolError {
  constructor(message: string, options?: ErrorOptions);
}
/** The requested thing does not exist. */
export class NotFound extends ToolError {
  constructor(message: string, options?: ErrorOptions);
}
/** Something that the tool needs was refused. */
export class Denied extends ToolError {
  constructor(message: string, options?: ErrorOptions);
}
/** The user has to sign in somewhere first. */
export class AuthRequired extends ToolError {
  constructor(message: string, options?: ErrorOptions & { connection?: string; scopes?: string[] });
  readonly connection: string | undefined;
  readonly scopes: string[];
}
/** A service or a setting is unavailable at the moment; a later call may succeed. */
export class Unavailable extends ToolError {
  constructor(message: string, options?: ErrorOptions);
}
/** Any other failure. */
export class Failed extends ToolError {
  constructor(message: string, options?: ErrorOptions);
}

/** Describes one value. Every method returns a new schema. */
export interface Schema<T> {
  /** The type of the value, for the compiler only. */
  readonly __type?: T;
  /** Adds a description for the model. */
  describe(text: string): this;
  /** Adds keywords of JSON Schema, for the model and the host. */
  with(keywords: Record<string, unknown>): this;
  /** Adds a check. `test` returns what is wrong, or nothing. */
  refine(test: (value: T) => string | false | null | undefined): this;
  /** The property may be left out. */
  optional(): OptionalSchema<T>;
  /** The property may be left out, and then has this value. */
  default(value: T): Schema<T>;
  /** The value may also be null. */
  nullable(): Schema<T | null>;
  /** Returns the JSON Schema. */
  toJSON(): Record<string, unknown>;
}
/** A property that may be left out. */
export interface OptionalSchema<T> extends Schema<T | undefined> {
  /** A mark for the compiler only. */
  readonly __optional: true;
}
/** A schema with a smallest and a largest value or length. */
export interface SizedSchema<T, Limit> extends Schema<T> {
  min(limit: Limit): this;
  max(limit: Limit): this;
}
export interface StringSchema extends SizedSchema<string, number> {
  /** Sets the pattern that the text must match. */
  pattern(regexp: RegExp | string): this;
}

type Literal = string | number | boolean | null;
type Shape = { readonly [key: string]: Schema<any> };
type Flat<T> = { [K in keyof T]: T[K] } & {};
type OptionalKeys<S extends Shape> = { [K in keyof S]: S[K] extends { readonly __optional: true } ? K : never }[keyof S];
type Values<S extends Shape> = Flat<
  { [K in Exclude<keyof S, OptionalKeys<S>>]: Infer<S[K]> } & { [K in OptionalKeys<S>]?: Infer<S[K]> }
>;

/** The type of the values that a schema describes. */
export type Infer<S> = S extends Schema<infer T> ? T : never;

/** Builds schemas. The description is for the model. */
export const s: {
  string(description?: string): StringSchema;
  boolean(description?: string): Schema<boolean>;
  number(description?: string): SizedSchema<number, number>;
  /** A whole number that JavaScript holds exactly, up to ±(2^53 − 1). */
  integer(description?: string): SizedSchema<number, number>;
  /** A signed integer of 64 bits: a BigInt in your code, a number or its digits in JSON. */
  int64(description?: string): SizedSchema<bigint, bigint>;
  /** An unsigned integer of 64 bits: a BigInt in your code, a number or its digits in JSON. */
  uint64(description?: string): SizedSchema<bigint, bigint>;
  enum<const V extends readonly Literal[]>(values: V, description?: string): Schema<V[number]>;
  literal<const V extends Literal>(value: V, description?: string): Schema<V>;
  array<T>(items: Schema<T>, description?: string): SizedSchema<T[], number>;
  record<T>(values: Schema<T>, description?: string): Schema<Record<string, T>>;
  object<S extends Shape>(shape: S, description?: string): Schema<Values<S>>;
  union<const O extends readonly Schema<any>[]>(options: O, description?: string): Schema<Infer<O[number]>>;
  /** Any JSON. An integer beyond ±(2^53 − 1) is a BigInt. */
  any(description?: string): Schema<any>;
};

/** Where a call comes from. */
export interface CallContext {
  readonly callId: string;
  readonly sessionId: string;
  /** The user on whose behalf the call is made; `local` on your own machine. */
  readonly userId: string;
  readonly conversationId: string | undefined;
  /** Milliseconds until the host stops the call. */
  readonly deadlineMs: number | undefined;
}

/** A schema of Zod 4.2, or of another library with Standard JSON Schema. */
interface StandardSchema<T> {
  readonly "~standard": { readonly types?: { readonly output: T } | undefined; readonly vendor: string };
}
/** JSON Schema as an object, such as `z.toJSONSchema(…)` returns. Its values are not inferred. */
interface JsonSchema {
  readonly type?: "object" | (string & {});
  readonly $schema?: string;
  readonly properties?: object;
}

/** The types of the arguments that `parameters` describe. */
export type Arguments<P> =
  P extends Schema<infer T> ? T
  : P extends StandardSchema<infer T> ? T
  : P extends Shape ? Values<P>
  : Record<string, any>;

export interface ToolDefinition<P> {
  /** Letters, digits, `_` and `-`. A model sees `PLUGIN__NAME`. */
  name: string;
  /** A short name for people. */
  title?: string;
  /** What the tool does and when to use it. The model decides by it. */
  description: string;
  /** The arguments: `{ name: s.string("…") }`, `s.object(…)`, a Zod schema, or JSON Schema. */
  parameters?: P;
  /** JSON Schema of the result, if the host shall check it. */
  output?: object;
  /** The tool changes nothing. */
  readOnly?: boolean;
  /** The tool may destroy something. */
  destructive?: boolean;
  /** Calling it twice is the same as calling it once. */
  idempotent?: boolean;
  /** The tool reaches things outside of this machine. */
  openWorld?: boolean;
  /** Runs the tool. It returns data or an `Output`, or a promise of either. */
  run(args: NoInfer<Arguments<P>>, context: CallContext): Data | Output | Promise<Data | Output>;
}

/** A tool. */
export interface Tool<P = any> {
  readonly name: string;
  run(args: Arguments<P>, context: CallContext): Data | Output | Promise<Data | Output>;
}

/** Makes a tool. Export it, and the plugin has it. */
export function tool<P extends Schema<any> | StandardSchema<any> | Shape | JsonSchema = {}>(definition: ToolDefinition<P>): Tool<P>;

/** Data for the model, with further parts and a sentence to be spoken. */
export class Output {
  constructor(data?: Data);
  readonly data: Data;
  text(text: string): this;
  image(bytes: Uint8Array | ArrayBuffer, mediaType: string, name?: string): this;
  audio(bytes: Uint8Array | ArrayBuffer, mediaType: string, name?: string): this;
  /** Adds a link. The host shows it and never fetches it. */
  link(uri: string, about?: { mediaType?: string; title?: string; description?: string }): this;
  /** Adds a resource with its contents. */
  file(uri: string, contents: string | Uint8Array | ArrayBuffer, mediaType?: string): this;
  /** Adds a sentence that is spoken as it is, if the session is a spoken one. */
  speech(sentence: string): this;
}

/** Parses JSON as `JSON.parse` does, but an integer beyond ±(2^53 − 1) becomes a BigInt. */
export function parseJson(text: string): any;

/** Writes lines to the operator's log. `console.log` and its relatives write there too. */
export const log: Record<"trace" | "debug" | "info" | "warn" | "error", (message: unknown) => void>;

/** Reads the settings that `plugin.toml` describes. */
export const settings: {
  get(key: string): any;
  /** Throws `Unavailable` if the setting is not set. */
  require(key: string): any;
  all(): Record<string, any>;
};

/** Keeps values, separately for each user. `plugin.toml` requests `state`. */
export const state: {
  get(key: string): any;
  set(key: string, value: Data, options?: { expiresInMs?: number }): void;
  getBytes(key: string): Uint8Array | undefined;
  setBytes(key: string, bytes: Uint8Array, options?: { expiresInMs?: number }): void;
  /** Changes a value in one step that nothing comes between, and returns the new one. */
  update<T>(key: string, change: (old: any) => T, options?: { expiresInMs?: number }): T;
  delete(key: string): boolean;
  keys(prefix?: string): string[];
};

/** Reads secrets that the operator reveals. `plugin.toml` requests each with `reveal = true`. */
export const secrets: { get(name: string): string };

/** Sends a message to the user. `plugin.toml` requests `notify`. */
export function notify(text: string, options?: { speech?: string; to?: "conversation" | "user" }): void;

/** Reports how far the call has come, from 0 to 1. `plugin.toml` requests `progress`. */
export function progress(part: number | undefined, message?: string): void;

/** Returns the value of an environment variable. `plugin.toml` requests `env`. */
export function environment(name: string): string | undefined;

/** Reads and writes files in the granted folders. `plugin.toml` requests `fs`. */
export const files: {
  readText(path: string, options?: { bytesMax?: number }): string;
  read(path: string, options?: { bytesMax?: number }): Uint8Array;
  write(path: string, contents: string | Uint8Array, options?: { append?: boolean }): void;
  list(path: string): { name: string; isFolder: boolean }[];
  stat(path: string): { size: number; isFolder: boolean };
  exists(path: string): boolean;
  createFolder(path: string): void;
  remove(path: string): void;
  granted(): string[];
};
