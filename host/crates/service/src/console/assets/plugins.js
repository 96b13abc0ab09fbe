// The page of plugins: their states and tools, each of which can be tried.

import { get, path, post } from "./api.js";
import { refreshApprovals } from "./approval_list.js";
import { block, button, count, counted, element, fill, unfolding, visible } from "./dom.js";
import { resultOf } from "./history.js";
import { schemaForm } from "./schema_form.js";

/** Digits of a digest that are shown at first. */
const DIGEST_CHARS = 12;

/** After this time a call that runs may wait for an approval, in milliseconds. */
const QUESTION_AFTER_MS = 700;

/** What the states mean. */
const STATES = {
  ready: "ready", compiling: "compiling", disabled: "disabled: something that it needs is missing",
  changed: "changed since it was accepted",
};

/** Shows the page. */
export async function showPlugins({ body, signal, fail }) {
  const list = element("div", { class: "cards" });
  const search = element("input", { type: "search", placeholder: "Search plugins and tools", "aria-label": "Search plugins and tools" });
  body.append(search, list);
  try {
    const [{ plugins }, { tools }] = await Promise.all([get("/v1/plugins", { signal }), get("/v1/tools", { signal })]);
    const cards = plugins.map((plugin) => [plugin, pluginCard(plugin, tools, signal)]);
    const show = () => showMatching(list, cards, search.value.trim().toLowerCase());
    search.addEventListener("input", show);
    show();
  } catch (error) {
    fail(error);
  }
}

function showMatching(list, cards, words) {
  const isMatch = ([{ name, description, tools }]) => [name, description, ...tools].some((text) => text.toLowerCase().includes(words));
  const matching = cards.filter(isMatch).map(([, card]) => card);
  fill(list, matching.length ? matching : element("p", { class: "nothing" }, "No plugin has this text."));
}

function pluginCard(plugin, tools, signal) {
  const { name, version, description, kind, roles, digest, state } = plugin;
  const own = new Map(tools.filter(({ id }) => id.startsWith(`${name}.`)).map((tool) => [tool.id, tool]));
  const about = [kind, ...roles.filter((role) => role !== "tools")].join(" · ");
  return element(
    "article", { class: "plugin" },
    element("h2", {}, visible(name), element("span", { class: "faint" }, ` ${visible(version)}`)),
    element("p", { class: "status", "data-state": state }, STATES[state] ?? state),
    element("p", {}, visible(description)),
    unfolding(`${about} · digest ${digest.slice(0, DIGEST_CHARS)}…`, () => element("code", { class: "digest" }, digest), { class: "small" }),
    plugin.tools.length ? element("h3", {}, counted(plugin.tools.length, "tool")) : null,
    plugin.tools.map((tool) => toolPart(own.get(`${name}.${tool}`), `${name}.${tool}`, signal)),
  );
}

function toolPart(tool, id, signal) {
  const [, name] = [id, id.slice(id.indexOf(".") + 1)];
  const summary = [element("code", { class: "tool" }, visible(name)), tool?.title && element("span", { class: "faint" }, visible(tool.title))];
  if (!tool) return element("p", { class: "faint" }, summary, " cannot be called at the moment.");
  return unfolding(summary.filter(Boolean), () => tryPart(tool, signal), { class: "call", "data-tool": id });
}

/** The form that tries a tool. */
function tryPart(tool, signal) {
  const form = schemaForm(tool.parameters);
  const output = element("div", { class: "output", "aria-live": "polite" });
  const act = (work) => async () => {
    try {
      await work(form.read());
    } catch (error) {
      fill(output, element("p", { class: "trouble" }, error.message));
    }
  };
  return element(
    "div", { class: "try" },
    element("p", { class: "description", dir: "auto" }, visible(tool.description)),
    form.box,
    element("div", { class: "answers" },
      button("Call", act((args) => call(tool.id, args, output, signal)), { class: "main" }),
      button("Check only", act((args) => check(tool.id, args, output)))),
    output,
  );
}

/** Checks a call, and shows what would become of it. */
export async function check(tool, args, output) {
  fill(output, checkParts(await post(path("v1", "tools", tool, "check"), { arguments: args })));
}

function checkParts({ valid, errors, confirmations_required: questions, blocked }) {
  const verdict = blocked ? "The policy or a limit blocks this call."
    : !valid ? "The call does not fit."
      : questions.length ? "The call asks for an approval." : "The call runs without asking.";
  const list = (lines) => lines.length > 0 && element("ul", {}, lines.map((line) => element("li", {}, visible(line))));
  return [element("p", { class: valid && !blocked ? "verdict" : "verdict trouble" }, verdict), list(errors), list(questions)];
}

async function call(tool, args, output, signal) {
  const stop = new AbortController();
  signal.addEventListener("abort", () => stop.abort(), { once: true });
  const state = element("p", {}, "Running…");
  fill(output, state, button("Stop", () => stop.abort(), { class: "quiet danger" }));
  const timer = setTimeout(() => {
    state.textContent = "Running… If the call asks for an approval, you find the question on the page Approvals.";
    refreshApprovals();
  }, QUESTION_AFTER_MS);
  try {
    const report = await post(path("v1", "tools", tool, "call"), { arguments: args }, { signal: stop.signal });
    fill(output, reportParts(report));
  } catch (error) {
    if (error.name !== "AbortError") throw error;
    fill(output, element("p", { class: "trouble" }, "Stopped."));
  } finally {
    clearTimeout(timer);
    refreshApprovals();
  }
}

function reportParts(report) {
  const { outcome, elapsed_ms: elapsedMs, memory_bytes_peak: memoryBytes, effects } = report;
  const about = `${outcome.replaceAll("-", " ")} · ${count(elapsedMs)} ms · ${count(Math.ceil(memoryBytes / 1024))} KiB`;
  const isGood = outcome === "completed";
  return [
    element("p", { class: isGood ? "verdict" : "verdict trouble" }, about),
    block(resultOf(report).text),
    effects.length > 0 && unfolding(counted(effects.length, "effect"), () => block(JSON.stringify(effects, null, 2))),
  ];
}
