// One question as a card: everything that a yes covers, and the answers that its reader may give.

import { path, post } from "./api.js";
import { refreshApprovals } from "./approval_list.js";
import { questionForm } from "./approval_form.js";
import { block, button, element, field, pretty, time, unfolding, visible } from "./dom.js";

/** The roles, the least first. */
const ROLES = ["user", "approver", "operator"];

/** The answers: their words on buttons, and the roles that they need. */
const ANSWERS = {
  once: { text: "Allow once", role: "approver" },
  session: { text: "Allow for this session", role: "approver" },
  always: { text: "Always allow", role: "operator" },
  no: { text: "Deny", role: "user" },
};

/** What the service writes where the answer has to name a folder. */
const FOLDER_PLACEHOLDER = 'path = "FOLDER"';

/** Makes the card of a question. */
export function approvalCard(card, user) {
  const { question } = card;
  const trouble = element("p", { class: "trouble", role: "alert", hidden: true });
  const folder = needsFolder(question) && element("input", { type: "text", autocomplete: "off", spellcheck: "false" });
  const reason = element("input", { type: "text", autocomplete: "off", maxlength: "1000" });
  const form = question.fields?.length ? questionForm(question.fields) : null;
  const inputs = { folder, form, reason, trouble };
  const title = element("h2", {}, titleOf(question));
  return element(
    "article", { class: "approval", "data-id": card.id },
    title,
    element("p", { class: "faint" }, `${visible(card.user)} · asked `, time(card.asked_ms), " · expires ", time(card.expires_ms)),
    exactText(card),
    unfolding("Arguments as JSON", () => block(pretty(question.arguments))),
    changes(question),
    folder && field("Folder to grant", folder, "The folder on the machine of the service."),
    form?.box,
    field("Reason for a denial (optional)", reason, "The model reads it."),
    element("div", { class: "answers" }, card.answers.map((answer) => answerButton(card, answer, user, inputs))),
    hint(card, user),
    trouble,
  );
}

function titleOf({ subject, tool, what }) {
  const code = element("code", {}, visible(tool));
  if (subject === "access") return ["Access of ", code, ": ", visible(what)];
  if (subject === "grant") return ["Missing grant of ", code, ": ", visible(what)];
  if (subject === "form") return ["Question of the MCP server of ", code];
  return ["Call of ", code];
}

/** The text that the answer is about, as the service wrote it. */
function exactText({ text }) {
  if (!text) {
    return element("p", { class: "trouble" }, "This question is too long to be shown whole. Deny it.");
  }
  const lines = text.split("\n").map((line) => element("span", { class: lineClass(line) }, `${visible(line)}\n`));
  return element("pre", { class: "exact", tabindex: "0", "aria-label": "The exact question" }, lines);
}

/** Foreign text is escaped in each line, so it cannot begin one. */
function lineClass(line) {
  if (line.startsWith("| +")) return "added";
  if (line.startsWith("| -")) return "removed";
  return line.startsWith("argument: ") ? "argument" : "";
}

/** The lines that other choices of a grant would change. The first one is in the text. */
function changes({ choices = [] }) {
  const others = choices.slice(1).filter((choice) => choice.change);
  if (!others.length) return null;
  const make = () => others.map(({ change }) => element("pre", { class: "exact", tabindex: "0" }, diffLines(change)));
  return unfolding("Wider grants that the command line offers", make);
}

const diffLines = (text) => text.split("\n").map((line) => element("span", { class: diffClass(line) }, `${visible(line)}\n`));

function diffClass(line) {
  if (line.startsWith("+")) return "added";
  return line.startsWith("-") ? "removed" : "";
}

const needsFolder = ({ choices = [] }) =>
  (choices[0]?.grants ?? []).some(({ key, entry }) => key === "fs" && entry.includes(FOLDER_PLACEHOLDER));

/** What an MCP server asks of a user is not an approval, so that user answers in any role. */
const lacksRole = ({ question, user: owner }, answer, user) =>
  !(question.subject === "form" && owner === user.name) &&
  ROLES.indexOf(user.role) < ROLES.indexOf(ANSWERS[answer].role);

const isDisabled = (card, answer, user) => lacksRole(card, answer, user) || (answer !== "no" && !card.text);

function answerButton(card, answer, user, inputs) {
  const disabled = isDisabled(card, answer, user);
  const words = answer === "once" && card.question.subject === "form" ? "Send this answer" : ANSWERS[answer].text;
  const made = button(words, () => give(card, answer, inputs, made), {
    class: answer === "no" ? "deny" : "approve", disabled, "data-answer": answer,
  });
  return made;
}

/** Says which roles the answers need that this user may not give. */
function hint(card, user) {
  const missing = card.answers.filter((answer) => lacksRole(card, answer, user));
  if (!missing.length) return null;
  const sentences = [...new Set(missing.map((answer) => ANSWERS[answer].role))].map((role) => {
    const names = missing.filter((answer) => ANSWERS[answer].role === role).map((answer) => `“${ANSWERS[answer].text}”`);
    return `${names.join(" and ")} ${names.length > 1 ? "need" : "needs"} the role ${role}.`;
  });
  return element("p", { class: "faint" }, `${sentences.join(" ")} Yours is ${user.role}.`);
}

async function give(card, answer, { folder, form, reason, trouble }, pressed) {
  const buttons = [...pressed.parentElement.children];
  const wasDisabled = buttons.map((one) => one.disabled);
  buttons.forEach((one) => (one.disabled = true));
  const body = answer === "no" ? { answer } : { answer, hash: card.hash };
  if (answer === "no" && reason.value.trim()) body.reason = reason.value.trim();
  if (answer !== "no" && folder) body.folder = folder.value.trim();
  try {
    if (answer !== "no" && card.question.subject === "form") body.values = form ? form.read() : {};
    await post(path("v1", "approvals", card.id, "answer"), body);
    await refreshApprovals();
  } catch (error) {
    trouble.textContent = error.message;
    trouble.hidden = false;
    buttons.forEach((one, index) => (one.disabled = wasDisabled[index]));
  }
}
