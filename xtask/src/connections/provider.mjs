// A real identity server, with a service behind it that takes its tokens. It counts what it gives out.
// The walks of the connections and of the console use it.

import { once } from "node:events";
import { createServer } from "node:http";
import Provider from "oidc-provider";

export const CLIENT = { id: "sallyport", secret: "the-password-of-the-application-4711" };

// The server tells at length that it is not set up for strangers.
console.info = console.warn = () => {};

const DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code";

export class IdentityServer {
  /** Everything that may never be in a file: tokens, codes, verifiers, the application's password. */
  secrets = new Set([CLIENT.secret]);
  refreshes = 0;
  /** What was refused at the token endpoint. A device that still waits is none of it. */
  refusals = [];
  /** The latest tokens. */
  tokens = {};
  /** Requests of the service, with whether the token was good. */
  requests = [];
  /** How long the next access tokens live, in seconds. */
  life = 3600;
  /** The groups of users. */
  groups = {};
  /** Users who were removed. */
  removed = new Set();

  /** Starts the server. It sends browsers back to the `redirects`, at any port. */
  static async start(redirects = ["http://127.0.0.1/callback/service"]) {
    const server = new IdentityServer();
    server.redirects = redirects;
    const http = createServer((request, response) => server.answer(request, response));
    await once(http.listen(0, "127.0.0.1"), "listening");
    server.http = http;
    server.url = `http://127.0.0.1:${http.address().port}`;
    server.provider = new Provider(server.url, server.configuration());
    server.watch();
    return server;
  }

  configuration() {
    return {
      clients: [{
        client_id: CLIENT.id, client_secret: CLIENT.secret, application_type: "native",
        redirect_uris: this.redirects,
        grant_types: ["authorization_code", "refresh_token", DEVICE_GRANT],
      }],
      claims: { openid: ["sub"], email: ["email"], groups: ["groups"] },
      cookies: { keys: ["a key of a server that lives for a minute"] },
      features: { devInteractions: { enabled: true }, deviceFlow: { enabled: true }, revocation: { enabled: true } },
      findAccount: (_, id) => (this.removed.has(id) ? undefined : { accountId: id, claims: () => ({ sub: id, email: `${id}@example.com`, groups: this.groups[id] ?? [] }) }),
      issueRefreshToken: () => true,
      pkce: { required: (_, client) => client !== undefined },
      rotateRefreshToken: true,
      ttl: { AccessToken: () => this.life, DeviceCode: 300, Grant: 3600, Interaction: 300, RefreshToken: 3600, Session: 300 },
    };
  }

  watch() {
    const keep = (...texts) => texts.filter(Boolean).forEach((text) => this.secrets.add(text));
    this.provider.on("authorization_code.saved", ({ jti }) => keep(jti));
    this.provider.on("device_code.saved", ({ jti }) => keep(jti));
    this.provider.on("grant.success", ({ body, oidc }) => {
      keep(body.access_token, body.refresh_token, body.id_token, oidc.params.code_verifier);
      this.tokens = body;
      this.pkce = oidc.params.code_verifier;
      this.refreshes += oidc.params.grant_type === "refresh_token" ? 1 : 0;
    });
    this.provider.on("grant.error", (_, error) => {
      if (error.message !== "authorization_pending" && error.error !== "authorization_pending") this.refusals.push(error.error);
    });
    this.provider.on("server_error", (_, error) => this.refusals.push(String(error)));
  }

  async answer(request, response) {
    if (!request.url.startsWith("/api/")) return this.provider.callback()(request, response);
    const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1];
    const isGood = token !== undefined && (await this.isValid(token));
    this.requests.push(isGood);
    response.writeHead(isGood ? 200 : 401, { "content-type": "application/json" });
    response.end(JSON.stringify(isGood ? { items: ["a", "b", "c"] } : { error: "invalid_token" }));
  }

  async isValid(token) {
    const found = await this.provider.AccessToken.find(token);
    return found !== undefined && found.isValid;
  }

  /** Takes a permission away, as its user does in the settings of a service. */
  async revoke(token) {
    const login = Buffer.from(`${CLIENT.id}:${CLIENT.secret}`).toString("base64");
    const answer = await fetch(`${this.url}/token/revocation`, {
      method: "POST", headers: { authorization: `Basic ${login}` }, body: new URLSearchParams({ token }),
    });
    return answer.status;
  }

  /** The plugin whose accounts are at this server. */
  definition() {
    return JSON.stringify({
      plugin: {
        name: "service", version: "1.0.0", description: "A service.",
        auth_config: {
          auth_type: "oauth2", client_id: CLIENT.id, client_secret: "${CLIENT_SECRET}", auth_url: `${this.url}/auth`,
          token_url: `${this.url}/token`, profile_url: `${this.url}/me`, device_url: `${this.url}/device/auth`,
          required_scopes: ["openid", "email", "offline_access"],
        },
      },
      actions: {
        list_items: {
          description: "Lists the items.", parameters: { type: "object", properties: {} },
          request: { url: `${this.url}/api/items`, result: "items" },
        },
      },
    });
  }

  policy() {
    const grant = `net = [{ allow = "GET ${this.url}/api/items", to-private = true }]`;
    return `[plugin.service]\n${grant}\n\n[[rule]]\ntool = "service.*"\ndecision = "allow"\n`;
  }

  stop() {
    this.http.closeAllConnections();
    this.http.close();
  }
}
