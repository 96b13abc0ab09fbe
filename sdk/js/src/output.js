// The result of a tool: data for the model, and optional parts.

import { toJson } from "./json.js";

/** Data for the model, with further parts and a sentence to be spoken. */
export class Output {
  /** @param {unknown} [data] the data, for the model */
  constructor(data = null) {
    this.data = data;
    this.parts = [];
    this.sentence = undefined;
  }

  /** Adds plain text. */
  text(text) {
    return this.#add({ tag: "text", val: String(text).toWellFormed() });
  }

  /** Adds an image from the bytes of its file. */
  image(bytes, mediaType, name) {
    return this.#add({ tag: "image", val: blob(bytes, mediaType, name) });
  }

  /** Adds an audio clip from the bytes of its file. */
  audio(bytes, mediaType, name) {
    return this.#add({ tag: "audio", val: blob(bytes, mediaType, name) });
  }

  /** Adds a link. The host shows it and never fetches it. */
  link(uri, { mediaType, title, description } = {}) {
    return this.#add({ tag: "link", val: { uri, mediaType, title, description, extra: undefined } });
  }

  /** Adds a resource with its contents: a text, or the bytes of a file. */
  file(uri, contents, mediaType) {
    const data = typeof contents === "string"
      ? { tag: "text", val: contents.toWellFormed() }
      : { tag: "binary", val: bytesOf(contents) };
    return this.#add({ tag: "embedded", val: { uri, mediaType, data, extra: undefined } });
  }

  /** Adds a sentence that is spoken as it is, if the session is a spoken one. */
  speech(sentence) {
    this.sentence = String(sentence).toWellFormed();
    return this;
  }

  #add(part) {
    this.parts.push(part);
    return this;
  }
}

/** Converts what a tool returned into the record `tool-output` of the contract. */
export function outputToWit(returned) {
  const output = returned instanceof Output ? returned : new Output(returned);
  return {
    data: toJson(output.data, "the result"),
    content: output.parts,
    speech: output.sentence,
    extra: undefined,
  };
}

function blob(bytes, mediaType, name) {
  if (typeof mediaType !== "string") {
    throw new TypeError('a media type such as "image/png" is required after the bytes');
  }
  return { mediaType, data: bytesOf(bytes), name, extra: undefined };
}

function bytesOf(bytes) {
  if (bytes instanceof Uint8Array) return bytes;
  if (bytes instanceof ArrayBuffer) return new Uint8Array(bytes);
  throw new TypeError("the bytes of a file must be a Uint8Array or an ArrayBuffer");
}
