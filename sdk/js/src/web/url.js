// `URL` as the URL Standard has it, except that names of hosts are not mapped by Unicode's tables:
// letters outside ASCII become Punycode in lower case. Only parsing; of the setters, `search`,
// `hash` and `pathname` exist.

import { hostOf } from "./url-host.js";
import { URLSearchParams } from "./search-params.js";

const DEFAULT_PORTS = { "http:": "80", "https:": "443", "ftp:": "21", "ws:": "80", "wss:": "443", "file:": "" };

const SCHEME = /^([a-zA-Z][a-zA-Z0-9+.-]*):/;

/** A parsed address. */
export class URL {
  #parts;
  #params;

  constructor(input, base = undefined) {
    const parts = parse(clean(input), base === undefined ? undefined : parse(clean(base)));
    if (!parts) throw invalidUrl(input);
    this.#parts = parts;
    this.#params = new URLSearchParams(parts.search, () => {
      const query = String(this.#params);
      this.#parts.search = query === "" ? "" : `?${query}`;
    });
  }

  static canParse(input, base) {
    try {
      return Boolean(new URL(input, base));
    } catch {
      return false;
    }
  }

  static parse(input, base) {
    return URL.canParse(input, base) ? new URL(input, base) : null;
  }

  get protocol() { return this.#parts.protocol; }
  get username() { return this.#parts.username; }
  get password() { return this.#parts.password; }
  get hostname() { return this.#parts.hostname ?? ""; }
  get port() { return this.#parts.port; }
  get host() { return this.hostname + (this.port && `:${this.port}`); }
  get pathname() { return this.#parts.pathname; }
  get search() { return this.#parts.search === "?" ? "" : this.#parts.search; }
  get hash() { return this.#parts.hash === "#" ? "" : this.#parts.hash; }
  get searchParams() { return this.#params; }

  set search(query) {
    const text = String(query).replace(/^\?/, "");
    this.#parts.search = text && `?${escapePart(text, QUERY)}`;
    this.#params = new URL(this.href).#params;
  }

  set hash(fragment) {
    const text = String(fragment).replace(/^#/, "");
    this.#parts.hash = text && `#${escapePart(text, FRAGMENT)}`;
  }

  set pathname(path) {
    this.#parts.pathname = pathOf(this.#parts.protocol, String(path), []);
  }

  get origin() {
    const isTuple = this.protocol in DEFAULT_PORTS && this.protocol !== "file:";
    return isTuple ? `${this.protocol}//${this.host}` : "null";
  }

  get href() {
    const { protocol, username, password, hostname, pathname, search, hash } = this.#parts;
    const user = username || password ? `${username}${password && `:${password}`}@` : "";
    const authority = hostname === undefined ? "" : `//${user}${this.host}`;
    const guard = hostname === undefined && pathname.startsWith("//") ? "/." : "";
    return protocol + authority + guard + pathname + search + hash;
  }

  toString() { return this.href; }
  toJSON() { return this.href; }
}

function invalidUrl(input) {
  return Object.assign(new TypeError(`invalid URL: ${String(input).slice(0, 200)}`), { code: "ERR_INVALID_URL" });
}

/** Removes what the standard ignores: controls and spaces at the ends, tabs and line breaks. */
function clean(input) {
  return String(input).toWellFormed().replace(/^[\0- ]+|[\0- ]+$/g, "").replace(/[\t\n\r]/g, "");
}

/** Parses an address, relative to `base` if it has no scheme. Returns `undefined` if it is invalid. */
function parse(text, base) {
  const [main, hash] = splitAt(text, "#");
  const found = SCHEME.exec(main);
  const tail = hash === undefined ? "" : `#${escapePart(hash, FRAGMENT)}`;
  if (!found) return base && relative(main, base, tail);
  const protocol = `${found[1].toLowerCase()}:`;
  const rest = main.slice(found[0].length);
  const isSpecial = protocol in DEFAULT_PORTS;
  const isRelative = isSpecial && base?.protocol === protocol && !/^[\\/]/.test(rest);
  if (isRelative) return relative(rest, base, tail);
  return absolute(protocol, rest, tail);
}

function splitAt(text, mark) {
  const at = text.indexOf(mark);
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)];
}

function absolute(protocol, rest, hash) {
  const isSpecial = protocol in DEFAULT_PORTS;
  const [before, query] = splitAt(rest, "?");
  const search = query === undefined ? "" : `?${escapePart(query, isSpecial ? SPECIAL_QUERY : QUERY)}`;
  const path = isSpecial ? before.replaceAll("\\", "/") : before;
  if (protocol === "file:") return fileUrl(path, search, hash);
  if (isSpecial) return withAuthority(protocol, path.replace(/^\/*/, ""), search, hash);
  if (path.startsWith("//")) return withAuthority(protocol, path.slice(2), search, hash);
  const pathname = path.startsWith("/") ? pathOf(protocol, path, []) : escapePart(path, CONTROLS);
  return { protocol, username: "", password: "", hostname: undefined, port: "", pathname, search, hash };
}

function fileUrl(path, search, hash) {
  const [host, rest] = path.startsWith("//") ? cutAuthority(path.slice(2)) : ["", path];
  const hostname = host === "" ? "" : hostOf(host, true);
  if (hostname === undefined) return undefined;
  const pathname = pathOf("file:", rest, []);
  return { protocol: "file:", username: "", password: "", hostname: hostname === "localhost" ? "" : hostname, port: "", pathname, search, hash };
}

function cutAuthority(text) {
  const at = text.indexOf("/");
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at)];
}

function withAuthority(protocol, text, search, hash) {
  const isSpecial = protocol in DEFAULT_PORTS;
  const [authority, path] = cutAuthority(text);
  const at = authority.lastIndexOf("@");
  const [username, password = ""] = splitAt(authority.slice(0, Math.max(at, 0)), ":");
  const place = /^(.*?)(?::(\d*))?$/s.exec(authority.slice(at + 1));
  const bracketed = /^(\[.*\])(?::(\d*))?$/s.exec(authority.slice(at + 1));
  const [, name, port = ""] = bracketed ?? place;
  const hostname = name === "" && !isSpecial ? "" : hostOf(name, isSpecial);
  if (hostname === undefined || (hostname === "" && isSpecial) || Number(port) > 65535) return undefined;
  return {
    protocol,
    username: escapePart(username, USER),
    password: escapePart(password, USER),
    hostname,
    port: port === "" || String(Number(port)) === DEFAULT_PORTS[protocol] ? "" : String(Number(port)),
    pathname: path === "" && !isSpecial ? "" : pathOf(protocol, path, []),
    search,
    hash,
  };
}

function relative(text, base, hash) {
  const isSpecial = base.protocol in DEFAULT_PORTS;
  const isOpaque = base.hostname === undefined && !base.pathname.startsWith("/");
  if (isOpaque) return text === "" && hash !== "" ? { ...base, hash } : undefined;
  const [before, query] = splitAt(text, "?");
  const path = isSpecial ? before.replaceAll("\\", "/") : before;
  if (path.startsWith("//")) return absolute(base.protocol, text, hash);
  const search = query === undefined ? "" : `?${escapePart(query, isSpecial ? SPECIAL_QUERY : QUERY)}`;
  if (path === "") return { ...base, search: query === undefined ? base.search : search, hash };
  const folder = path.startsWith("/") ? [] : base.pathname.split("/").slice(1, -1);
  return { ...base, pathname: pathOf(base.protocol, path, folder), search, hash };
}

/** Resolves `.` and `..`, and escapes the rest. */
function pathOf(protocol, path, folder) {
  const isSpecial = protocol in DEFAULT_PORTS;
  const parts = (isSpecial ? path.replaceAll("\\", "/") : path).replace(/^\//, "").split("/");
  const done = [...folder];
  parts.forEach((part, index) => {
    const isLast = index === parts.length - 1;
    const plain = part.replace(/%2e/gi, ".");
    if (plain === "..") done.pop();
    else if (plain !== ".") done.push(escapePart(part, PATH));
    if (isLast && (plain === "." || plain === "..")) done.push("");
  });
  return `/${done.join("/")}`;
}

// The characters of ASCII that each part escapes, besides controls and everything beyond ASCII.
const CONTROLS = "";
const FRAGMENT = ' "<>`';
const QUERY = ' "#<>';
const SPECIAL_QUERY = ` "#<>'`;
const PATH = ' "#<>?^`{}';
const USER = ' "#<>?^`{}/:;=@[\\]|';

function escapePart(text, set) {
  let escaped = "";
  for (const char of text) {
    const isPlain = char > "\x1f" && char < "\x7f" && !set.includes(char);
    escaped += isPlain ? char : escapeChar(char);
  }
  return escaped;
}

function escapeChar(char) {
  const bytes = new TextEncoder().encode(char);
  return Array.from(bytes, (byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`).join("");
}
