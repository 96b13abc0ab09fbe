// The page of connections: the accounts that plugins use for the user.

import { get, path, post } from "./api.js";
import { announce, button, element, fill, time, visible } from "./dom.js";

/** What the states mean. */
const STATES = { connected: "connected", expired: "expired: connect it again", disconnected: "not connected" };

/** Shows the page. */
export async function showConnections({ body, signal, fail }) {
  const list = element("div", { class: "cards" });
  body.append(element("p", { class: "faint" }, "Plugins use these accounts for you, and for nobody else."), list);
  const show = async () => {
    try {
      const { connections } = await get("/v1/connections", { signal });
      const cards = connections.map((connection) => connectionCard(connection, show));
      fill(list, cards.length ? cards : element("p", { class: "nothing" }, "No plugin has accounts."));
    } catch (error) {
      fail(error);
    }
  };
  await show();
}

function connectionCard(connection, show) {
  const { plugin, name, status } = connection;
  const output = element("p", { class: "trouble", role: "alert", hidden: true });
  const act = (work) => async () => {
    output.hidden = true;
    try {
      await work();
    } catch (error) {
      [output.textContent, output.hidden] = [error.message, false];
    }
  };
  return element(
    "article", { class: "plugin", "data-connection": plugin },
    element("h2", {}, visible(name), name === plugin ? null : element("span", { class: "faint" }, ` ${visible(plugin)}`)),
    element("p", { class: "status", "data-state": status }, STATES[status] ?? status),
    facts(connection),
    element("div", { class: "answers" }, actions(connection, act, show)),
    output,
  );
}

function facts({ account, scopes, required_scopes: required, expires_ms: expires, is_refreshed: isRefreshed, status }) {
  const missing = status === "connected" ? required.filter((scope) => !scopes.includes(scope)) : [];
  const rows = [
    account && ["Account", visible(account)],
    ["Permissions", visible((status === "disconnected" ? required : scopes).join(", ")) || "none"],
    missing.length > 0 && ["Not given", visible(missing.join(", "))],
    status === "connected" && ["Token ends", [expires ? time(expires) : "unknown", isRefreshed ? ", and is refreshed by itself" : ""]],
  ].filter(Boolean);
  return element("dl", { class: "facts" }, rows.map(([term, value]) => element("div", {}, element("dt", {}, term), element("dd", {}, value))));
}

function actions({ plugin, name, status }, act, show) {
  const connect = act(async () => {
    const { url } = await post(path("v1", "connections", plugin, "connect"));
    location.assign(url);
  });
  const disconnect = act(async () => {
    await post(path("v1", "connections", plugin, "disconnect"));
    announce(`${visible(name)} is disconnected.`);
    await show();
  });
  const label = status === "connected" ? "Connect again" : "Connect";
  return [
    button(label, connect, { class: status === "connected" ? "quiet" : "main", "aria-label": `${label}: ${visible(name)}` }),
    status !== "disconnected" && button("Disconnect", disconnect, { class: "quiet danger", "aria-label": `Disconnect: ${visible(name)}` }),
  ];
}
