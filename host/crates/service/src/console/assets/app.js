// The console: logs in, shows one page at a time, and keeps the count of approvals in sight.

import { get, onLoggedOut, post } from "./api.js";
import { watchApprovals } from "./approval_list.js";
import { showApprovals } from "./approvals.js";
import { showAudit } from "./audit.js";
import { showChat } from "./chat.js";
import { showConnections } from "./connections.js";
import { counted, element, fill } from "./dom.js";
import { showGrants } from "./grants.js";
import { showLogin } from "./login.js";
import { showPlugins } from "./plugins.js";
import { showUsage } from "./usage.js";

/** The pages: path, title, the function that shows it, and the role that it needs. */
const PAGES = [
  { path: "chat", title: "Chat", show: showChat },
  { path: "approvals", title: "Approvals", show: showApprovals },
  { path: "plugins", title: "Plugins", show: showPlugins },
  { path: "connections", title: "Connections", show: showConnections },
  { path: "grants", title: "Grants", show: showGrants, role: "operator" },
  { path: "audit", title: "Audit", show: showAudit },
  { path: "usage", title: "Usage", show: showUsage },
];

const main = document.getElementById("main");
const head = document.getElementById("head");
const trouble = document.getElementById("trouble");

/** The user who is logged in, and what ends with the log-in and with the page. */
const state = { user: null, login: null, page: null };

/** Shows a sentence above the page, or nothing. */
function showTrouble(sentence) {
  trouble.textContent = sentence ?? "";
  trouble.hidden = !sentence;
}

function enter(user) {
  state.user = user;
  state.login = new AbortController();
  document.getElementById("who").textContent = `${user.name} · ${user.role}`;
  const pages = PAGES.filter(({ role }) => !role || role === user.role);
  fill(document.getElementById("pages"), pages.map(pageLink));
  head.hidden = false;
  showTrouble();
  watchApprovals(user, showWaiting, state.login.signal);
  showPage();
}

function leave(reason) {
  state.login?.abort();
  state.page?.abort();
  Object.assign(state, { user: null, login: null, page: null });
  head.hidden = true;
  document.title = "Log in · Sallyport";
  showLogin(main, enter, reason);
}

function pageLink({ path, title }) {
  const badge = path === "approvals" && element("span", { class: "badge", hidden: true });
  return element("li", {}, element("a", { href: `#/${path}` }, title, badge));
}

/** Shows how many questions wait, on every page. */
function showWaiting(cards) {
  const badge = head.querySelector(".badge");
  if (!badge) return;
  const words = element("span", { class: "unseen" }, ` ${counted(cards.length, "question")} waiting`);
  fill(badge, String(cards.length), words);
  badge.hidden = cards.length === 0;
  showTitle(cards.length);
}

function showTitle(waiting = Number(head.querySelector(".badge")?.firstChild?.data ?? 0)) {
  const { title } = currentPage();
  document.title = `${waiting ? `(${waiting}) ` : ""}${title} · Sallyport`;
}

function currentPage() {
  const [, path] = location.hash.split("/");
  const found = PAGES.find((page) => page.path === path) ?? PAGES[0];
  return found.role && found.role !== state.user?.role ? PAGES[0] : found;
}

/** Shows the page that the address names. */
function showPage() {
  if (!state.user) return;
  state.page?.abort();
  state.page = new AbortController();
  const page = currentPage();
  const [, , ...rest] = location.hash.split("/").map(decode);
  for (const link of head.querySelectorAll("nav a")) {
    if (link.getAttribute("href") === `#/${page.path}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  showTitle();
  const title = element("h1", { id: "title", tabindex: "-1" }, page.title);
  const body = element("div", { class: "page", "data-page": page.path }, title);
  fill(main, body);
  title.focus({ preventScroll: true });
  scrollTo(0, 0);
  page.show({ body, user: state.user, rest, signal: state.page.signal, fail: (error) => showFailure(body, error) });
}

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Shows why a page, or a part of it, cannot be shown. */
function showFailure(body, error) {
  if (error.name === "AbortError" || error.type === "unauthorized") return;
  body.append(element("p", { class: "trouble", role: "alert" }, error.message));
}

async function logOut() {
  await post("/console/logout", undefined, { isLogin: true }).catch(() => null);
  leave();
}

async function start() {
  onLoggedOut(() => state.user && leave("Your log-in has ended. Log in again."));
  document.getElementById("log-out").addEventListener("click", logOut);
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
  });
  addEventListener("hashchange", showPage);
  addEventListener("offline", () => showTrouble("This device is offline."));
  addEventListener("online", () => showTrouble());
  try {
    enter(await get("/console/user", { isLogin: true }));
  } catch (error) {
    leave(error.status === 401 ? undefined : error.message);
  }
}

start();
