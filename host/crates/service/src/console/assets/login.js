// The page that asks for a token.

import { post } from "./api.js";
import { element, fill } from "./dom.js";

/** The names of this machine. */
const LOCAL_HOSTS = ["localhost", "127.0.0.1", "[::1]"];

/** Shows the form. `entered` receives the user. */
export function showLogin(main, entered, reason) {
  const trouble = element("p", { class: "trouble", role: "alert", hidden: !reason }, reason ?? "");
  const input = element("input", {
    id: "token", type: "password", name: "token", required: true, spellcheck: "false",
    autocomplete: "current-password", autocapitalize: "off",
  });
  const submit = element("button", { type: "submit", class: "main" }, "Log in");
  const form = element(
    "form", { class: "login", method: "post", action: "/console/login" },
    element("h1", { id: "title", tabindex: "-1" }, "Log in to Sallyport"),
    element("label", { for: "token" }, "Token"),
    input,
    trouble,
    submit,
    help(),
    warning(),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    logIn(form, input, submit, trouble, entered);
  });
  fill(main, form);
  input.focus();
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

function help() {
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
