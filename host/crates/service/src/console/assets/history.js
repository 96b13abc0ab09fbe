// Turns what the service knows about a session into what its transcript shows: the records of one
// that is open, the export of one that is closed, and the events of one that runs.

import { cost, counted, pretty } from "./dom.js";

/** Sentences for notices that change nothing. */
const NOTICES = {
  "no-such-question": "The question was no longer open; the answer changed nothing.",
  "too-late-to-edit": "The call runs already, as it was approved.",
  "input-dropped": "Too many inputs are waiting. This one was dropped.",
  "answer-cut": "The answer was cut at the model's length limit.",
  "answer-withheld": "The provider withheld the answer.",
  "answer-empty": "The model gave no answer.",
  "no-turn": "There is nothing to undo or to try again.",
  "nothing-to-summarize": "There is nothing to summarize.",
  "summary-failed": "No summary was made.",
  "recall-failed": "Earlier turns are not recalled.",
  "result-not-kept": "A long result was not kept; the model sees a part of it.",
  "journal-failed": "This session is not being saved.",
};

/** Sentences for the ends of turns. An answered one needs none. */
const ENDS = {
  "budget-reached": "A limit of the session was reached.",
  cancelled: "Stopped.",
  "input-refused": "The input was refused.",
  "model-failed": "The model gave no answer.",
};

/** Shows the records of a session that is open. */
export function showRecords(transcript, records) {
  transcript.clear();
  records.forEach((record) => RECORDS[record.kind]?.(transcript, record));
}

const RECORDS = {
  input: (transcript, { message }) => transcript.input(message.text, message.origin),
  answer: (transcript, { message }) => {
    transcript.answer(message.text);
    message.calls.forEach(({ id, name, arguments: args }) => transcript.call(id, name.replace("__", "."), args));
  },
  result: (transcript, { result, tool, outcome }) =>
    transcript.result(result.call_id, tool, outcome, { text: pretty(result.content) }),
  note: (transcript, { text }) => transcript.answer(text),
  "turn-ended": (transcript, { end }) => ENDS[end] && transcript.note(ENDS[end], end !== "cancelled"),
  undone: (transcript) => transcript.undo(),
  summary: (transcript) => transcript.note("The model continues from a summary of what came before."),
  noticed: (transcript, { notice }) => transcript.note(`${notice.plugin}: ${notice.text}`),
};

/** Shows the export of a session that is closed. */
export function showExport(transcript, { turns = [], notices = [] }) {
  transcript.clear();
  for (const { input, steps, end } of turns) {
    transcript.input(input.text, input.origin);
    steps.forEach((step) => STEPS[step.kind]?.(transcript, step));
    if (ENDS[end]) transcript.note(ENDS[end], end !== "cancelled");
  }
  notices.forEach(({ plugin, text }) => transcript.note(`${plugin}: ${text}`));
}

const STEPS = {
  said: (transcript, { text }) => transcript.answer(text),
  noted: (transcript, { text }) => transcript.answer(text),
  called: (transcript, { id, tool, arguments: args, edited, outcome, result, kept }) => {
    transcript.call(id, tool, edited ?? args);
    transcript.result(id, tool, outcome ?? "cancelled", { text: pretty(kept?.text ?? result ?? "") });
  },
};

/** Shows an event. Events that are not known here, or that show nothing, are passed over. */
export function showEvent(transcript, event) {
  EVENTS[event.type]?.(transcript, event);
}

const EVENTS = {
  "turn-started": (transcript, { text, origin }) => transcript.input(text, origin),
  "text-delta": (transcript, { text }) => transcript.delta(text),
  message: (transcript, { text }) => transcript.answer(text),
  "call-requested": (transcript, { call_id: id, tool, arguments: args }) => transcript.call(id, tool, args),
  "arguments-edited": (transcript, { call_id: id, arguments: args }) => transcript.edited(id, args),
  progress: (transcript, event) => transcript.progress(event.call_id, event),
  "call-finished": (transcript, event) => transcript.result(event.call_id, event.tool, event.outcome, resultOf(event)),
  "turn-ended": (transcript, event) => {
    transcript.stop();
    if (event.end === "spoken") transcript.answer(event.text);
    if (ENDS[event.end]) transcript.note(endSentence(event), event.end !== "cancelled");
    transcript.note(usageSentence(event.usage));
  },
  undone: (transcript) => transcript.undo(),
  "model-changed": (transcript, { name }) => transcript.note(`${name} answers from here on.`),
  summarized: (transcript) => transcript.note("The model continues from a summary of what came before."),
  notified: (transcript, { plugin, text }) => transcript.note(`${plugin}: ${text}`),
  notice: (transcript, { kind, reason }) => transcript.note(NOTICES[kind] ?? `The provider ended the answer: ${reason ?? kind}`),
  retry: (transcript, { reason, attempt }) => transcript.note(`${reason}. Attempt ${attempt} follows.`),
};

function endSentence(event) {
  const why = event.message ?? event.reason;
  return why ? `${ENDS[event.end]} ${why}` : ENDS[event.end];
}

function usageSentence({ tokens, cost_micro_usd: micro, calls }) {
  const used = tokens.input_tokens + tokens.output_tokens;
  const parts = [counted(used, "token"), calls ? counted(calls, "call") : "", micro === undefined ? "" : cost(micro)];
  return parts.filter(Boolean).join(" · ");
}

/** What a call ended with, for people. */
export function resultOf({ outcome, data, content = [], message, subject, reason, limit_ms: limitMs, effects, elapsed_ms }) {
  const rest = { effects, elapsed_ms };
  if (outcome === "completed") {
    const parts = content.map(contentText).filter(Boolean);
    return { text: [data === null && parts.length ? "" : pretty(data), ...parts].filter(Boolean).join("\n\n"), ...rest };
  }
  if (outcome === "denied") return { text: denialText(subject, reason), ...rest };
  if (outcome === "timed-out") return { text: `Stopped after ${limitMs} ms, its time limit.`, ...rest };
  return { text: message ?? "Cancelled.", ...rest };
}

/** A part of a result. Pictures and sounds are named and not loaded. */
function contentText({ type, text, media_type: mediaType, data, uri }) {
  if (type === "text") return text;
  if (data) return `[${type}, ${mediaType}, ${counted(data.length, "byte")}]`;
  return uri ? `[${type} ${uri}]` : `[${type}]`;
}

/** What was refused and why. A reason is a text, or an object with one key that names its kind. */
function denialText(subject, reason) {
  return [`Refused: ${sentenceOf(subject)}`, `Reason: ${sentenceOf(reason)}`].join("\n");
}

function sentenceOf(value) {
  if (typeof value !== "object" || value === null) return String(value ?? "unknown");
  const [[kind, about]] = Object.entries(value);
  if (about && typeof about === "object" && typeof about.text === "string") return about.text;
  const words = kind.replaceAll("-", " ");
  const details = Object.entries(about ?? {}).filter(([, part]) => part !== null && typeof part !== "object");
  return details.length ? `${words} (${details.map(([name, part]) => `${name} ${part}`).join(", ")})` : words;
}
