"use strict";

// The only way in which foreign text gets onto the page: as text, never as markup.
const element = (tag, classes, text) => {
  const made = document.createElement(tag);
  if (classes) made.className = classes;
  if (text !== undefined) made.textContent = text;
  return made;
};

const withChildren = (parent, ...children) => {
  parent.append(...children);
  return parent;
};

// A subset of Markdown, built of elements. Everything else stays as it was written, also links:
// the page opens nothing that a model wrote.
const INLINE = /`([^`]+)`|\*\*([^*]+)\*\*|\*([^*\s][^*]*)\*/g;
const FENCE = /^ {0,3}(```+|~~~+)/;
const HEADING = /^#{1,6} +(.*)$/;
const ITEM = /^( *)(?:[-*+]|(\d{1,9})[.)]) +(.*)$/;
const QUOTE = /^> ?(.*)$/;
const RULE = /^ {0,3}(?:-{3,}|\*{3,}|_{3,}) *$/;
const TABLE_ROW = /^ *\|.*\| *$/;
const TABLE_LINE = /^ *\|(?: *:?-+:? *\|)+ *$/;

const inline = (into, text) => {
  let end = 0;
  for (const found of text.matchAll(INLINE)) {
    into.append(text.slice(end, found.index));
    const [whole, code, strong, emphasis] = found;
    if (code) into.append(element("code", "", code));
    else if (strong) into.append(element("strong", "", strong));
    else into.append(element("em", "", emphasis));
    end = found.index + whole.length;
  }
  into.append(text.slice(end));
  return into;
};

// Takes the lines from `at` on that belong together, and returns them.
const takeWhile = (lines, at, belongs) => {
  let end = at;
  while (end < lines.length && belongs(lines[end])) end += 1;
  return lines.slice(at, end);
};

const codeBlock = (lines, at) => {
  const fence = FENCE.exec(lines[at])[1];
  const inside = takeWhile(lines, at + 1, (line) => !line.trimStart().startsWith(fence));
  return [element("pre", "code", inside.join("\n")), inside.length + 2];
};

const list = (lines, at) => {
  const taken = takeWhile(lines, at, (line) => ITEM.test(line));
  const root = [];
  for (const line of taken) {
    const [, indent, number, text] = ITEM.exec(line);
    const item = { depth: indent.length, made: inline(element("li"), text), number };
    while (root.length && root.at(-1).depth > item.depth) root.pop();
    const last = root.at(-1);
    const isDeeper = last && item.depth > last.depth;
    if (!last || isDeeper) {
      item.list = element(number ? "ol" : "ul");
      if (number) item.list.start = Number(number);
      if (last) last.made.append(item.list);
      item.list.append(item.made);
      root.push(item);
    } else {
      last.list.append(item.made);
      last.made = item.made;
    }
  }
  return [root[0].list, taken.length];
};

const cells = (row, tag) =>
  row.trim().slice(1, -1).split("|").map((cell) => inline(element(tag), cell.trim()));

const table = (lines, at) => {
  const taken = takeWhile(lines, at, (line) => TABLE_ROW.test(line));
  const body = element("tbody");
  taken.slice(2).forEach((row) => body.append(withChildren(element("tr"), ...cells(row, "td"))));
  const head = withChildren(element("tr"), ...cells(taken[0], "th"));
  const made = withChildren(element("table"), withChildren(element("thead"), head), body);
  const box = withChildren(element("div", "table"), made);
  box.tabIndex = 0;
  return [box, taken.length];
};

const isTable = (lines, at) => TABLE_ROW.test(lines[at]) && TABLE_LINE.test(lines[at + 1] || "");

const paragraph = (lines, at) => {
  const isPlain = (line) =>
    line.trim() && ![FENCE, HEADING, ITEM, QUOTE, RULE, TABLE_ROW].some((form) => form.test(line));
  const taken = [lines[at], ...takeWhile(lines, at + 1, isPlain)];
  return [inline(element("p"), taken.join("\n")), taken.length];
};

// The next block: its element, and how many lines it takes.
const block = (lines, at) => {
  const line = lines[at];
  if (FENCE.test(line)) return codeBlock(lines, at);
  if (HEADING.test(line)) return [inline(element("h3", "heading"), HEADING.exec(line)[1]), 1];
  if (RULE.test(line)) return [element("hr"), 1];
  if (ITEM.test(line)) return list(lines, at);
  if (isTable(lines, at)) return table(lines, at);
  if (QUOTE.test(line)) {
    const taken = takeWhile(lines, at, (next) => QUOTE.test(next));
    const text = taken.map((next) => QUOTE.exec(next)[1]).join("\n");
    return [inline(element("blockquote"), text), taken.length];
  }
  return paragraph(lines, at);
};

const markdown = (text) => {
  const box = element("div", "text");
  const lines = text.split("\n");
  for (let at = 0; at < lines.length;) {
    if (!lines[at].trim()) {
      at += 1;
      continue;
    }
    const [made, taken] = block(lines, at);
    made.dir = "auto";
    box.append(made);
    at += taken;
  }
  return box;
};
