// The page of grants: what the policy allows each plugin, what a plugin lacks, and why a call asks.

import { get } from "./api.js";
import { button, element, field, fill, menu, unfolding, visible } from "./dom.js";
import { check } from "./plugins.js";

/** The columns of the table. */
const COLUMNS = ["Plugin", "May", "Runs without asking", "Asks", "Denied", "Asks for and lacks"];

/** Shows the page. */
export async function showGrants({ body, signal, fail }) {
  body.append(element("p", { class: "faint" }, "The policy decides, and you change it with ", element("code", {}, "sallyport policy"), " on the machine of the service."));
  try {
    const { plugins } = await get("/v1/grants", { signal });
    body.append(table(plugins), whyPart(plugins));
  } catch (error) {
    fail(error);
  }
}

function table(plugins) {
  const head = element("tr", {}, COLUMNS.map((column) => element("th", { scope: "col" }, column)));
  const rows = plugins.map((plugin) => element("tr", {}, cells(plugin).map((parts, column) => cell(parts, column))));
  return element("table", { class: "stacked" }, element("thead", {}, head), element("tbody", {}, rows));
}

/** On a narrow page each cell shows the title of its column. */
const cell = (parts, column) =>
  element(column === 0 ? "th" : "td", { scope: column === 0 && "row", "data-label": COLUMNS[column], class: parts.length ? null : "empty" }, parts.length ? parts : "—");

function cells(plugin) {
  const { tools } = plugin;
  return [[visible(plugin.plugin), readiness(plugin.works)], powers(plugin), names(tools.allow), names(tools.ask), names(tools.deny), lacks(plugin)];
}

function readiness({ status, reason }) {
  const words = status === "unusable" ? visible(reason) : status;
  return element("p", { class: "status", "data-state": status }, words);
}

const list = (lines) => (lines.length ? [element("ul", { class: "plain-list" }, lines.map((line) => element("li", {}, line)))] : []);

const names = (tools) => list(tools.map((tool) => element("code", {}, visible(tool))));

function powers({ net, files, variables, secrets, capabilities }) {
  return list([
    ...net.map((line) => ["send ", element("code", {}, visible(line))]),
    ...files.map(({ access, path, seen_as: seenAs }) => [`${access} `, element("code", {}, visible(path)), path === seenAs ? "" : ` as ${visible(seenAs)}`]),
    ...variables.map((name) => ["read the variable ", element("code", {}, visible(name))]),
    ...secrets.map((name) => ["use the secret ", element("code", {}, visible(name))]),
    ...capabilities.map((name) => `use ${visible(name)}`),
  ].map((parts) => element("span", {}, parts)));
}

function lacks({ plugin, missing }) {
  return list(missing.map(({ request, needed, denied_at: deniedAt, grant }) => element(
    "span", {}, visible(request), needed && element("strong", {}, " (needed)"),
    deniedAt && ` denied at ${visible(deniedAt)}`,
    grant && unfolding("how to grant it", () => element("code", { class: "command" }, visible(`sallyport policy grant ${plugin} ${grant}`))),
  )));
}

/** Asks why a tool runs, asks or is denied. */
function whyPart(plugins) {
  const tools = plugins.flatMap(({ plugin, tools: { allow, ask, deny } }) => [...allow, ...ask, ...deny].map((tool) => `${plugin}.${tool}`));
  const select = menu(tools.sort().map((tool) => [tool, visible(tool)]));
  const args = element("textarea", { rows: "2", class: "code", spellcheck: "false" });
  args.value = "{}";
  const output = element("div", { class: "output", "aria-live": "polite" });
  const ask = button("Why?", async () => {
    try {
      await check(select.value, JSON.parse(args.value || "{}"), output);
    } catch (error) {
      fill(output, element("p", { class: "trouble" }, error.message));
    }
  }, { class: "main" });
  return element(
    "section", { class: "why" }, element("h2", {}, "Why does a call ask?"),
    element("p", { class: "faint" }, "Checks a call for your own user, without making it."),
    field("Tool", select), field("Arguments as JSON", args, "Rules can depend on them."), ask, output,
  );
}
