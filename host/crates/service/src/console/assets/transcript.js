// The conversation of a session on the page: messages, calls and notes in their order.

import { block, count, element, pretty, unfolding, visible } from "./dom.js";
import { MARKDOWN_CHARS_MAX, markdown } from "./markdown.js";

/** How often an answer that arrives is shown anew, in milliseconds. */
const DRAFT_EVERY_MS = 80;

/** From this length on, only the end of an answer that arrives is shown, in characters. */
const DRAFT_CHARS_MAX = 16 * 1024;

/** Words for how a call ended. */
const OUTCOMES = {
  completed: "completed", failed: "failed", denied: "denied", "invalid-arguments": "invalid arguments",
  "timed-out": "timed out", cancelled: "cancelled",
};

/** Shows a conversation. */
export class Transcript {
  constructor(box) {
    this.box = box;
    this.calls = new Map();
    this.turns = [];
    this.draft = null;
    this.last = null;
  }

  /** Removes everything. */
  clear() {
    this.box.replaceChildren();
    this.calls.clear();
    this.turns = [];
    this.#endDraft();
  }

  /** Begins a turn with the user's input. */
  input(text, origin) {
    if (this.#isLast("user", text)) return;
    const sender = origin ? `From ${visible(originName(origin))}` : "You";
    this.turns.push(this.box.childElementCount);
    this.#add(message("user", sender, element("div", { class: "plain", dir: "auto" }, block(text, { class: "typed", tabindex: null }))));
    this.last = { kind: "user", text, box: this.box.lastElementChild };
  }

  /** Whether the last part is this one: an event can tell again what a snapshot has told. */
  #isLast(kind, text) {
    const { last } = this;
    return last?.kind === kind && last.text === text && last.box === this.box.lastElementChild;
  }

  /** Shows a whole answer of the model. */
  answer(text) {
    this.#endDraft();
    if (!text || this.#isLast("assistant", text)) return;
    this.#add(message("assistant", "Assistant", answerBody(text)));
    this.last = { kind: "assistant", text, box: this.box.lastElementChild };
  }

  /** Adds to the answer that arrives. */
  delta(text) {
    if (!this.draft) {
      const body = element("div", { class: "prose" });
      this.draft = { text: "", body, box: message("assistant draft", "Assistant", body), timer: 0 };
      this.#add(this.draft.box);
    }
    this.draft.text += text;
    this.draft.timer ||= setTimeout(() => this.#showDraft(), DRAFT_EVERY_MS);
  }

  #showDraft() {
    if (!this.draft) return;
    this.draft.timer = 0;
    const { text } = this.draft;
    const isLong = text.length > DRAFT_CHARS_MAX;
    const shown = isLong ? element("pre", { class: "typed" }, `…${visible(text.slice(-DRAFT_CHARS_MAX))}`) : markdown(text);
    this.#keepEnd(() => this.draft.body.replaceChildren(...(isLong ? [shown] : shown.childNodes)));
  }

  #endDraft() {
    clearTimeout(this.draft?.timer);
    this.draft?.box.remove();
    this.draft = null;
  }

  /** Shows a call that the model requests. */
  call(id, tool, args) {
    if (this.calls.has(id)) return;
    const outcome = element("span", { class: "outcome" }, "running…");
    const progress = element("span", { class: "faint" });
    const summary = [element("code", { class: "tool" }, visible(tool)), outcome, progress];
    const parts = { arguments: args, result: undefined };
    const box = unfolding(summary, () => callParts(parts), { class: "call", "data-outcome": "running" });
    this.calls.set(id, { box, outcome, progress, parts });
    this.#add(box);
  }

  /** Replaces the arguments of a call. */
  edited(id, args) {
    this.#changeCall(id, (call) => (call.parts.arguments = args));
  }

  /** Shows how far a call has come. */
  progress(id, { fraction, message: text }) {
    const call = this.calls.get(id);
    const percent = typeof fraction === "number" ? `${Math.round(fraction * 100)} % ` : "";
    if (call) call.progress.textContent = `${percent}${visible(text ?? "").slice(0, 200)}`;
  }

  /** Shows how a call ended. */
  result(id, tool, outcome, result) {
    if (!this.calls.has(id)) this.call(id, tool, "");
    this.#changeCall(id, (call) => {
      call.box.dataset.outcome = outcome;
      call.outcome.textContent = OUTCOMES[outcome] ?? visible(outcome);
      call.progress.textContent = "";
      call.parts.result = result;
    });
  }

  /** A part that is open shows what has changed. */
  #changeCall(id, change) {
    const call = this.calls.get(id);
    if (!call) return;
    change(call);
    const [summary, ...inside] = call.box.children;
    inside.forEach((one) => one.remove());
    if (summary && call.box.open) call.box.append(...callParts(call.parts));
  }

  /** Shows a remark that is no part of the conversation. */
  note(text, isTrouble = false) {
    this.#add(element("p", { class: isTrouble ? "note trouble" : "note" }, visible(text)));
  }

  /** Removes the last turn. */
  undo() {
    this.#endDraft();
    const start = this.turns.pop();
    if (start !== undefined) [...this.box.children].slice(start).forEach((one) => one.remove());
  }

  /** Marks the calls that are still shown as running. */
  stop() {
    this.#endDraft();
    for (const { box, outcome } of this.calls.values()) {
      if (box.dataset.outcome === "running") [box.dataset.outcome, outcome.textContent] = ["cancelled", "ended"];
    }
  }

  #add(made) {
    this.#keepEnd(() => {
      const isBeforeDraft = this.draft && made !== this.draft.box && this.draft.box.isConnected;
      if (isBeforeDraft) this.draft.box.before(made);
      else this.box.append(made);
    });
  }

  /** Whoever reads the end keeps seeing it; whoever reads further up stays there. */
  #keepEnd(change) {
    const view = this.box.closest(".scroller") ?? this.box;
    const isAtEnd = view.scrollHeight - view.scrollTop - view.clientHeight < 80;
    change();
    if (isAtEnd) view.scrollTop = view.scrollHeight;
  }
}

const originName = (origin) => origin.plugin ?? origin.name ?? JSON.stringify(origin);

const message = (kind, sender, body) =>
  element("article", { class: `message ${kind}` }, element("h2", { class: "sender" }, sender), body);

function answerBody(text) {
  return text.length > MARKDOWN_CHARS_MAX ? block(text, { class: "typed" }) : markdown(text);
}

function callParts({ arguments: args, result }) {
  const part = (title, value) => [element("h3", {}, title), block(value)];
  const parts = part("Arguments", pretty(args || "{}"));
  return result === undefined ? parts : [...parts, ...resultParts(result, part)];
}

function resultParts(result, part) {
  const { data, text, effects = [], elapsed_ms: elapsedMs } = result;
  const parts = part("Result", text ?? pretty(data));
  const done = effects.filter((effect) => effect.kind !== "logged");
  if (done.length) parts.push(...part("Effects", done.map((effect) => pretty(effect)).join("\n")));
  if (elapsedMs !== undefined) parts.push(element("p", { class: "faint" }, `${count(elapsedMs)} ms`));
  return parts;
}
