// The page of the audit: what was decided and done, the newest first.

import { get, query } from "./api.js";
import { block, button, count, counted, element, field, fill, menu, time, unfolding, visible } from "./dom.js";

/** Records in one page. */
const PAGE_SIZE = 50;

/** The choices of the menus; an empty value means all. */
const KINDS = ["decision", "call", "policy", "trouble", "checkpoint"];
const DECISIONS = ["allow", "ask", "deny"];
const OUTCOMES = ["completed", "failed", "denied", "invalid-arguments", "timed-out", "cancelled"];

/** Fields of a record that its head shows already, or that a reader has no use for. */
const SHOWN = ["v", "at_ms", "kind", "plugin", "tool", "decision", "outcome", "message", "effects"];

/** Shows the page. */
export function showAudit({ body, user, signal, fail }) {
  const inputs = makeInputs(user);
  const view = { list: element("ol", { class: "timeline" }), more: element("div"), oldest: null };
  const load = (isFirst) => loadPage(view, inputs, isFirst, signal).catch(fail);
  const form = element("form", { class: "filters" }, Object.values(inputs).map(({ box }) => box), element("button", { type: "submit", class: "main" }, "Filter"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    load(true);
  });
  view.load = load;
  body.append(unfolding("Filters", () => form, { class: "filter-box" }), view.list, view.more);
  load(true);
}

function makeInputs({ role }) {
  const text = (label) => input(label, element("input", { type: "text", autocomplete: "off", spellcheck: "false" }));
  const choice = (label, words) => input(label, menu([["", "all"], ...words.map((word) => [word, word.replaceAll("-", " ")])]));
  const at = (label) => input(label, element("input", { type: "datetime-local" }));
  const denied = element("input", { type: "checkbox", id: "only-denied" });
  return {
    plugin: text("Plugin"), tool: text("Tool"), session: text("Session"),
    ...(role === "operator" ? { user: text("User") } : {}),
    kind: choice("Kind", KINDS), decision: choice("Decision", DECISIONS), outcome: choice("Outcome", OUTCOMES),
    since_ms: at("From"), until_ms: at("Until"),
    denied: { box: element("div", { class: "field check" }, denied, element("label", { for: "only-denied" }, "Only what was denied")), read: () => denied.checked },
  };
}

function input(label, made) {
  const read = () => (made.type === "datetime-local" ? made.value && new Date(made.value).getTime() : made.value.trim());
  return { box: field(label, made), read };
}

/** Reads a page of records: the first one, or the one that follows. */
async function loadPage(view, inputs, isFirst, signal) {
  const fields = Object.fromEntries(Object.entries(inputs).map(([name, { read }]) => [name, read()]));
  const { oldest } = view;
  // Records of one millisecond can be on both pages, so the millisecond is read again.
  if (!isFirst && oldest) fields.until_ms = oldest.at_ms + 1;
  const asked = query({ ...fields, limit: PAGE_SIZE, newest_first: true });
  const page = await get(`/v1/audit${asked}`, { signal });
  const records = page.records.filter(({ seq }) => isFirst || seq < oldest.seq);
  if (isFirst) fill(view.list);
  view.list.append(...records.map(item));
  const last = records.findLast(({ record }) => record);
  view.oldest = last ? { seq: records.at(-1).seq, at_ms: last.record.at_ms } : null;
  const hasMore = page.records.length === PAGE_SIZE && view.oldest;
  fill(view.more, hasMore && button("Show older records", () => view.load(false), { class: "quiet" }));
  if (isFirst && !records.length) view.list.append(element("li", { class: "nothing" }, "No record fits."));
}

function item({ seq, hash, record }) {
  if (!record) return element("li", { class: "record trouble" }, `Line ${count(seq)} of the log is damaged.`);
  const { plugin, tool, kind, decision, outcome, message, effects = [] } = record;
  const about = [plugin, tool].filter(Boolean).join(".");
  const result = outcome ?? decision ?? "";
  return element(
    "li", { class: "record", "data-result": result },
    element("p", { class: "line" }, time(record.at_ms, { dateStyle: "medium", timeStyle: "medium" }),
      element("span", { class: "kind" }, kind), about && element("code", { class: "tool" }, visible(about)),
      result && element("span", { class: "outcome" }, result.replaceAll("-", " "))),
    message && element("p", { dir: "auto" }, visible(message)),
    unfolding(effects.length ? counted(effects.length, "effect") : "details", () => details(seq, hash, record, effects), { class: "small" }),
  );
}

function details(seq, hash, record, effects) {
  const rest = Object.entries({ number: seq, ...record, hash }).filter(([name]) => !SHOWN.includes(name));
  const rows = rest.map(([name, value]) => [element("dt", {}, name.replaceAll("_", " ")), element("dd", {}, textOf(value))]);
  const shown = effects.length > 0 && block(effects.map((effect) => JSON.stringify(effect, null, 2)).join("\n"));
  return [shown, element("dl", {}, rows)].filter(Boolean);
}

const textOf = (value) => visible(typeof value === "object" ? JSON.stringify(value) : String(value));
