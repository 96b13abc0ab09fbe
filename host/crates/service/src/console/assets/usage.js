// The page of usage: what the stored sessions have used, as numbers and as bars.

import { get, query } from "./api.js";
import { cost, count, drawn, element, field, fill, time, visible } from "./dom.js";

/** Most sessions that the bars are made of: five pages of the list. */
const [PAGE_SIZE, PAGES_MAX] = [200, 5];

/** Days that the bars show. */
const DAYS = 14;

/** Most models that the bars show. */
const MODELS_MAX = 10;

/** The height of one bar with its gap, and the room for the number behind it. */
const [ROW, NUMBER_ROOM] = [26, 100];

/** The width of a drawing, and of the names before the bars: texts keep their size on small screens. */
const widths = () => (innerWidth < 640 ? [360, 120] : [600, 180]);

const DAY_MS = 24 * 60 * 60 * 1000;

/** Shows the page. */
export async function showUsage({ body, user, signal, fail }) {
  const totals = element("div", { class: "totals" });
  const charts = element("div", { class: "charts" });
  if (user.role === "operator") body.append(userForm(totals, signal));
  body.append(totals, charts);
  try {
    await showTotals(totals, "", signal);
    const { sessions, isWhole } = await readSessions(signal);
    fill(charts, dayChart(sessions), modelChart(sessions), !isWhole && element("p", { class: "faint" }, `The bars are of your newest ${count(sessions.length)} sessions.`));
  } catch (error) {
    fail(error);
  }
}

function userForm(totals, signal) {
  const input = element("input", { type: "text", autocomplete: "off", spellcheck: "false" });
  const output = element("p", { class: "trouble", role: "alert", hidden: true });
  const show = async () => {
    output.hidden = true;
    try {
      await showTotals(totals, input.value.trim(), signal);
    } catch (error) {
      [output.textContent, output.hidden] = [error.message, false];
    }
  };
  const form = element("form", { class: "filters" }, field("User (yours if empty)", input), element("button", { type: "submit" }, "Show"), output);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    show();
  });
  return form;
}

async function showTotals(box, name, signal) {
  const used = await get(`/v1/usage${query({ user: name })}`, { signal });
  const rows = [["User", visible(used.user)], ["Sessions", count(used.sessions)], ["Turns", count(used.turns)], ["Tokens", count(used.tokens)], ["Cost", cost(used.cost_micro_usd)]];
  fill(box, element("dl", {}, rows.map(([term, value]) => element("div", {}, element("dt", {}, term), element("dd", {}, value)))), budgetTable(used.budgets));
}

/** What the user's groups allow in a day or a month, and how much of it is used. */
function budgetTable(budgets) {
  if (!budgets.length) return null;
  const titles = ["Group", "Budget", "Used", "Limit", "Begins anew"];
  const head = titles.map((title) => element("th", { scope: "col" }, title));
  const cell = (content, column) => element(column ? "td" : "th", { scope: !column && "row", "data-label": titles[column] }, content);
  const rows = budgets.map((budget) => element("tr", {}, budgetCells(budget).map(cell)));
  return element("table", { class: "stacked" }, element("caption", { class: "unseen" }, "Budgets"), element("thead", {}, element("tr", {}, head)), element("tbody", {}, rows));
}

function budgetCells({ group, measure, period, used, limit, renews_ms: renews }) {
  const shown = measure === "micro-usd" ? cost : count;
  const what = measure === "micro-usd" ? "cost" : measure;
  return [visible(group), `${what} per ${period}`, shown(used), shown(limit), time(renews)];
}

async function readSessions(signal) {
  let [sessions, before] = [[], undefined];
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const read = await get(`/v1/sessions${query({ limit: PAGE_SIZE, before_ms: before })}`, { signal });
    sessions = [...sessions, ...read.sessions.map(({ stored }) => stored).filter(Boolean)];
    before = read.next_before_ms;
    if (!before) return { sessions, isWhole: true };
  }
  return { sessions, isWhole: false };
}

/** Your tokens by the day on which a session was last used. */
function dayChart(sessions) {
  const today = new Date().setHours(0, 0, 0, 0);
  const days = Array.from({ length: DAYS }, (_, index) => new Date(today - (DAYS - 1 - index) * DAY_MS));
  const key = (at) => new Date(at).toLocaleDateString("en-GB", { day: "numeric", month: "short" });
  const sums = new Map(days.map((day) => [key(day), 0]));
  for (const { updated_ms: at, tokens } of sessions) {
    if (at >= days[0].getTime() && sums.has(key(at))) sums.set(key(at), sums.get(key(at)) + tokens);
  }
  return chart(`Your tokens of the last ${DAYS} days`, "By the day on which a session was last used.", [...sums]);
}

function modelChart(sessions) {
  const sums = new Map();
  for (const { model, tokens } of sessions) sums.set(model, (sums.get(model) ?? 0) + tokens);
  const rows = [...sums].sort(([, one], [, other]) => other - one).slice(0, MODELS_MAX);
  return chart("Your tokens by model", "By the model that a session used last.", rows);
}

/** Bars for those who see them, and a table for those who do not. */
function chart(title, about, rows) {
  if (!rows.some(([, value]) => value > 0)) return null;
  const most = Math.max(...rows.map(([, value]) => value));
  const [width, left] = widths();
  const place = { left, room: width - left - NUMBER_ROOM, most };
  const bars = rows.map(([name, value], index) => bar(visible(name), value, index, place));
  const drawing = drawn("svg", { viewBox: `0 0 ${width} ${rows.length * ROW}`, class: "bars", "aria-hidden": "true" }, ...bars);
  const body = rows.map(([name, value]) => element("tr", {}, element("th", { scope: "row" }, visible(name)), element("td", {}, count(value))));
  return element("figure", {}, element("figcaption", {}, element("h2", {}, title), element("p", { class: "faint" }, about)), drawing,
    element("table", { class: "unseen" }, element("caption", {}, title), element("tbody", {}, body)));
}

function bar(name, value, index, { left, room, most }) {
  const [y, nameChars] = [index * ROW, Math.floor(left / 9)];
  const width = Math.max(value > 0 ? 2 : 0, (value / most) * room);
  const text = (attributes, words) => drawn("text", { y: y + 16, ...attributes }, words);
  return drawn("g", {},
    text({ x: left - 10, "text-anchor": "end" }, name.length > nameChars ? `${name.slice(0, nameChars - 1)}…` : name),
    ...(width ? [drawn("rect", { x: left, y: y + 3, width: width.toFixed(1), height: ROW - 8, rx: 3 })] : []),
    text({ x: left + width + 8 }, count(value)));
}
