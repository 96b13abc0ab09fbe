// The page of questions that wait for an answer.

import { approvalCard } from "./approval_card.js";
import { onApprovals, refreshApprovals } from "./approval_list.js";
import { element } from "./dom.js";

/** Shows the page. */
export function showApprovals({ body, user, signal }) {
  const list = element("div", { class: "cards" });
  body.append(element("p", { class: "faint" }, about(user)), list);
  onApprovals((cards) => showCards(list, cards, user), signal);
  refreshApprovals();
}

function about({ role }) {
  if (role === "user") return "Your calls that wait. You can deny them; an approver allows them.";
  return "The calls of all users that wait. A question that nobody answers is denied after 10 minutes.";
}

/**
 * Shows the cards. Those that are there stay as they are, with what is typed into them. When the one
 * with the focus goes, the next one gets it.
 */
export function showCards(list, cards, user, nothing = "No question is waiting.") {
  const ids = new Set(cards.map((card) => card.id));
  const gone = [...list.children].filter((child) => !ids.has(child.dataset.id));
  const hadFocus = gone.some((child) => child.contains(document.activeElement));
  gone.forEach((child) => child.remove());
  const shown = new Set([...list.children].map((child) => child.dataset.id));
  list.append(...cards.filter((card) => !shown.has(card.id)).map((card) => approvalCard(card, user)));
  if (!cards.length && nothing) list.append(element("p", { class: "nothing" }, nothing));
  if (hadFocus) (list.querySelector("button:enabled") ?? document.getElementById("title")).focus();
}
