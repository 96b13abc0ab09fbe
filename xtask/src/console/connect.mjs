// Walks through an account in the console: connected at a real identity server, used, looked at in each
// width and colour scheme, cancelled, and disconnected.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CLIENT, IdentityServer } from "./provider.mjs";
import { Service } from "./service.mjs";

const CARD = '[data-connection="service"]';
const TOOL = '[data-tool="service.list_items"]';

/** Everything that the walk needs of the one that it is a part of. */
export async function walkConnections({ program, home, plugins, model, browser, check, inspect, picture, complaints }) {
  const server = await IdentityServer.start(["http://127.0.0.1/oauth/callback/service"]);
  Service.prepare(home, plugins, ["clock"]);
  writeFileSync(join(home, "plugins/service.json"), server.definition());
  writeFileSync(join(home, "policy.toml"), readFileSync(join(home, "policy.toml"), "utf8") + server.policy());
  const service = new Service(program, home, model);
  service.env.CLIENT_SECRET = CLIENT.secret;
  const token = service.run("serve", "token", "add", "ann", "--role", "user");
  const url = await service.start();
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  await context.route(/^https?:\/\/(?!127\.0\.0\.1)/, (route) => route.abort());
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  // What the identity server's own pages complain about is not ours.
  page.on("console", (line) => ["error", "warning"].includes(line.type()) && line.location().url.startsWith(new URL(url).origin) && complaints.push(line.text()));

  const has = (state) => page.waitForSelector(`${CARD} .status[data-state="${state}"]`);

  async function call() {
    await page.click("nav >> text=Plugins");
    await page.click(`${TOOL} summary`);
    await page.click(`${TOOL} .main`);
    await page.waitForSelector(`${TOOL} :is(.verdict, .output .trouble)`);
    return page.textContent(`${TOOL} .output`);
  }

  async function look(name) {
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme });
      for (const [width, height] of [[1280, 800], [390, 844], [360, 640]]) {
        await page.setViewportSize({ width, height });
        await inspect(page, `${name}-${width}-${colorScheme}`);
        await picture(page, `${name}-${width}-${colorScheme}`);
      }
    }
    await page.emulateMedia({ colorScheme: "light" });
    await page.setViewportSize({ width: 1280, height: 800 });
  }

  try {
    await page.goto(url);
    await page.fill("#token", token);
    await page.click("button[type=submit]");
    await page.waitForSelector("#who >> text=ann · user");
    const without = await call();
    check("connect: a call without an account says where to connect it", without.includes("on the page Connections of the console"), without);
    check("connect: the log-in goes on", (await page.textContent("#who")) === "ann · user");
    await page.click("nav >> text=Connections");
    await has("disconnected");
    await look("connections-none");
    await page.click(`${CARD} button`);
    await page.click("text=[ Cancel ]");
    await page.waitForSelector("text=The account is not connected");
    check("connect: a sign-in that is cancelled is said so", (await page.textContent(".trouble")).includes("The sign-in was refused"), await page.textContent(".trouble"));
    await inspect(page, "a sign-in that failed");
    await picture(page, "connect-refused");
    await page.click("text=Back to your connections");
    await has("disconnected");
    await page.click(`${CARD} button`);
    await page.fill("input[name=login]", "ann");
    await page.fill("input[name=password]", "a password");
    await page.click("button[type=submit]");
    await page.click("text=Continue");
    await has("connected");
    check("connect: the address has no code", !page.url().includes("code="), page.url());
    const shown = await page.textContent(CARD);
    check("connect: the card shows the account and its permissions", shown.includes("ann@example.com") && shown.includes("offline_access"), shown);
    check("connect: the identity server saw PKCE", server.pkce?.length >= 43);
    const cookies = (await context.cookies()).filter(({ name }) => name.startsWith("sallyport-"));
    check("connect: one cookie is left", cookies.length === 1 && cookies[0].sameSite === "Strict", JSON.stringify(cookies));
    await look("connections");
    const report = await call();
    check("connect: a call carries the token", report.includes("completed") && server.requests.at(-1) === true, report);
    await page.click("nav >> text=Connections");
    await has("connected");
    await page.click(`${CARD} >> text=Disconnect`);
    await has("disconnected");
    const gone = await call();
    check("connect: a call after it lacks the account", gone.includes("on the page Connections"), gone);
    check("connect: the identity server refused nothing", server.refusals.length === 0, server.refusals.join());
  } finally {
    await context.close();
    await service.kill();
    server.stop();
  }
}
