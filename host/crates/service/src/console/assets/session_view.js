// One session: its conversation, its questions, and the field for the next input.

import { download, followEvents, get, path, post } from "./api.js";
import { onApprovals, refreshApprovals } from "./approval_list.js";
import { showCards } from "./approvals.js";
import { announce, button, element, fill, visible } from "./dom.js";
import { showEvent, showExport, showRecords } from "./history.js";
import { Transcript } from "./transcript.js";

/** Words for what a session does. */
const ACTIVITIES = {
  ready: "ready", thinking: "thinking…", executing: "running tools…",
  "waiting-for-approval": "waiting for an approval",
};

/** The title of a session. */
export const titleOf = ({ stored }) => stored?.title || "New session";

/** Shows a session in its pane. */
export async function showSession({ pane, id, user, signal, changed, fail }) {
  const view = new SessionView({ pane, id, user, signal, changed });
  try {
    await view.open();
  } catch (error) {
    fail(error);
  }
}

class SessionView {
  constructor({ pane, id, user, signal, changed }) {
    Object.assign(this, { id, signal, changed, user, isOpen: false, activity: "ready" });
    this.log = element("div", { class: "transcript", role: "log", "aria-label": "Conversation", "aria-live": "polite" });
    this.transcript = new Transcript(this.log);
    this.questions = element("div", { class: "cards", "aria-label": "Questions of this session", role: "group" });
    this.title = element("h2", { class: "session-title", dir: "auto" });
    this.state = element("span", { class: "state", role: "status" });
    this.trouble = element("p", { class: "trouble", role: "alert", hidden: true });
    this.input = element("textarea", { rows: "1", "aria-label": "Message", placeholder: "Write a message", enterkeyhint: "send" });
    this.submit = element("button", { type: "submit", class: "main" }, "Send");
    this.actions = this.#makeActions();
    fill(pane, this.#head(), element("div", { class: "scroller", tabindex: "0", "aria-label": "Conversation", role: "region" }, this.log, this.questions), this.#form());
  }

  #head() {
    return element(
      "div", { class: "session-head" },
      element("a", { class: "back", href: "#/chat" }, "All sessions"),
      this.title, this.state,
      element("div", { class: "actions" }, Object.values(this.actions)),
    );
  }

  #makeActions() {
    const send = (command) => () => this.#command(command);
    return {
      stop: button("Stop", send({ type: "cancel" }), { class: "quiet danger" }),
      retry: button("Retry", send({ type: "retry" }), { class: "quiet" }),
      undo: button("Undo", send({ type: "undo" }), { class: "quiet" }),
      close: button("Close", () => this.#close(), { class: "quiet" }),
      resume: button("Resume", () => this.#resume(), { class: "quiet" }),
      save: button("Export", () => this.#export(), { class: "quiet" }),
    };
  }

  #form() {
    const form = element("form", { class: "composer" }, this.trouble, this.input, this.submit);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#say();
    });
    this.input.addEventListener("keydown", (event) => {
      const isSend = event.key === "Enter" && !event.shiftKey && !event.isComposing;
      if (!isSend) return;
      event.preventDefault();
      form.requestSubmit();
    });
    return form;
  }

  /** Reads the session, and follows it if it is open. */
  async open() {
    const lastId = await this.#read();
    onApprovals((cards) => this.#showQuestions(cards), this.signal);
    if (this.isOpen) this.#follow(lastId);
    // On a small screen the focus would open the keyboard over the conversation.
    if (matchMedia("(min-width: 52rem)").matches) this.input.focus({ preventScroll: true });
  }

  /** Shows the session as it is now, and returns the ID of its newest event. */
  async #read() {
    const view = await get(path("v1", "sessions", this.id), { signal: this.signal });
    this.title.textContent = visible(titleOf(view));
    if (view.snapshot) {
      showRecords(this.transcript, view.snapshot.records);
      this.#show(true, view.snapshot.activity);
    } else {
      const exported = await get(path("v1", "sessions", this.id, "export"), { signal: this.signal });
      showExport(this.transcript, exported);
      this.#show(false, "ready");
    }
    return view.last_event_id;
  }

  #follow(lastId) {
    const on = {
      event: (event) => this.#take(event),
      connected: (isConnected) => this.#showConnection(isConnected),
      forgotten: () => this.#read(),
      closed: () => this.#showClosed(),
    };
    followEvents(this.id, lastId, on, this.signal);
  }

  #take(event) {
    if (event.type === "state") this.#show(true, event.state);
    if (event.type.startsWith("approval-")) refreshApprovals();
    if (event.type === "turn-ended") announce("The answer is complete.");
    if (["turn-started", "turn-ended"].includes(event.type)) this.#refreshTitle();
    showEvent(this.transcript, event);
  }

  /** A session has its title from its first input. */
  #refreshTitle() {
    this.changed();
    get(path("v1", "sessions", this.id), { signal: this.signal })
      .then((view) => (this.title.textContent = visible(titleOf(view))))
      .catch(() => null);
  }

  #showConnection(isConnected) {
    this.isConnected = isConnected;
    this.#showState();
  }

  #showClosed() {
    this.transcript.stop();
    this.#show(false, "ready");
    this.changed();
  }

  #show(isOpen, activity) {
    Object.assign(this, { isOpen, activity });
    const { stop, retry, undo, close, resume } = this.actions;
    const isBusy = isOpen && activity !== "ready";
    stop.hidden = !isBusy;
    retry.hidden = undo.hidden = !isOpen || isBusy;
    close.hidden = !isOpen;
    resume.hidden = isOpen;
    this.log.setAttribute("aria-busy", String(activity === "thinking"));
    this.#showState();
  }

  #showState() {
    const isLost = this.isOpen && this.isConnected === false;
    this.state.dataset.state = isLost ? "lost" : this.isOpen ? this.activity : "closed";
    const words = this.isOpen ? (ACTIVITIES[this.activity] ?? this.activity) : "closed";
    this.state.textContent = isLost ? "Connection lost. Reconnecting…" : words;
  }

  #showQuestions(cards) {
    const own = cards.filter(({ question }) => question.session_id === this.id);
    showCards(this.questions, own, this.user, "");
    const scroller = this.questions.parentElement;
    if (own.length) scroller.scrollTop = scroller.scrollHeight;
  }

  async #say() {
    const text = this.input.value;
    if (!text.trim()) return;
    this.submit.disabled = true;
    const sent = await this.#command({ type: "submit-input", input: { text } });
    this.submit.disabled = false;
    if (sent && this.input.value === text) this.input.value = "";
    this.input.focus();
  }

  /** Gives the session a command. One that is closed is opened first. */
  async #command(command) {
    return this.#attempt(async () => {
      if (!this.isOpen) await this.#reopen();
      await post(path("v1", "sessions", this.id, "commands"), command);
    });
  }

  async #reopen() {
    await post("/v1/sessions", { resume: this.id });
    this.#follow(await this.#read());
    this.changed();
  }

  async #resume() {
    await this.#attempt(() => this.#reopen());
    this.input.focus();
  }

  async #close() {
    await this.#attempt(() => post(path("v1", "sessions", this.id, "close")));
  }

  async #export() {
    const exported = path("v1", "sessions", this.id, "export");
    await this.#attempt(() => download(`${exported}?format=markdown`, `${this.id}.md`));
  }

  /** Does something, and says why if it fails. */
  async #attempt(work) {
    this.trouble.hidden = true;
    try {
      await work();
      return true;
    } catch (error) {
      if (error.name === "AbortError") return false;
      this.trouble.textContent = error.message;
      this.trouble.hidden = false;
      return false;
    }
  }
}
