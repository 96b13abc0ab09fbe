// Shows a subset of Markdown, built of elements and texts. Everything else stays as it was written.
// A link leads to http or https alone, and shows the host that it leads to; a picture is never loaded.

import { element, visibleProse } from "./dom.js";

/** Longest text that is shown as Markdown, in characters. A longer one is shown as it is. */
export const MARKDOWN_CHARS_MAX = 200 * 1024;

// No part can match what another begins with, so that a long line costs one pass.
const INLINE =
  /`([^`\n]+)`|\*\*([^*\n]+)\*\*|\*([^*\s][^*\n]*)\*|(!?)\[([^[\]\n]{0,300})\]\(([^()\s]{1,2000})\)|(https?:\/\/[^\s<>"'`()[\]|*]{1,2000})/g;
const FENCE = /^ {0,3}(```+|~~~+)/;
const HEADING = /^(#{1,6}) +(.*)$/;
const ITEM = /^( *)(?:[-*+]|(\d{1,9})[.)]) +(.*)$/;
const QUOTE = /^> ?(.*)$/;
const RULE = /^ {0,3}(?:-{3,}|\*{3,}|_{3,}) *$/;
const TABLE_ROW = /^ *\|.*\| *$/;
const TABLE_LINE = /^ *\|(?: *:?-+:? *\|)+ *$/;

/** What ends a sentence is not a part of the address in it. */
const TRAILING = /[.,;:!?]+$/;

/** Shows a text. */
export function markdown(text) {
  const box = element("div", { class: "prose" });
  const lines = visibleProse(text).split("\n");
  for (let at = 0; at < lines.length; ) {
    if (!lines[at].trim()) {
      at += 1;
      continue;
    }
    const [made, taken] = nextBlock(lines, at);
    made.dir = "auto";
    box.append(made);
    at += taken;
  }
  return box;
}

/** The next block: its element, and how many lines it takes. */
function nextBlock(lines, at) {
  const line = lines[at];
  if (FENCE.test(line)) return codeBlock(lines, at);
  if (HEADING.test(line)) return [heading(line), 1];
  if (RULE.test(line)) return [element("hr"), 1];
  if (ITEM.test(line)) return list(lines, at);
  if (TABLE_ROW.test(line) && TABLE_LINE.test(lines[at + 1] ?? "")) return table(lines, at);
  if (QUOTE.test(line)) return quote(lines, at);
  return paragraph(lines, at);
}

/** Takes the lines from `at` on that belong together. */
function takeWhile(lines, at, belongs) {
  let end = at;
  while (end < lines.length && belongs(lines[end])) end += 1;
  return lines.slice(at, end);
}

function codeBlock(lines, at) {
  const [, fence] = FENCE.exec(lines[at]);
  const inside = takeWhile(lines, at + 1, (line) => !line.trimStart().startsWith(fence));
  return [element("pre", { tabindex: "0" }, element("code", {}, inside.join("\n"))), inside.length + 2];
}

/** A heading of an answer is below those of the page. */
function heading(line) {
  const [, marks, text] = HEADING.exec(line);
  return element(`h${Math.min(marks.length + 2, 6)}`, {}, inline(text));
}

function quote(lines, at) {
  const taken = takeWhile(lines, at, (line) => QUOTE.test(line));
  const text = taken.map((line) => QUOTE.exec(line)[1]).join("\n");
  return [element("blockquote", {}, inline(text)), taken.length];
}

function paragraph(lines, at) {
  const others = [FENCE, HEADING, ITEM, QUOTE, RULE];
  const isPlain = (line) => line.trim() && !others.some((form) => form.test(line));
  const taken = [lines[at], ...takeWhile(lines, at + 1, isPlain)];
  return [element("p", {}, inline(taken.join("\n"))), taken.length];
}

function list(lines, at) {
  const taken = takeWhile(lines, at, (line) => ITEM.test(line));
  const open = [];
  for (const line of taken) {
    const [, indent, number, text] = ITEM.exec(line);
    const depth = indent.length;
    const item = element("li", {}, inline(text));
    while (open.length > 1 && open.at(-1).depth > depth) open.pop();
    const last = open.at(-1);
    if (!last || depth > last.depth) {
      const made = element(number ? "ol" : "ul", { start: number && Number(number) });
      last?.item.append(made);
      open.push({ depth, made, item });
    } else {
      last.item = item;
    }
    open.at(-1).made.append(item);
  }
  return [open[0].made, taken.length];
}

function table(lines, at) {
  const taken = takeWhile(lines, at, (line) => TABLE_ROW.test(line));
  const row = (line, tag) => element("tr", {}, cells(line).map((cell) => element(tag, { scope: tag === "th" && "col" }, inline(cell))));
  const head = element("thead", {}, row(taken[0], "th"));
  const body = element("tbody", {}, taken.slice(2).map((line) => row(line, "td")));
  return [element("div", { class: "scroll", tabindex: "0" }, element("table", {}, head, body)), taken.length];
}

const cells = (line) => line.trim().slice(1, -1).split("|").map((cell) => cell.trim());

/** The parts of a line: texts and elements. */
function inline(text) {
  const parts = [];
  let end = 0;
  for (const found of text.matchAll(INLINE)) {
    parts.push(text.slice(end, found.index), ...inlinePart(found));
    end = found.index + found[0].length;
  }
  return [...parts, text.slice(end)].filter((part) => part !== "");
}

function inlinePart([whole, code, strong, emphasis, isPicture, label, target, address]) {
  if (code) return [element("code", {}, code)];
  if (strong) return [element("strong", {}, strong)];
  if (emphasis) return [element("em", {}, emphasis)];
  if (address) {
    const [trailing] = TRAILING.exec(address) ?? [""];
    const bare = address.slice(0, address.length - trailing.length);
    return [link(bare, bare) ?? bare, trailing];
  }
  const made = link(target, isPicture ? `picture: ${label}` : label);
  return made ? [made] : [whole];
}

/** A link that leads outside. `null` if the address is not one of the web. */
function link(target, label) {
  const url = URL.canParse(target) ? new URL(target) : null;
  if (!url || !["http:", "https:"].includes(url.protocol)) return null;
  const attributes = { href: url.href, rel: "noopener noreferrer", target: "_blank" };
  const shown = element("a", attributes, label || target);
  if (label === target) return shown;
  return element("span", {}, shown, element("span", { class: "faint" }, ` (${url.host})`));
}
