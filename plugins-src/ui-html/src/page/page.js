"use strict";
(() => {
  const POLL_MS = 400;
  const RETRY_MS = 2000;
  const WORDS = {
    "ready": "ready",
    "thinking": "thinking",
    "executing": "working",
    "waiting-for-approval": "waiting for you",
    "elsewhere": "a question is open elsewhere",
    "away": "not connected",
  };
  const AUTHORS = { user: "You", assistant: "Assistant", notice: "Notice" };

  const part = (id) => document.getElementById(id);
  const transcript = part("transcript"), questions = part("questions"), trouble = part("trouble");
  const input = part("input"), state = part("state"), cancel = part("cancel");
  let after = 0;

  // Everything is below the path of this page, and carries what this page was opened with.
  const address = (name, more) => {
    const base = location.pathname.endsWith("/") ? location.pathname : location.pathname + "/";
    const query = new URLSearchParams(location.search);
    for (const [key, value] of Object.entries(more || {})) query.set(key, value);
    const text = query.toString();
    return base + name + (text ? "?" + text : "");
  };

  // The only way in which foreign text gets onto the page.
  const element = (tag, classes, text) => {
    const made = document.createElement(tag);
    made.className = classes;
    if (text !== undefined) made.textContent = text;
    return made;
  };

  // A little Markdown, built of elements: what is not understood stays as it was written.
  const INLINE = /`([^`]+)`|\*\*([^*]+)\*\*|\*([^*\s][^*]*)\*/g;

  const inline = (into, text) => {
    let end = 0;
    for (const found of text.matchAll(INLINE)) {
      into.append(text.slice(end, found.index));
      const [whole, code, strong, emphasis] = found;
      if (code) into.append(element("code", "", code));
      else if (strong) into.append(element("strong", "", strong));
      else into.append(element("em", "", emphasis));
      end = found.index + whole.length;
    }
    into.append(text.slice(end));
    return into;
  };

  const line = (text) => {
    const heading = /^#{1,6} +(.*)$/.exec(text);
    if (heading) return inline(element("div", "heading"), heading[1]);
    const item = /^ *(?:[-*+]|(\d+)[.)]) +(.*)$/.exec(text);
    if (item) return inline(element("div", "item"), (item[1] ? item[1] + ". " : "\u2022 ") + item[2]);
    return inline(element("div", ""), text || "\u00a0");
  };

  const markdown = (text) => {
    const box = element("div", "text");
    text.split(/^```.*$/m).forEach((block, at) => {
      const words = block.replace(/^\n|\n$/g, "");
      if (at % 2) box.append(element("pre", "code", words));
      else if (words) box.append(...words.split("\n").map(line));
    });
    return box;
  };

  const complain = (text) => {
    trouble.textContent = text || "";
    trouble.hidden = !text;
  };

  const post = async (name, body) => {
    try {
      const answer = await fetch(address(name), {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify(body),
      });
      if (answer.ok) {
        complain("");
        return true;
      }
      const told = await answer.json().catch(() => ({}));
      complain(told.error || "The answer was " + answer.status + ".");
    } catch {
      complain("The session cannot be reached.");
    }
    return false;
  };

  const showMessage = (entry, more) => {
    const box = element("article", "message " + entry.author + (more || ""));
    box.dataset.format = entry.format || "text";
    box.append(element("span", "author", entry.origin || AUTHORS[entry.author] || entry.author));
    box.append(entry.format === "markdown" ? markdown(entry.text) : element("div", "text", entry.text));
    transcript.append(box);
  };

  const showCall = (entry) => {
    const failed = entry.outcome === "completed" ? "" : " failed";
    const text = entry.tool + ": " + entry.outcome + (entry.text ? "\n" + entry.text : "");
    const line = element("p", "call" + failed, text);
    line.dataset.tool = entry.tool;
    line.dataset.outcome = entry.outcome;
    transcript.append(line);
  };

  // Whoever listens to the page is told the whole message once, not every piece of it.
  const showDraft = (text) => {
    const old = transcript.querySelector(".draft");
    if (old) old.remove();
    if (!text) return;
    showMessage({ author: "assistant", text }, " draft");
    transcript.lastElementChild.setAttribute("aria-hidden", "true");
  };

  const answer = async (box, id, approved) => {
    const buttons = box.querySelectorAll("button");
    buttons.forEach((button) => { button.disabled = true; });
    if (!(await post("confirm", { id, approved }))) {
      buttons.forEach((button) => { button.disabled = false; });
    }
  };

  const showQuestion = (question) => {
    const box = element("div", "question");
    box.dataset.id = String(question.id);
    box.setAttribute("role", "group");
    const title = element("h2", "", "Allow " + question.tool + "?");
    title.id = "question-" + question.id;
    box.setAttribute("aria-labelledby", title.id);
    box.append(title);
    if (question.warning) box.append(element("p", "warning", question.warning));
    box.append(element("pre", "arguments", question.arguments));
    const answers = element("div", "answers");
    // Nobody agrees to what was not shown.
    const offers = question.is_cut ? [] : [["approve", "Approve", true]];
    for (const [name, label, approved] of [...offers, ["deny", "Deny", false]]) {
      const button = element("button", name, label);
      button.type = "button";
      button.setAttribute("aria-describedby", title.id);
      button.addEventListener("click", () => answer(box, question.id, approved));
      answers.append(button);
    }
    box.append(answers);
    questions.append(box);
  };

  // A question that stands there stays as it is: nobody wants a button to move below the pointer.
  const showQuestions = (open) => {
    const ids = new Set(open.map((question) => String(question.id)));
    const shown = new Set();
    for (const box of [...questions.children]) {
      if (ids.has(box.dataset.id)) shown.add(box.dataset.id);
      else box.remove();
    }
    open.filter((question) => !shown.has(String(question.id))).forEach(showQuestion);
  };

  const showState = (word) => {
    state.textContent = WORDS[word] || word;
    state.dataset.state = word;
    cancel.hidden = word === "ready" || word === "away";
  };

  const isAtEnd = () =>
    transcript.scrollHeight - transcript.scrollTop - transcript.clientHeight < 48;

  const show = (news) => {
    const follows = isAtEnd();
    // Fewer entries than before: another session serves this page now.
    if (news.next < after) transcript.replaceChildren();
    if (news.skipped) transcript.append(element("p", "call", "Earlier messages are not kept."));
    showDraft("");
    for (const entry of news.events) {
      if (entry.kind === "call") showCall(entry);
      else showMessage(entry);
    }
    showDraft(news.draft);
    after = news.next;
    showQuestions(news.questions);
    const isElsewhere = news.state === "waiting-for-approval" && !news.questions.length;
    showState(isElsewhere ? "elsewhere" : news.state);
    if (follows) transcript.scrollTop = transcript.scrollHeight;
  };

  const poll = async () => {
    let wait = POLL_MS;
    try {
      const answer = await fetch(address("events", { after }), { cache: "no-store" });
      if (!answer.ok) throw new Error(String(answer.status));
      show(await answer.json());
    } catch {
      showState("away");
      wait = RETRY_MS;
    }
    setTimeout(poll, wait);
  };

  const send = async () => {
    const text = input.value;
    if (text.trim() && (await post("input", { text }))) input.value = "";
    input.focus();
  };

  part("form").addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      send();
    }
  });
  cancel.addEventListener("click", () => post("cancel", {}));
  input.focus();
  poll();
})();
