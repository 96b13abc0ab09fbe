// The questions that wait, for the whole console: read again and again, and passed to those who show
// them.

import { get } from "./api.js";
import { announce, counted } from "./dom.js";

/** How often they are read while the console is in sight, and while it is not, in milliseconds. */
const [SEEN_EVERY_MS, HIDDEN_EVERY_MS] = [3000, 15000];

const watchers = new Set();
let cards = [];
let timer = 0;
let isRunning = false;

/** Returns the questions as they were last read. */
export const waitingCards = () => cards;

/** Passes the questions on, now and whenever they are other ones, until the signal ends it. */
export function onApprovals(handler, signal) {
  watchers.add(handler);
  signal.addEventListener("abort", () => watchers.delete(handler), { once: true });
  handler(cards);
}

/** Begins to read the questions, until the signal ends it. */
export function watchApprovals(user, handler, signal) {
  [cards, isRunning] = [[], true];
  onApprovals(handler, signal);
  const wake = () => document.hidden || refreshApprovals();
  document.addEventListener("visibilitychange", wake, { signal });
  signal.addEventListener("abort", stop, { once: true });
  refreshApprovals();
}

function stop() {
  clearTimeout(timer);
  [cards, isRunning] = [[], false];
}

/** Reads the questions now. */
export async function refreshApprovals() {
  clearTimeout(timer);
  try {
    const { approvals } = await get("/v1/approvals");
    if (isRunning) take(approvals);
  } catch {
    // The next reading may work; a log-in that has ended stops all of them.
  }
  clearTimeout(timer);
  if (isRunning) timer = setTimeout(refreshApprovals, document.hidden ? HIDDEN_EVERY_MS : SEEN_EVERY_MS);
}

function take(approvals) {
  const ids = (list) => list.map((card) => card.id).join();
  if (ids(approvals) === ids(cards)) return;
  const known = new Set(cards.map((card) => card.id));
  const added = approvals.filter((card) => !known.has(card.id)).length;
  cards = approvals;
  if (added) announce(`${counted(added, "question")} waiting for an answer`);
  watchers.forEach((watcher) => watcher(cards));
}
