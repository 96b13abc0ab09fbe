// The page of conversations: the list of sessions, and the one that is shown.

import { get, path, post } from "./api.js";
import { button, counted, element, fill, time, visible } from "./dom.js";
import { showSession, titleOf } from "./session_view.js";

/** How many sessions a page of the list has. */
const PAGE_SIZE = 100;

/** Shows the page. */
export function showChat({ body, user, rest, signal, fail }) {
  const [openId] = rest;
  body.classList.toggle("has-session", Boolean(openId));
  const list = element("ul", { class: "sessions" });
  const search = element("input", { type: "search", placeholder: "Search titles", "aria-label": "Search titles of sessions" });
  const more = element("div");
  const sessions = { all: [], list, search, openId, more };
  search.addEventListener("input", () => showList(sessions));
  const side = element(
    "section", { class: "side", "aria-label": "Sessions" },
    button("New session", (event) => begin(event.target, fail), { class: "main" }),
    search, list, more,
  );
  const pane = element("section", { class: "pane", "aria-label": "Session" });
  body.append(element("div", { class: "chat" }, side, pane));
  const reload = () => loadList(sessions, signal).catch(fail);
  reload();
  if (openId) showSession({ pane, id: openId, user, signal, changed: reload, fail });
  else pane.append(element("p", { class: "nothing" }, "Begin a new session, or choose one."));
}

async function begin(pressed, fail) {
  pressed.disabled = true;
  try {
    const { id } = await post("/v1/sessions", {});
    location.hash = `#/chat/${encodeURIComponent(id)}`;
  } catch (error) {
    fail(error);
  } finally {
    pressed.disabled = false;
  }
}

async function loadList(sessions, signal, beforeMs) {
  const before = beforeMs ? `&before_ms=${beforeMs}` : "";
  const page = await get(`/v1/sessions?limit=${PAGE_SIZE}${before}`, { signal });
  sessions.all = beforeMs ? [...sessions.all, ...page.sessions] : page.sessions;
  const next = page.next_before_ms;
  fill(sessions.more, next && button("Show older sessions", () => loadList(sessions, signal, next), { class: "quiet" }));
  showList(sessions);
}

function showList({ all, list, search, openId }) {
  const words = search.value.trim().toLowerCase();
  const matching = all.filter((session) => titleOf(session).toLowerCase().includes(words));
  const nothing = element("li", { class: "nothing" }, words ? "No title has this text." : "No session yet.");
  fill(list, matching.length ? matching.map((session) => row(session, openId)) : nothing);
}

function row(session, openId) {
  const { id, is_open: isOpen, stored } = session;
  const about = stored
    ? [time(stored.updated_ms), ` · ${counted(stored.turns, "turn")}`, isOpen && " · open"]
    : ["No turn yet"];
  const link = element(
    "a", { href: `#${path("chat", id)}`, "aria-current": id === openId && "page" },
    element("span", { class: "title", dir: "auto" }, visible(titleOf(session))),
    element("span", { class: "faint" }, about),
  );
  return element("li", {}, link);
}
