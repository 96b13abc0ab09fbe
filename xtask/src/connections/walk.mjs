// Walks through the life of an account at a real identity server, with a real browser: connect, call,
// refresh, rotate, revoke, connect again; on another device; in a chat; and many programs at once. Then
// looks for every token in everything that was written and printed.
//
// Arguments: the program, a folder for homes, a folder of plugins, Chromium.

import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { once } from "node:events";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { walkCalendar } from "./calendar.mjs";
import { Home, until } from "./program.mjs";
import { CLIENT, IdentityServer } from "./provider.mjs";

const [program, folder, plugins, browserPath] = process.argv.slice(2);
const MEND = "sallyport connection add service";

/** How many programs find the ended token at once. */
const PROGRAMS = 10;

const rows = [];
function check(name, isTrue, detail = "") {
  rows.push(Boolean(isTrue));
  const text = typeof detail === "string" ? detail : JSON.stringify(detail);
  console.log(`${isTrue ? "ok     " : "FAILED "} ${name}${isTrue || !text ? "" : `: ${text}`}`);
}

const server = await IdentityServer.start();
const home = new Home(program, join(folder, "accounts"), { CLIENT_SECRET: CLIENT.secret });
home.write("plugins/service.json", server.definition());
home.write("policy.toml", server.policy());
const browser = await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox"] });

/** Opens a page in a browser that knows nobody yet, and asks nothing of other hosts. */
async function visit(address, work) {
  const context = await browser.newContext();
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  await page.route(/^https?:\/\/(?!127\.0\.0\.1)/, (route) => route.abort());
  await page.goto(address);
  await work(page);
  await context.close();
}

async function logInAndConsent(page) {
  await page.fill("input[name=login]", "ann");
  await page.fill("input[name=password]", "a password");
  await page.click("button[type=submit]");
  await page.click("text=Continue");
}

/** Signs in, as the page wants it, until the program's own page comes. */
async function signIn(page) {
  await logInAndConsent(page);
  await page.waitForSelector("text=You are signed in.");
}

/** Starts a sign-in of the program, and returns it with the page that it shows. */
async function startConnecting(...args) {
  const run = home.start(["connection", "add", "service", ...args]);
  const [address] = await run.sees(/^http:\S+(?=\n)/m);
  return { run, address };
}

async function connect() {
  const { run, address } = await startConnecting();
  await visit(address, signIn);
  return { address, code: await run.ended, text: run.text };
}

const status = async () => JSON.parse((await home.run("connection", "show", "service", "--output", "json")).stdout).status;
const listItems = () => home.call("service.list_items");
const isListed = (report) => report.outcome === "completed" && JSON.stringify(report.result) === '["a","b","c"]';

/** Gives the account a token that has just ended, at the server and in the program. */
async function letTokenEnd() {
  await until(() => "the token ends", async () => !(await server.isValid(server.tokens.access_token)));
}

async function walkConnect() {
  const before = await listItems();
  check("a call without an account says how to connect it", JSON.stringify(before).includes(MEND), before);
  const { address, code, text } = await connect();
  const query = new URL(address).searchParams;
  check("the account is connected in the browser", code === 0 && text.includes("Connected service."), text);
  check("the sign-in has a state and PKCE", query.get("state")?.length >= 32 && query.get("code_challenge_method") === "S256" && server.pkce?.length >= 43);
  const back = new URL(query.get("redirect_uri"));
  check("the browser comes back to a port of this machine", back.hostname === "127.0.0.1" && Number(back.port) > 0, back.href);
  const shown = JSON.parse((await home.run("connection", "show", "service", "--output", "json")).stdout);
  check("the profile names the user", shown.status === "active" && shown.profile_data.email === "ann@example.com", shown);
  check("a call carries the token", isListed(await listItems()) && server.requests.at(-1));
}

async function walkRefusals() {
  const { run, address } = await startConnecting();
  await visit(address, async (page) => {
    await page.click("text=[ Cancel ]");
    await page.waitForSelector("text=The sign-in was refused.");
  });
  const code = await run.ended;
  check("a sign-in that the user cancels is said so", code === 1 && run.text.includes("the sign-in was refused"), run.text);
  check("and the account of before is kept", isListed(await listItems()));
}

async function walkRefresh() {
  server.life = 2;
  await connect();
  const tokens = [server.tokens.refresh_token];
  const before = server.refreshes;
  for (const life of [2, 3600]) {
    await letTokenEnd();
    server.life = life;
    check("a call refreshes a token that has ended", isListed(await listItems()));
    tokens.push(server.tokens.refresh_token);
  }
  check("each refresh rotates the refresh token", new Set(tokens).size === 3 && server.refreshes === before + 2, server.refreshes - before);
  check("a token that is good is not refreshed", isListed(await listItems()) && server.refreshes === before + 2);
  check("nothing was refused meanwhile", server.refusals.length === 0, server.refusals);
}

async function walkManyPrograms() {
  server.life = 2;
  await connect();
  await letTokenEnd();
  server.life = 3600;
  const before = server.refreshes;
  const reports = await Promise.all(Array.from({ length: PROGRAMS }, listItems));
  check(`${PROGRAMS} programs at once: all calls succeed`, reports.every(isListed), reports);
  check(`${PROGRAMS} programs at once: one refresh`, server.refreshes === before + 1 && server.refusals.length === 0, `${server.refreshes - before} refreshes, refused: ${server.refusals}`);
}

async function walkRevocation() {
  check("the server takes the permission away", (await server.revoke(server.tokens.refresh_token)) === 200 && !(await server.isValid(server.tokens.access_token)));
  const report = await listItems();
  check("the call says how to mend it", report.outcome === "failed" && JSON.stringify(report).includes(MEND), report);
  check("the server refused the refresh token once", server.refusals.join() === "invalid_grant", server.refusals);
  check("the account has expired", (await status()) === "expired");
  const refreshed = await home.run("connection", "refresh", "service");
  check("a refresh by hand says so too", refreshed.code === 4 && refreshed.text.includes(MEND), refreshed.text);
  check("a model is told", (await home.run("connection", "context")).text.includes(MEND));
  await listItems();
  check("and nobody asks the server again", server.refusals.length === 1, server.refusals);
  await connect();
  check("connecting again mends it", (await status()) === "active" && isListed(await listItems()));
}

async function walkDevice() {
  await home.run("connection", "remove", "service");
  const run = home.start(["connection", "add", "service", "--device"]);
  const [, address, userCode] = await run.sees(/Open (\S+) on any device and type this code: (\S+)\n/);
  await visit(address, async (page) => {
    await page.fill("input[name=user_code]", "AAAA-AAAA");
    await page.click("button[type=submit]");
    await page.waitForSelector("text=The code you entered is incorrect.");
    await page.fill("input[name=user_code]", userCode);
    await page.click("button[type=submit]");
    await page.click("text=Continue");
    await logInAndConsent(page);
    await page.waitForSelector("text=Sign-in Success");
  });
  const code = await run.ended;
  check("an account is connected on another device", code === 0 && run.text.includes("Connected service."), run.text);
  check("and a call carries its token", isListed(await listItems()));
  const refused = home.start(["connection", "add", "service", "--device"]);
  const [, page, secondCode] = await refused.sees(/Open (\S+) on any device and type this code: (\S+)\n/);
  await visit(page, async (other) => {
    await other.fill("input[name=user_code]", secondCode);
    await other.click("button[type=submit]");
    await other.click("button[name=abort]");
    await other.waitForSelector("text=interrupted");
  });
  check("a device that the user refuses is said so", (await refused.ended) === 1 && refused.text.includes("access_denied"), refused.text);
  check("and the account of before is kept", (await status()) === "active");
}

/** A model that calls the tool and then says what it got. */
async function startModel() {
  const bodies = [];
  const model = createServer((request, response) => {
    let body = "";
    request.on("data", (piece) => (body += piece)).on("end", () => {
      bodies.push(JSON.parse(body));
      const isAnswered = bodies.at(-1).messages.at(-1).role === "tool";
      const call = { index: 0, id: "a", type: "function", function: { name: "service__list_items", arguments: "{}" } };
      const delta = isAnswered ? { role: "assistant", content: "Three items." } : { role: "assistant", tool_calls: [call] };
      response.writeHead(200, { "content-type": "text/event-stream", connection: "close" });
      const chunk = (choice) => `data: ${JSON.stringify({ id: "x", object: "chat.completion.chunk", choices: [{ index: 0, finish_reason: null, delta: {}, ...choice }] })}\n\n`;
      response.end(`${chunk({ delta })}${chunk({ finish_reason: isAnswered ? "stop" : "tool_calls" })}data: [DONE]\n\n`);
    });
  });
  await once(model.listen(0, "127.0.0.1"), "listening");
  return { bodies, url: `http://127.0.0.1:${model.address().port}/v1`, stop: () => model.close() };
}

/** A program that the host takes for the user's browser. It passes on the address. */
function browserProgram() {
  const [script, shown] = [join(folder, "browser"), join(folder, "shown")];
  writeFileSync(script, `#!/bin/sh\nprintf '%s\\n' "$1" > '${shown}.part'\nmv '${shown}.part' '${shown}'\n`);
  chmodSync(script, 0o755);
  return { script, address: () => existsSync(shown) && readFileSync(shown, "utf8").trim() };
}

async function walkChat() {
  await home.run("connection", "remove", "service");
  const model = await startModel();
  const opened = browserProgram();
  const env = { OPENAI_BASE_URL: model.url, OPENAI_API_KEY: "k", SALLYPORT_BROWSER: opened.script };
  const chat = home.startAtTerminal(["chat", "--model", "m"], env);
  await chat.shows("openai/m>");
  chat.types("list my items\r");
  await chat.shows("service is not connected to an account");
  await chat.shows("[?] more");
  chat.types("y");
  const address = await until(() => "the browser opens", opened.address);
  check("a card in a chat opens the browser", address.startsWith(`${server.url}/auth?`), address);
  await visit(address, signIn);
  await chat.shows("Connected service.");
  await chat.shows("Three items.");
  const said = model.bodies.at(-1).messages;
  check("the call completes without being typed again", said.filter(({ role }) => role === "user").length === 1 && said.at(-1).content.includes('["a","b","c"]'), said.slice(1));
  chat.types("\x04");
  await chat.ended;
  const recorded = home.start(["run", "--model", "m", "--record", join(home.folder, "tape.jsonl"), "list my items"], { env });
  check("a run is recorded", (await recorded.ended) === 0 && existsSync(join(home.folder, "tape.jsonl")), recorded.text);
  model.stop();
}

async function searchForTokens() {
  const commands = [
    ["connection", "list"], ["connection", "context", "--output", "json"], ["audit", "show", "--output", "json"], ["doctor", "-v"],
    ["session", "list"], ["call", "service.list_items", "{}", "-vv"], ["plugin", "show", "service"], ["config", "show"],
  ];
  for (const args of commands) await home.run(...args);
  const sessions = JSON.parse((await home.run("session", "list", "--output", "json")).stdout);
  for (const { id } of sessions) for (const form of ["json", "markdown"]) await home.run("session", "export", id, "--format", form);
  check("the search finds what is stored in plain", home.search(["ann@example.com"]).length > 0);
  const found = home.search(server.secrets);
  check(`none of ${server.secrets.size} tokens and codes is in ${home.files().length} files or ${home.printed.length} outputs`, server.secrets.size > 30 && found.length === 0, found);
}

const walks = [walkConnect, walkRefusals, walkRefresh, walkManyPrograms, walkRevocation, walkDevice, walkChat, searchForTokens];
mkdirSync(home.folder, { recursive: true });
try {
  for (const walk of walks) await walk();
  await walkCalendar(program, join(folder, "calendar"), plugins, check);
} catch (error) {
  check("the walk", false, error.stack);
} finally {
  await browser.close();
  server.stop();
}
const held = rows.filter(Boolean).length;
console.log(`${held} of ${rows.length} checks hold`);
process.exit(held === rows.length ? 0 : 1);
