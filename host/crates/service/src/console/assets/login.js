// The page that logs in: at the identity server, if there is one, or with a token.

import { get, post } from "./api.js";
import { element, fill } from "./dom.js";

/** The names of this machine. */
const LOCAL_HOSTS = ["localhost", "127.0.0.1", "[::1]"];

/** Shows the form. `entered` receives the user. */
export async function showLogin(main, entered, reason) {
  const server = await identityServer();
  const trouble = element("p", { class: "trouble", role: "alert", hidden: !reason }, reason ?? "");
  const input = element("input", {
    id: "token", type: "password", name: "token", required: true, spellcheck: "false",
    autocomplete: "current-password", autocapitalize: "off",
  });
  const submit = element("button", { type: "submit", class: server ? "" : "main" }, "Log in");
  const signOn = server && element("button", { id: "sign-on", type: "button", class: "main" }, `Log in at ${server}`);
  const form = element(
    "form", { class: "login", method: "post", action: "/console/login" },
    element("h1", { id: "title", tabindex: "-1" }, "Log in to Sallyport"),
    signOn,
    element("label", { for: "token" }, server ? "Or a token" : "Token"),
    input,
    trouble,
    submit,
    help(server),
    warning(),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    logIn(form, input, submit, trouble, entered);
  });
  signOn?.addEventListener("click", () => goToServer(signOn, trouble));
  fill(main, form);
  (signOn ?? input).focus();
}

/** The name of the identity server; null without one, or if the service does not answer. */
async function identityServer() {
  const offer = await get("/console/sign-on", { isLogin: true }).catch(() => null);
  return offer?.server ?? null;
}

/** Leads to the page of the identity server, which leads back. */
async function goToServer(button, trouble) {
  button.disabled = true;
  // A browser that goes back may show the page as it was.
  addEventListener("pageshow", () => (button.disabled = false), { once: true });
  try {
    const { url } = await post("/console/sign-on", undefined, { isLogin: true });
    location.assign(url);
  } catch (error) {
    trouble.textContent = error.message;
    trouble.hidden = false;
    button.disabled = false;
  }
}

async function logIn(form, input, submit, trouble, entered) {
  submit.disabled = true;
  try {
    const user = await post("/console/login", { token: input.value.trim() }, { isLogin: true });
    form.reset();
    entered(user);
  } catch (error) {
    trouble.textContent = error.message;
    trouble.hidden = false;
    input.focus();
    input.select();
  } finally {
    submit.disabled = false;
  }
}

function help(server) {
  if (server) {
    const words = "The identity server decides who you are, and the operator of this service what you may do.";
    return element("p", { class: "faint" }, words);
  }
  return element(
    "p", { class: "faint" },
    "Without any user, ", element("code", {}, "sallyport serve"), " prints a token that is valid until it ends. " +
    "An operator makes others with ", element("code", {}, "sallyport serve token add NAME --role ROLE"), ".",
  );
}

function warning() {
  if (location.protocol === "https:" || LOCAL_HOSTS.includes(location.hostname)) return null;
  const text = "This connection is not encrypted: others in the network can read your token. " +
    "Ask the operator for an address that begins with https.";
  return element("p", { class: "trouble" }, text);
}
