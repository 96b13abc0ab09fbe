// The conversation: asks for news, shows it, and sends what the user does.
(() => {
  const POLL_MS = 400;
  const RETRY_MS = 2000;
  const WORDS = {
    "ready": "ready",
    "thinking": "thinking…",
    "executing": "working…",
    "waiting-for-approval": "waiting for you",
    "elsewhere": "a question is open elsewhere",
    "away": "not connected",
  };
  const AUTHORS = { user: "You", assistant: "Assistant", notice: "Notice" };
  const ANSWERS = { approved: "allowed by you", denied: "denied by you" };

  const part = (id) => document.getElementById(id);
  const view = part("view-chat"), content = part("content"), welcome = part("welcome");
  const transcript = part("transcript"), questions = part("questions"), trouble = part("trouble");
  const input = part("input"), state = part("state"), cancel = part("cancel"), waiting = part("waiting");
  const chooseTab = setUpTabs();
  const title = document.title;
  let after = 0, facts = -1;

  // Everything is below the path of this page, and carries what this page was opened with.
  const address = (name, more) => {
    const base = location.pathname.endsWith("/") ? location.pathname : location.pathname + "/";
    const query = new URLSearchParams(location.search);
    for (const [key, value] of Object.entries(more || {})) query.set(key, value);
    const text = query.toString();
    return base + name + (text ? "?" + text : "");
  };

  const get = async (name, more) => {
    const answer = await fetch(address(name, more), { cache: "no-store" });
    if (!answer.ok) throw new Error(String(answer.status));
    return answer.json();
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
      complain(told.error || "The command failed with status " + answer.status + ".");
    } catch {
      complain("The session cannot be reached. Check that Sallyport still runs.");
    }
    return false;
  };

  // The view stays at its end while the user is there, also if the window changes its size. A
  // scroll that comes from a new size is not the user's. Of an open question the beginning counts,
  // because its buttons stick to the bottom.
  // A notice of the host does not make a conversation.
  const isEmpty = () =>
    !transcript.querySelector(".user, .assistant, .call") && !questions.firstElementChild;
  const size = () => view.clientWidth + " " + view.clientHeight + " " + view.scrollHeight;
  let follows = true, seen = size();
  const end = () => {
    if (isEmpty()) return 0;
    const bottom = view.scrollHeight - view.clientHeight;
    const first = questions.firstElementChild;
    if (!first) return bottom;
    const above = first.getBoundingClientRect().top - view.getBoundingClientRect().top;
    return Math.min(bottom, view.scrollTop + above - 8);
  };
  const isAtEnd = () => view.scrollTop > end() - 48;
  const settle = () => {
    if (follows) view.scrollTop = end();
    seen = size();
  };
  view.addEventListener("scroll", () => {
    if (size() === seen) follows = isAtEnd();
    showWaiting();
  });
  // Whoever unfolds something wants to read it from its beginning.
  content.addEventListener("click", (event) => {
    if (event.target.closest("summary")) follows = false;
  });
  const sizes = new ResizeObserver(() => {
    settle();
    showWaiting();
  });
  sizes.observe(view);
  sizes.observe(content);

  // A question outside the visible part must not be overlooked.
  const showWaiting = () => {
    const first = questions.firstElementChild;
    const isVisible = first && !view.hidden &&
      first.getBoundingClientRect().top < view.getBoundingClientRect().bottom - 40;
    waiting.hidden = !first || isVisible;
  };
  waiting.addEventListener("click", () => {
    chooseTab(part("tab-chat"));
    follows = true;
    settle();
    questions.firstElementChild?.focus({ preventScroll: true });
    showWaiting();
  });

  // The rest of a long text is fetched when the user wants it.
  const restButton = (entry, show) => {
    const button = element("button", "rest quiet", "Show the remaining " + bytes(entry.more));
    button.type = "button";
    button.addEventListener("click", async () => {
      button.disabled = true;
      follows = false;
      try {
        show((await get("entry", { number: entry.number })).text);
      } catch {
        button.disabled = false;
        complain("This text is not kept any more, or the session cannot be reached.");
      }
    });
    return button;
  };

  const words = (entry, text) => {
    if (entry.format === "markdown") return markdown(text);
    const made = element("div", "text", text);
    made.dir = "auto";
    return made;
  };

  const showMessage = (entry, more) => {
    const box = element("article", "message " + entry.author + (more || ""));
    box.dataset.format = entry.format || "text";
    const author = entry.origin || AUTHORS[entry.author] || entry.author;
    box.append(element("span", "author", author), words(entry, entry.text));
    if (entry.more) {
      box.append(restButton(entry, (text) => {
        box.lastElementChild.remove();
        box.lastElementChild.replaceWith(words(entry, text));
      }));
    }
    transcript.append(box);
  };

  const callLine = (entry, tag) => {
    const line = withChildren(element(tag, "line"), element("span", "tool", entry.tool + ":"),
      " ", element("span", "outcome", entry.outcome));
    if (ANSWERS[entry.answer]) line.append(" ", element("span", "faint", ANSWERS[entry.answer]));
    return line;
  };

  const showCall = (entry) => {
    const failed = entry.outcome !== "completed";
    const box = element("div", "call" + (failed ? " failed" : ""));
    box.dataset.tool = entry.tool;
    box.dataset.outcome = entry.outcome;
    if (!entry.text) {
      box.append(callLine(entry, "div"));
    } else {
      const summary = callLine(entry, "summary");
      summary.append(element("span", "size", bytes(entry.bytes)));
      const text = element("pre", "", entry.text);
      const details = withChildren(element("details"), summary, text);
      details.open = failed;
      if (entry.more) {
        details.append(restButton(entry, (whole) => {
          text.textContent = whole;
          details.lastElementChild.remove();
        }));
      }
      box.append(details);
    }
    transcript.append(box);
  };

  // Whoever listens to the page is told the whole message once, not every piece of it.
  const showDraft = (text, isCut) => {
    transcript.querySelector(".draft")?.remove();
    if (!text) return;
    const shown = isCut ? "(The beginning appears when the answer is complete.)\n… " + text : text;
    showMessage({ author: "assistant", format: isCut ? "text" : "markdown", text: shown }, " draft");
    transcript.lastElementChild.setAttribute("aria-hidden", "true");
  };

  const answer = async (box, id, approved) => {
    const buttons = box.querySelectorAll("button");
    buttons.forEach((button) => { button.disabled = true; });
    if (await post("confirm", { id, approved })) {
      follows = true;
    } else {
      buttons.forEach((button) => { button.disabled = false; });
    }
  };

  const facet = (list, name, value, classes) => {
    if (!value) return;
    list.append(element("dt", "", name));
    list.append(value instanceof Node ? withChildren(element("dd"), value) : element("dd", classes, value));
  };

  const questionFacts = (question) => {
    const list = element("dl", "facts");
    facet(list, "Plugin", question.plugin && question.plugin + " " + question.version);
    facet(list, "Digest", question.digest, "digest");
    const may = question.permissions;
    if (may) facet(list, "It may", may.length ? listOf(may) : "nothing granted");
    return list;
  };

  const alwaysPart = (question) => {
    const made = fold(question.always ? "What \"always\" would write" : "Why there is no \"always\"");
    made.classList.add("always");
    if (question.always) {
      made.append(
        element("p", "", "Allow counts for this call only. Your answer \"always\" in `sallyport chat` " +
          "would write this rule into the policy. You can add it yourself:"),
        element("pre", "rule", question.always),
      );
    } else {
      made.append(element("p", "", "A rule of the policy asks for every such call. To stop it, " +
        "change that rule."));
    }
    return made;
  };

  const answerButtons = (box, question, titleId) => {
    const answers = element("div", "answers");
    // What was not shown whole cannot be approved.
    const offers = question.is_cut ? [] : [["approve", "Allow once", true]];
    for (const [name, label, approved] of [...offers, ["deny", "Deny", false]]) {
      const button = element("button", name, label);
      button.type = "button";
      button.setAttribute("aria-describedby", titleId);
      button.addEventListener("click", () => answer(box, question.id, approved));
      answers.append(button);
    }
    return answers;
  };

  const showQuestion = (question) => {
    const box = element("div", "question");
    box.dataset.id = String(question.id);
    box.setAttribute("role", "group");
    box.tabIndex = -1;
    const heading = element("h2", "", "Allow " + question.tool + "?");
    heading.id = "question-" + question.id;
    box.setAttribute("aria-labelledby", heading.id);
    box.append(heading);
    if (question.warning) box.append(element("p", "warning", question.warning));
    box.append(element("h3", "", "Arguments"), element("pre", "arguments", question.arguments));
    if (question.plugin) box.append(questionFacts(question), alwaysPart(question));
    if (question.is_cut) {
      box.append(element("p", "", "This question is too long to show whole, so you can only deny it here."));
    }
    box.append(answerButtons(box, question, heading.id));
    questions.append(box);
  };

  // An open question stays as it is, because a button must not move below the pointer.
  const showQuestions = (open) => {
    const ids = new Set(open.map((question) => String(question.id)));
    const shown = new Set();
    let hadFocus = false;
    for (const box of [...questions.children]) {
      if (ids.has(box.dataset.id)) shown.add(box.dataset.id);
      else {
        hadFocus ||= box.contains(document.activeElement);
        box.remove();
      }
    }
    // Not its button: a second press of a key must not answer the next question.
    if (hadFocus) (questions.firstElementChild || input).focus({ preventScroll: true });
    open.filter((question) => !shown.has(String(question.id))).forEach(showQuestion);
    document.title = (open.length ? "(" + open.length + ") " : "") + title;
  };

  const showState = (word) => {
    state.textContent = WORDS[word] || word;
    state.dataset.state = word;
    cancel.hidden = word === "ready" || word === "away";
  };

  const showFacts = async () => {
    const session = await get("session");
    part("model").textContent = session.model || "";
    part("model").hidden = !session.model;
    part("tabs").hidden = !session.plugins;
    showWelcome(welcome, session, (text) => {
      input.value = text;
      input.focus();
    });
    if (session.plugins) {
      showPlugins(part("plugins"), session);
      showAudit(part("audit"), session);
    }
  };

  const show = (news) => {
    // Fewer entries than before: another session serves this page now.
    if (news.next < after) transcript.replaceChildren();
    if (news.skipped) transcript.append(element("p", "faint", "Earlier messages are not kept."));
    showDraft("");
    for (const entry of news.events) {
      if (entry.kind === "call") showCall(entry);
      else showMessage(entry);
    }
    showDraft(news.draft, news.draft_is_cut);
    after = news.next;
    showQuestions(news.questions);
    const isElsewhere = news.state === "waiting-for-approval" && !news.questions.length;
    showState(isElsewhere ? "elsewhere" : news.state);
    welcome.hidden = !isEmpty();
    settle();
    showWaiting();
  };

  const poll = async () => {
    let wait = POLL_MS;
    try {
      const news = await get("events", { after });
      if (news.facts !== facts) {
        await showFacts();
        facts = news.facts;
      }
      show(news);
    } catch {
      showState("away");
      wait = RETRY_MS;
    }
    setTimeout(poll, wait);
  };

  const send = async () => {
    const text = input.value;
    if (text.trim() && (await post("input", { text })) && input.value === text) input.value = "";
    follows = true;
    settle();
    input.focus();
  };

  part("form").addEventListener("submit", (event) => {
    event.preventDefault();
    chooseTab(part("tab-chat"));
    send();
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      part("form").requestSubmit();
    }
  });
  cancel.addEventListener("click", () => post("cancel", {}));
  if (matchMedia("(pointer: fine)").matches) input.focus();
  poll();
})();
