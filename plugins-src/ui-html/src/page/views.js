// What is around the conversation: the empty page, the plugins and the audit.

// What to ask of the plugins that come with Sallyport, by the tool that answers it.
const IDEAS = [
  ["clock.", "What time is it in Tokyo?"],
  ["weather.", "What will the weather be like in Paris tomorrow?"],
  ["files.", "Which files can you see?"],
  ["timer.", "Remind me in ten minutes to take a break."],
  ["system-info.", "What machine is this?"],
];
const IDEAS_MAX = 3;
const TOOLS_SHOWN = 6;

const bytes = (count) => {
  if (count < 1024) return count + " bytes";
  if (count < 1024 * 1024) return Math.round(count / 1024) + " KiB";
  return (count / (1024 * 1024)).toFixed(1) + " MiB";
};

const listOf = (texts) => {
  const made = element("ul");
  for (const text of texts) {
    const item = element("li", "", text);
    item.dir = "auto";
    made.append(item);
  }
  return made;
};

// A part that is closed until someone opens it.
const fold = (title, ...inside) =>
  withChildren(element("details", "more"), element("summary", "", title), ...inside);

const toolList = (tools) => {
  const made = element("ul", "tools");
  for (const tool of tools) {
    const item = withChildren(element("li"), element("span", "name", tool.name));
    const about = element("span", "about", tool.title || tool.description);
    about.title = tool.description;
    made.append(withChildren(item, about));
  }
  return made;
};

const ideasFor = (tools) => {
  const known = IDEAS.filter(([name]) => tools.some((tool) => tool.name.startsWith(name)));
  return [...known.map(([, text]) => text), "What can you do?"].slice(0, IDEAS_MAX);
};

const ideaButtons = (tools, use) => {
  const box = element("div", "ideas");
  for (const text of ideasFor(tools)) {
    const button = element("button", "quiet", text);
    button.type = "button";
    button.addEventListener("click", () => use(text));
    box.append(button);
  }
  return box;
};

const APPROVALS = [
  "The policy decides which calls run without asking, which are denied, and which need you.",
  "If a call needs you, a question appears here. It shows the tool, its arguments, and what its " +
    "plugin may do. The call does not start before you allow it.",
  "Your answer is for that one call. The question also shows the rule that would stop it from asking.",
];
const NO_APPROVALS = [
  "The policy decides which calls run without asking, which are denied, and which need you.",
  "This page cannot answer questions. The terminal asks them, if there is one; otherwise the call " +
    "is denied.",
];

const showWelcome = (into, session, use) => {
  const { model, tools, plugins } = session;
  const heading = element("h2", "", "Start a conversation");
  heading.id = "welcome-heading";
  const intro = model
    ? "Write a message below. " + model + " answers, and can use " +
      (tools.length ? "these tools." : "no tools.")
    : "Write a message below.";
  const parts = [heading, element("p", "", intro), ideaButtons(tools, use)];
  if (tools.length) {
    const box = withChildren(element("div"), element("h3", "", "Tools"));
    box.append(toolList(tools.slice(0, TOOLS_SHOWN)));
    const rest = tools.slice(TOOLS_SHOWN);
    if (rest.length) box.append(fold(rest.length + " more", toolList(rest)));
    parts.push(box);
  }
  const approvals = withChildren(element("div"), element("h3", "", "Approvals"));
  parts.push(withChildren(approvals, listOf(plugins ? APPROVALS : NO_APPROVALS)));
  into.replaceChildren(...parts);
};

const showPlugins = (into, session) => {
  const parts = [
    element("h2", "", "What each plugin may do"),
    inline(element("p", "faint"), "A plugin may do what it requests and the policy grants, and nothing else. " +
      "Change a grant with `sallyport policy grant` and `sallyport policy revoke`."),
  ];
  for (const plugin of session.plugins) {
    const box = element("section", "plugin");
    box.dataset.plugin = plugin.name;
    const title = element("h3", "", plugin.name + " ");
    box.append(withChildren(title, element("span", "version", plugin.version)));
    if (plugin.problem) box.append(element("p", "problem", plugin.name + " " + plugin.problem));
    if (plugin.permissions.length) box.append(listOf(plugin.permissions));
    else box.append(element("p", "faint", "nothing granted"));
    const own = session.tools.filter((tool) => tool.name.startsWith(plugin.name + "."));
    if (own.length) box.append(fold(own.length === 1 ? "1 tool" : own.length + " tools", toolList(own)));
    box.append(element("p", "digest", "digest " + plugin.digest));
    parts.push(box);
  }
  into.replaceChildren(...parts);
};

const recordRow = (record) => {
  const at = new Date(record.at_ms);
  const time = element("time", "", at.toLocaleTimeString());
  time.dateTime = at.toISOString();
  time.title = at.toLocaleString();
  const isDenied = /^(deny|denied)\b/.test(record.result) || /\bdenied\b/.test(record.result);
  const row = element("tr");
  row.dataset.kind = record.kind;
  row.append(
    withChildren(element("td"), time),
    element("td", "about", record.about),
    element("td", isDenied ? "denied" : "", record.result),
    withChildren(element("td"), listOf(record.details)),
  );
  return row;
};

const showAudit = (into, session) => {
  const parts = [
    element("h2", "", "What the audit recorded about this session"),
    inline(element("p", "faint"), "The newest first, since the program started. The complete audit: " +
      "`sallyport audit show --session " + session.session + "`."),
  ];
  if (session.records.length) {
    const names = ["Time", "About", "Result", "Details"];
    const head = withChildren(element("tr"), ...names.map((name) => {
      const made = element("th", "", name);
      made.scope = "col";
      return made;
    }));
    const rows = session.records.slice().reverse().map(recordRow);
    const made = withChildren(element("table", "records"), withChildren(element("thead"), head));
    parts.push(withChildren(made, withChildren(element("tbody"), ...rows)));
  } else {
    parts.push(element("p", "", "Nothing yet. Calls appear here when a turn ends."));
  }
  into.replaceChildren(...parts);
};

// Tabs as the keyboard expects them: Tab goes to the chosen one, arrows choose another.
const setUpTabs = () => {
  const tabs = [...document.querySelectorAll("[role=tab]")];
  const choose = (chosen) => {
    for (const tab of tabs) {
      const isChosen = tab === chosen;
      tab.setAttribute("aria-selected", String(isChosen));
      tab.tabIndex = isChosen ? 0 : -1;
      document.getElementById(tab.getAttribute("aria-controls")).hidden = !isChosen;
    }
  };
  const steps = { ArrowRight: 1, ArrowLeft: -1 };
  for (const [at, tab] of tabs.entries()) {
    tab.addEventListener("click", () => choose(tab));
    tab.addEventListener("keydown", (event) => {
      const ends = { Home: 0, End: tabs.length - 1 };
      const next = ends[event.key] ?? (steps[event.key] && at + steps[event.key] + tabs.length);
      if (next === undefined) return;
      event.preventDefault();
      choose(tabs[next % tabs.length]);
      tabs[next % tabs.length].focus();
    });
  }
  return choose;
};
