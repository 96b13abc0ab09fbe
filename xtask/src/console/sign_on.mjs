// Walks through the log-in at a real identity server: in and out, without a role, cancelled, begun in
// two tabs, and of a user who was removed.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { CLIENT, IdentityServer } from "./provider.mjs";
import { Service } from "./service.mjs";

const ROLES = 'roles = { staff = "user", admins = "operator" }';

/** The table that names the server. Its users are called as it calls them. */
const table = (issuer) => `[login]
issuer = "${issuer}"
client_id = "${CLIENT.id}"
client_secret = "\${LOGIN_PASSWORD}"
scopes = ["groups"]
${ROLES}
`;

/** Everything that the walk needs of the one that it is a part of. */
export async function walkSignOn({ program, home, plugins, model, browser, check, inspect, picture, complaints }) {
  const server = await IdentityServer.start(["http://127.0.0.1/console/callback"]);
  server.groups = { ann: ["staff"], otto: ["staff", "admins"] };
  Service.prepare(home, plugins, ["clock"]);
  writeFileSync(join(home, "sallyport.toml"), table(server.url));
  const service = new Service(program, home, model);
  service.env.LOGIN_PASSWORD = CLIENT.secret;
  const url = await service.start();

  /** A browser that knows nobody yet, and asks nothing of other machines. */
  async function newBrowser() {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
    await context.route(/^https?:\/\/(?!127\.0\.0\.1)/, (route) => route.abort());
    return context;
  }

  async function open(context) {
    const page = await context.newPage();
    page.setDefaultTimeout(60_000);
    // What the identity server's own pages complain about is not ours.
    page.on("console", (line) => ["error", "warning"].includes(line.type()) && line.location().url.startsWith(new URL(url).origin) && complaints.push(line.text()));
    await page.goto(url);
    await page.waitForSelector("#sign-on");
    return page;
  }

  async function authenticate(page, name) {
    await page.fill("input[name=login]", name);
    await page.fill("input[name=password]", "a password");
    await page.click("button[type=submit]");
    await page.click("text=Continue");
  }

  const isAsked = (page) => page.waitForSelector("input[name=login]");
  const isRefused = (page) => page.waitForSelector("text=You are not logged in");
  const words = (page) => page.textContent(".login .trouble");

  try {
    const anns = await newBrowser();
    const page = await open(anns);
    await inspect(page, "log in at the identity server");
    await picture(page, "sign-on");
    await page.click("#sign-on");
    await authenticate(page, "ann");
    await page.waitForSelector("#who >> text=sso:ann · user");
    check("sign-on: the address has no code", page.url().replace(/#.*/, "") === url, page.url());
    const cookies = (await anns.cookies()).filter(({ name }) => name.startsWith("sallyport-"));
    check("sign-on: one cookie is left, and it is shut", cookies.length === 1 && cookies[0].httpOnly && cookies[0].sameSite === "Strict", JSON.stringify(cookies));
    check("sign-on: the identity server saw PKCE", server.pkce?.length >= 43);
    await page.reload();
    await page.waitForSelector("#who >> text=sso:ann · user");
    await page.click("text=New session");
    await page.waitForSelector('.state[data-state="ready"]');
    check("sign-on: a session is theirs", true);
    await page.click("text=Log out");
    await page.waitForSelector("#sign-on");
    await page.reload();
    await page.waitForSelector("#sign-on");
    check("sign-on: a log-out ends the log-in", (await anns.cookies()).every(({ name }) => !name.startsWith("sallyport-")));
    await page.click("#sign-on");
    // It asks whether it may tell, and not who the user is.
    await page.click("text=Continue");
    await page.waitForSelector("#who >> text=sso:ann · user");
    check("sign-on: the identity server still knows the user", true);

    const bobs = await newBrowser();
    const refused = await open(bobs);
    await refused.click("#sign-on");
    await authenticate(refused, "bob");
    await isRefused(refused);
    check("sign-on: a user without a role is refused", (await words(refused)).includes("sso:bob has no role here"), await words(refused));
    await inspect(refused, "a log-in that failed");
    await picture(refused, "sign-on-refused");
    await refused.reload();
    await isRefused(refused);
    check("sign-on: an answer counts once", (await words(refused)).includes("is over"), await words(refused));
    await refused.click("text=Back to the log-in");
    await refused.waitForSelector("#sign-on");

    const carls = await newBrowser();
    const [first, second] = [await open(carls), await open(carls)];
    await first.click("#sign-on");
    await isAsked(first);
    await second.click("#sign-on");
    await isAsked(second);
    await first.click("text=[ Cancel ]");
    await isRefused(first);
    check("sign-on: the tab that began last counts", (await words(first)).includes("Another browser or tab"), await words(first));
    await second.click("text=[ Cancel ]");
    await isRefused(second);
    check("sign-on: a log-in that is cancelled is said so", (await words(second)).includes("refused: access_denied"), await words(second));

    check("sign-on: the identity server refused nothing", server.refusals.length === 0, server.refusals.join());

    // Its own pages fail for a user whom it does not know.
    server.removed.add("ann");
    const removed = await open(await newBrowser());
    await removed.click("#sign-on");
    await isAsked(removed);
    await removed.fill("input[name=login]", "ann");
    await removed.fill("input[name=password]", "a password");
    await removed.click("button[type=submit]");
    await removed.waitForLoadState();
    check("sign-on: a user who was removed does not get in", (await removed.locator("#who").count()) === 0, removed.url());
  } finally {
    await service.kill();
    server.stop();
  }
}
