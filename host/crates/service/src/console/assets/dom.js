// Builds what the pages show. Foreign text gets onto a page only as text, never as markup.

/** The length from which a text is folded, in characters: a browser shows that much at once. */
const PREVIEW_CHARS = 16 * 1024;

/** Characters that change how others are shown, or that nobody sees. */
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e0fff}]/gu;

/** The joiners that emoji and many languages are written with. In prose they harm nobody. */
const JOINERS = ["\u200c", "\u200d"];

const escapeOne = (one) => `\\u{${one.codePointAt(0).toString(16)}}`;

/** Shows hidden characters as their escapes: what is approved has to be seen. */
export const visible = (text) => String(text).replace(HIDDEN, escapeOne);

/** The same for prose, where joiners stay. */
export const visibleProse = (text) =>
  String(text).replace(HIDDEN, (one) => (JOINERS.includes(one) ? one : escapeOne(one)));

/**
 * Makes an element. Of the attributes, `on` has event handlers; one that is false or missing is left
 * out, and one that is true has no value. Children are elements or texts.
 */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  setAttributes(made, attributes);
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

function setAttributes(made, { on = {}, ...attributes }) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    made.setAttribute(name, value === true ? "" : String(value));
  }
  for (const [event, handler] of Object.entries(on)) made.addEventListener(event, handler);
}

/** Makes an element of a drawing. Its namespace is that of the page's own drawing. */
export function drawn(tag, attributes = {}, ...children) {
  const { namespaceURI } = document.getElementById("drawing");
  const made = document.createElementNS(namespaceURI, tag);
  setAttributes(made, attributes);
  made.append(...children);
  return made;
}

/** Makes a button. */
export const button = (text, handler, attributes = {}) =>
  element("button", { type: "button", on: { click: handler }, ...attributes }, text);

/** Makes a labelled field. The description is read with it. */
export function field(label, input, description) {
  input.id ||= nextId("field");
  const about = description && element("span", { class: "faint", id: `${input.id}-about` }, visible(description));
  if (about) input.setAttribute("aria-describedby", about.id);
  return element("div", { class: "field" }, element("label", { for: input.id }, visible(label)), about, input);
}

let lastId = 0;

/** Returns an ID that no other element has. */
export function nextId(start) {
  lastId += 1;
  return `${start}-${lastId}`;
}

/** Makes a menu of `[value, text]` pairs. */
export function menu(options, attributes = {}) {
  const made = options.map(([value, text]) => element("option", { value }, text));
  return element("select", attributes, ...made);
}

/** Makes a block of a text that may be long: its rest unfolds. */
export function block(text, attributes = {}) {
  const shown = visible(text);
  const pre = element("pre", { tabindex: "0", ...attributes }, shown.slice(0, PREVIEW_CHARS));
  if (shown.length <= PREVIEW_CHARS) return pre;
  const rest = shown.length - PREVIEW_CHARS;
  const more = button(`Show the other ${count(rest)} characters`, () => {
    pre.append(shown.slice(PREVIEW_CHARS));
    more.remove();
    pre.focus();
  }, { class: "quiet" });
  return element("div", { class: "folded" }, pre, more);
}

/** Makes a part that unfolds. What is inside is made when it is first opened. */
export function unfolding(summary, make, attributes = {}) {
  const box = element("details", attributes, element("summary", {}, summary));
  const fill = () => {
    if (box.open && box.children.length === 1) box.append(...[make()].flat());
  };
  box.addEventListener("toggle", fill);
  fill();
  return box;
}

/** Replaces what is inside an element. */
export function fill(parent, ...children) {
  parent.replaceChildren(...children.flat().filter(Boolean));
  return parent;
}

/** Formats JSON for people. A text that is not JSON stays as it is. */
export function pretty(value) {
  if (typeof value !== "string") return JSON.stringify(value, null, 2);
  try {
    return JSON.stringify(JSON.parse(value), null, 2);
  } catch {
    return value;
  }
}

/** Formats a number. */
export const count = (number) => Number(number).toLocaleString("en");

/** Formats "1 turn", "2 turns". */
export const counted = (number, one, several = `${one}s`) => `${count(number)} ${number === 1 ? one : several}`;

/** Formats a cost in millionths of a US dollar. */
export function cost(micro) {
  if (micro === null || micro === undefined) return "unknown";
  if (micro === 0) return "$0";
  return `$${(micro / 1e6).toFixed(micro < 1e6 ? 4 : 2)}`;
}

/** Makes an element with a time, in milliseconds since 1970. */
export function time(ms, options = { dateStyle: "medium", timeStyle: "short" }) {
  const at = new Date(ms);
  if (Number.isNaN(at.getTime())) return element("span", {}, "unknown");
  return element("time", { datetime: at.toISOString() }, at.toLocaleString("en-GB", options));
}

/** Has screen readers say a sentence. */
export function announce(sentence) {
  document.getElementById("announcer").textContent = sentence;
}
