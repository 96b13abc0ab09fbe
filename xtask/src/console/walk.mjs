// Walks through the console in a real browser: logs in, talks, approves a call and denies one, finds
// the session again, tries a tool, reads the audit, and loses the service.
//
// Arguments: the program, a folder for the home, a folder of plugins, Chromium, a folder for pictures.

import axe from "axe-core";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { HOSTILE, Service, startModel } from "./service.mjs";
import { walkConnections } from "./connect.mjs";
import { walkSignOn } from "./sign_on.mjs";
import { unitRows } from "./units.mjs";

const [program, home, plugins, browserPath, pictures] = process.argv.slice(2);
const rows = [];
const check = (name, isTrue, detail = "") => rows.push([isTrue ? "ok" : "FAILED", name, String(detail)]);

/** The pages that are looked at in each width and colour scheme, with what is on them. */
const VIEWS = [
  ["chat", "#/chat", ".sessions a"], ["session", null, ".transcript .call"], ["approvals", "#/approvals", ".approval"],
  ["plugins", "#/plugins", ".plugin"], ["grants", "#/grants", ".stacked"], ["audit", "#/audit", ".record"],
  ["usage", "#/usage", ".bars"],
];
const [SIZES, NARROWEST] = [[[1280, 800], [390, 844]], [360, 640]];

/** What is expected while the service is away or refuses: the browser logs such answers by itself. */
const EXPECTED = /status of (400|401|403|410)|ERR_CONNECTION_REFUSED|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET|ERR_INCOMPLETE_CHUNKED_ENCODING/;

const model = await startModel();
Service.prepare(home, plugins, ["clock", "files", "timer", "weather"]);
const service = new Service(program, home, model.url);
const token = (name, role) => service.run("serve", "token", "add", name, "--role", role);
const [otto, ann] = [token("otto", "operator"), token("ann", "user")];
const url = await service.start();
const browser = await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox"] });

const complaints = [];
const foreign = new Set();

async function newPage() {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, colorScheme: "light" });
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  page.on("console", (line) => ["error", "warning"].includes(line.type()) && complaints.push(line.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (request) => request.url().startsWith(new URL(url).origin) || request.url().startsWith("data:") || foreign.add(request.url()));
  return page;
}

/** Looks for barriers, and for content that is wider than the page. */
async function inspect(page, name) {
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  const grave = violations.filter(({ impact }) => ["serious", "critical"].includes(impact));
  const found = grave.map(({ id, nodes }) => `${id}: ${nodes.map(({ html, failureSummary }) => `${html.slice(0, 120)} ${failureSummary}`).join("; ")}`);
  check(`${name}: no barrier`, grave.length === 0, found.join(" | "));
  const { wide, width } = await page.evaluate(() => ({ wide: document.documentElement.scrollWidth, width: innerWidth }));
  check(`${name}: as wide as the page`, wide <= width, `${wide} of ${width}`);
}

const picture = (page, name) => page.screenshot({ path: join(pictures, `${name}.png`) });

async function logIn(page, secret) {
  await page.goto(url);
  await page.fill("#token", secret);
  await page.click("button[type=submit]");
}

async function say(page, text) {
  await page.fill(".composer textarea", text);
  await page.press(".composer textarea", "Enter");
}

const ready = (page) => page.waitForSelector('.state[data-state="ready"]');
const told = (page, text) => page.waitForFunction((words) => document.querySelector(".transcript")?.innerText.includes(words), text);

async function walkLogin(page) {
  await page.goto(url);
  await page.waitForSelector("#token");
  await inspect(page, "log in");
  await picture(page, "login");
  await logIn(page, "wrong");
  await page.waitForSelector(".login .trouble:not([hidden])");
  check("a wrong token is refused", (await page.textContent(".login .trouble")).includes("not valid"));
  await logIn(page, otto);
  await page.waitForSelector("#who >> text=otto · operator");
  const cookies = await page.context().cookies();
  check("the cookie is shut", cookies.length === 1 && cookies[0].httpOnly && cookies[0].sameSite === "Strict" && cookies[0].value !== otto);
  check("no script reads the cookie", (await page.evaluate(() => document.cookie)) === "");
}

async function walkChat(page) {
  await page.click("text=New session");
  await page.waitForSelector(".composer textarea");
  await ready(page);
  await say(page, "Please write the note of today");
  await page.waitForSelector(".pane .approval");
  await page.waitForSelector(".badge:not([hidden])");
  check("the count is in the head", (await page.title()).startsWith("(1) "), await page.title());
  await inspect(page, "question in a session");
  await picture(page, "question");
  check("the card shows the arguments", (await page.textContent(".approval .exact")).includes("buy <b>milk</b>"));
  await page.click('.approval [data-answer="once"]');
  await told(page, "The note is written.");
  await ready(page);
  check("the approved call was made", readFileSync(join(home, "notes/today.md"), "utf8").includes("milk"));
  await page.click(".call summary");
  await page.waitForSelector(".call pre");
  await say(page, "Please write it once more");
  await page.waitForSelector(".pane .approval");
  await page.fill(".approval input", "one note is enough");
  await page.click('.approval [data-answer="no"]');
  await told(page, "I have not written the note.");
  await ready(page);
  const outcomes = await page.locator(".call .outcome").allTextContents();
  check("one call ran and one did not", outcomes.join() === "completed,denied", outcomes.join());
  await say(page, "show markdown");
  await told(page, "A quotation");
  await ready(page);
  await picture(page, "markdown");
  await page.click("text=Undo");
  await page.waitForFunction(() => !document.querySelector(".transcript").innerText.includes("A quotation"));
  await page.click("text=Retry");
  await page.waitForSelector(".pane .approval");
  await page.click("text=Stop");
  await ready(page);
}

async function walkHostile(page) {
  await say(page, "show hostile");
  await told(page, "right to left");
  await ready(page);
  const seen = await page.evaluate(() => ({
    ran: window.hostile, text: document.querySelector(".message:last-of-type .prose").innerText,
    made: document.querySelectorAll(".transcript :is(img, script, iframe)").length,
    links: [...document.querySelectorAll(".transcript a")].map(({ href, rel, textContent }) => `${href} ${rel} ${textContent}`),
  }));
  check("hostile text stays text", seen.ran === undefined && seen.made === 0 && HOSTILE.split("\n\n").slice(0, 2).every((line) => seen.text.includes(line)), seen.text.slice(0, 60));
  check("links lead to the web alone", seen.links.every((link) => /^https?:/.test(link) && link.includes("noopener noreferrer")), seen.links.join(", "));
  check("a link shows its host", seen.text.includes("(elsewhere.example)"));
  check("hidden characters are shown", seen.text.includes("\\u{202e}"));
  await picture(page, "hostile");
  const begin = Date.now();
  await say(page, "show a long line");
  await ready(page);
  await page.waitForSelector(".folded");
  check("a line of a megabyte is folded", (await page.locator(".message .typed").last().innerText()).length < 20_000, `${Date.now() - begin} ms`);
}

async function walkSessions(page) {
  const saved = page.waitForEvent("download");
  await page.click("text=Export");
  const file = await (await saved).path();
  check("a session is exported", readFileSync(file, "utf8").includes("# Please write the note of today"));
  await page.click("text=Close");
  await page.waitForSelector('.state[data-state="closed"]');
  await page.click("nav >> text=Chat");
  await page.waitForSelector(".sessions a");
  await page.fill(".side input", "NOTE OF TODAY");
  check("a session is found by its title", (await page.locator(".sessions a").count()) === 1);
  await page.fill(".side input", "no such title");
  await page.waitForSelector(".sessions >> text=No title has this text.");
  await page.fill(".side input", "");
  await page.click(".sessions a");
  await page.waitForSelector('.state[data-state="closed"]');
  await told(page, "The note is written.");
  check("a closed session shows its calls", (await page.locator(".call").count()) >= 2);
  await page.click("text=Resume");
  await ready(page);
  await say(page, "show markdown");
  await told(page, "A quotation");
  await say(page, "hello again");
  await told(page, "Good day.");
  await ready(page);
  const address = await page.evaluate(() => location.hash);
  await page.reload();
  await told(page, "Good day.");
  check("a page that is loaded again is logged in", (await page.textContent("#who")) === "otto · operator");
  return address;
}

/** A stream that breaks off continues, and one whose events are forgotten begins anew. */
async function walkStreams(page) {
  const answers = [
    { status: 200, contentType: "text/event-stream", body: "retry: 1000\n\n" },
    { status: 410, contentType: "application/problem+json", body: JSON.stringify({ type: "events-forgotten", status: 410, title: "gone" }) },
  ];
  const lasts = [];
  await page.route("**/events", (route) => {
    lasts.push(route.request().headers()["last-event-id"]);
    return answers.length ? route.fulfill(answers.shift()) : route.continue();
  });
  await page.reload();
  await page.waitForSelector('.state[data-state="lost"]');
  await ready(page);
  await say(page, "hello after a break");
  await page.waitForFunction(() => [...document.querySelectorAll(".message.user")].at(-1)?.innerText.includes("after a break") && [...document.querySelectorAll(".message.assistant:not(.draft)")].at(-1)?.innerText.includes("Good day."));
  await ready(page);
  const seen = await page.evaluate(() => document.querySelector(".transcript").innerText.split("hello after a break").length - 1);
  check("a stream that breaks off continues, and nothing is shown twice", lasts.length >= 3 && lasts.every(Boolean) && seen === 1, `${lasts.join(", ")}; ${seen} times`);
  await page.unroute("**/events");
}

async function walkPlugins(page) {
  await page.click("nav >> text=Plugins");
  await page.click('[data-tool="clock.get_time"] summary');
  await page.fill('[data-tool="clock.get_time"] textarea', "Asia/Tokyo");
  await page.click('[data-tool="clock.get_time"] >> text=Check only');
  await page.waitForSelector(".verdict >> text=runs without asking");
  await page.click('[data-tool="clock.get_time"] .main');
  await page.waitForSelector(".verdict >> text=completed");
  check("a tool runs from its form", (await page.textContent(".output pre")).includes("Tokyo"));
  await page.click('[data-tool="files.write"] summary');
  await page.click('[data-tool="files.write"] .main');
  check("a form names what is missing", (await page.textContent('[data-tool="files.write"] .trouble')).includes("is missing"));
  await inspect(page, "a tool's form");
  await page.locator('[data-tool="files.write"]').scrollIntoViewIfNeeded();
  await picture(page, "form");
}

async function walkRecords(page) {
  await page.click("nav >> text=Audit");
  await page.waitForSelector(".record");
  const all = await page.locator(".record").count();
  await page.click(".filter-box summary");
  await page.check("#only-denied");
  await page.click(".filters button");
  await page.waitForFunction((before) => document.querySelectorAll(".record").length < before, all);
  check("the audit shows the denied call", (await page.textContent(".timeline")).includes("files.write"));
  await page.click("nav >> text=Grants");
  await page.waitForSelector(".stacked");
  check("the grants show what is lacking", (await page.textContent(".stacked")).includes("sallyport policy grant weather") || (await page.textContent(".stacked")).includes("api.open-meteo.com"));
  await page.selectOption(".why select", "files.write");
  await page.fill(".why textarea", JSON.stringify({ path: "/notes/a.md", text: "a", mode: "create" }));
  await page.click(".why button");
  await page.waitForSelector(".why .verdict");
  check("the grants say why a call asks", (await page.textContent(".why .verdict")).includes("asks for an approval"), await page.textContent(".why .output"));
  await page.click("nav >> text=Usage");
  await page.waitForSelector(".bars");
}

/** A user sees a question of theirs, may deny it, and reads why they may not allow it. */
async function walkRoles() {
  const page = await newPage();
  await logIn(page, ann);
  await page.waitForSelector("#who >> text=ann · user");
  check("a user has no page of grants", (await page.locator("nav >> text=Grants").count()) === 0);
  await page.click("text=New session");
  await ready(page);
  await say(page, "Please write a note");
  await page.waitForSelector(".pane .approval");
  const disabled = await page.locator(".approval .answers button:disabled").count();
  check("a user may only deny", disabled >= 2 && (await page.textContent(".approval")).includes("need the role approver"), `${disabled} disabled`);
  await picture(page, "user");
  return page;
}

/** Looks at each page in each width and colour scheme. Ann's question waits meanwhile. */
async function lookAtAll(page, session) {
  for (const colorScheme of ["light", "dark"]) {
    for (const [width, height] of SIZES) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height });
      for (const [name, hash, selector] of VIEWS) await look(page, hash ?? session, selector, `${name}-${width}-${colorScheme}`);
    }
  }
  for (const [width, height] of [NARROWEST, [1400, 900]]) {
    await page.setViewportSize({ width, height });
    for (const [name, hash, selector] of VIEWS) await look(page, hash ?? session, selector, `${name}-${width}`);
  }
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize({ width: 1280, height: 800 });
}

async function look(page, hash, selector, name) {
  await page.evaluate((wanted) => (location.hash = wanted), hash);
  await page.waitForSelector(selector);
  await inspect(page, name);
  await picture(page, name);
}

async function walkAway(page, anns, session) {
  await anns.click('.approval [data-answer="no"]');
  await ready(anns);
  service.run("serve", "token", "remove", "ann");
  await anns.click("nav >> text=Usage");
  await anns.waitForSelector("#token");
  check("a removed token leads to the log-in", (await anns.textContent(".login .trouble")).includes("has ended"));
  await page.evaluate((wanted) => (location.hash = wanted), session);
  await ready(page);
  await service.kill();
  await page.waitForSelector('.state[data-state="lost"]');
  check("a lost connection is shown", (await page.textContent(".state")).includes("Reconnecting"));
  await picture(page, "lost");
  await service.start(new URL(url).host);
  await page.waitForSelector("#token");
  await logIn(page, otto);
  await page.waitForSelector("#who >> text=otto");
  await page.click("text=Log out");
  await page.waitForSelector("#token");
  await page.reload();
  await page.waitForSelector("#token");
  check("a log-out ends the log-in", (await page.context().cookies()).length === 0);
}

try {
  const page = await newPage();
  await walkLogin(page);
  for (const row of await page.evaluate(unitRows)) check(`unit: ${row[0]}`, row[1], row[1] ? "" : row[2]);
  await walkChat(page);
  await walkHostile(page);
  const session = await walkSessions(page);
  await walkStreams(page);
  await walkPlugins(page);
  await walkRecords(page);
  const anns = await walkRoles();
  await lookAtAll(page, session);
  await walkAway(page, anns, session);
  const shared = { program, plugins, model: model.url, browser, check, inspect, picture, complaints };
  await walkSignOn({ ...shared, home: join(home, "sign-on") });
  await walkConnections({ ...shared, home: join(home, "connections") });
} catch (error) {
  check("the walk", false, error.stack);
} finally {
  const unexpected = complaints.filter((line) => !EXPECTED.test(line));
  check("the browser complains about nothing", unexpected.length === 0, unexpected.join(" | "));
  check("nothing of another host was asked for", foreign.size === 0, [...foreign].join(" "));
  await browser.close();
  await service.kill();
  model.stop();
}
const failed = rows.filter(([state]) => state !== "ok");
for (const [state, name, detail] of rows) console.log(`${state.padEnd(7)} ${name}${detail && state !== "ok" ? `: ${detail}` : ""}`);
console.log(`${rows.length - failed.length} of ${rows.length} checks hold; the pictures are in ${pictures}`);
process.exit(failed.length ? 1 : 0);
