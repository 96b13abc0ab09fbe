// The real program in a home of its own, and a search of everything that it wrote and printed.

import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** How long anything may take. Every wait ends earlier, with what it waits for. */
const PATIENCE_MS = 120_000;

/** The colours and moves of a terminal. */
const CODES = /\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]|\x1b[=>78]|\r/g;

/** Waits until a condition holds, and returns what it finds. */
export async function until(what, find) {
  const end = Date.now() + PATIENCE_MS;
  for (;;) {
    const found = await find();
    if (found) return found;
    if (Date.now() > end) throw new Error(`waited in vain: ${what()}`);
    await new Promise((later) => setTimeout(later, 25));
  }
}

export class Home {
  /** All that was printed. */
  printed = [];

  constructor(program, folder, env) {
    Object.assign(this, { program, folder });
    this.env = { PATH: process.env.PATH, HOME: folder, SALLYPORT_HOME: folder, SALLYPORT_COMPILE_WAIT: "300s", SALLYPORT_COLOR: "never", SALLYPORT_BROWSER: "none", ...env };
  }

  write(path, text) {
    const file = join(this.folder, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }

  /** Starts the program. What it prints is in `text`, and `ended` waits for its end. */
  start(args, { command = [this.program, ...args], env = {}, stdin = "ignore" } = {}) {
    const child = spawn(command[0], command.slice(1), { cwd: this.folder, env: { ...this.env, ...env }, stdio: [stdin, "pipe", "pipe"] });
    const run = { child, text: "", stdout: "" };
    child.stdout.on("data", (piece) => {
      run.stdout += piece;
      run.text += piece;
    });
    child.stderr.on("data", (piece) => (run.text += piece));
    run.ended = new Promise((done, failed) => child.on("error", failed).on("close", (code) => done(code)));
    run.ended.then(() => this.printed.push(run.text), () => {});
    run.sees = (wanted) => until(() => `${wanted} in ${JSON.stringify(run.text.slice(-2000))}`, () => wanted.exec(run.text));
    return run;
  }

  /** Runs the program to its end. */
  async run(...args) {
    const run = this.start(args);
    return { code: await run.ended, text: run.text, stdout: run.stdout };
  }

  /** Calls a tool, and returns its report. */
  async call(tool, args = {}) {
    const { stdout, text } = await this.run("call", tool, JSON.stringify(args), "--output", "json");
    try {
      return JSON.parse(stdout);
    } catch {
      throw new Error(`${tool} printed no report: ${text}`);
    }
  }

  /** Starts the program at a terminal, which answers where its cursor is, as a terminal does. */
  startAtTerminal(args, env) {
    const words = [this.program, ...args].map((word) => `'${word}'`).join(" ");
    const shell = `stty rows 50 cols 200; exec ${words}`;
    const run = this.start([], { command: ["script", "--quiet", "--return", "--flush", "--command", shell, "/dev/null"], stdin: "pipe", env: { TERM: "xterm", SHELL: "/bin/sh", ...env } });
    run.child.stdout.on("data", (piece) => {
      for (const _ of String(piece).matchAll(/\x1b\[6n/g)) run.child.stdin.write("\x1b[1;1R");
    });
    run.types = (keys) => run.child.stdin.write(keys);
    run.shows = (wanted) => until(() => `${wanted} in ${JSON.stringify(run.text.slice(-2000))}`, () => run.text.replace(CODES, "").includes(wanted));
    return run;
  }

  /** The files of the home, as paths. */
  files() {
    const entries = readdirSync(this.folder, { recursive: true, withFileTypes: true });
    return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  }

  /** Where texts are, among the files and what was printed, in any form of them. */
  search(texts) {
    const needles = [...texts].flatMap((text) => formsOf(text).map((form) => [text, Buffer.from(form)]));
    const places = [...this.files().map((file) => [file, readFileSync(file)]), ...this.printed.map((text, index) => [`output ${index}`, Buffer.from(text)])];
    return places.flatMap(([place, bytes]) => needles.filter(([, form]) => bytes.includes(form)).map(([text]) => `${text.slice(0, 6)}… in ${place}`));
  }
}

/** The forms in which a text may be written down: as it is, base64 of both alphabets at each offset, hex, percent. */
function formsOf(text) {
  const bytes = Buffer.from(text);
  const forms = [text, [...text].reverse().join(""), encodeURIComponent(text), bytes.toString("hex"), bytes.toString("hex").toUpperCase()];
  forms.push([...bytes].map((byte) => `%${byte.toString(16).padStart(2, "0").toUpperCase()}`).join(""));
  for (const offset of [0, 1, 2]) {
    const whole = Buffer.concat([Buffer.alloc(offset), bytes]).toString("base64");
    // Signs at both ends depend on what is beside them.
    const inner = whole.slice(Math.ceil((offset * 8) / 6), Math.floor(((offset + bytes.length) * 8) / 6));
    forms.push(inner, inner.replaceAll("+", "-").replaceAll("/", "_"));
  }
  return [...new Set(forms)];
}
