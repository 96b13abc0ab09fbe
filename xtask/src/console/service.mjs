// A service with a scripted model and some plugins, in a home of its own.

import { spawn, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";

/** Text that would do something if it were not text. */
export const HOSTILE = [
  "<script>window.hostile = 1</script>",
  "<img src=x onerror='window.hostile = 2'>",
  "[a link](javascript:window.hostile=3) and [another](data:text/html,<script>window.hostile=4</script>)",
  "![a picture](http://127.0.0.1:9/pixel.png)",
  "[bank.example](https://elsewhere.example/login)",
  "right to left: \u202Egpj.exe",
  `\`\`\`\n</code><script>window.hostile = 5</script>\n\`\`\``,
].join("\n\n");

/** One line of a megabyte. */
const LONG_LINE = `[${"*".repeat(1 << 19)}${"<b>".repeat(1 << 18)}`;

const MARKDOWN = `# Notes of the day

A list with **weight** and \`code\`:

1. The first point, with a [page](https://example.org/notes) to read
2. The second one
   - a point below it
   - another one

| tool | runs |
|---|---|
| clock.get_time | without asking |
| files.write | after an approval |

> A quotation of two lines,
> which is here.

\`\`\`rust
fn main() { println!("a line of code that is rather long, so that it has to wrap or to scroll"); }
\`\`\``;

const ANSWERS = { "show hostile": HOSTILE, "show a long line": LONG_LINE, "show markdown": MARKDOWN };

function write(id, text) {
  const args = JSON.stringify({ path: "/notes/today.md", text, mode: "overwrite" });
  return { tool_calls: [{ index: 0, id, type: "function", function: { name: "files__write", arguments: args } }] };
}

let calls = 0;

/** What the model says: it goes by the last message, so that an undo or a retry does no harm. */
function nextDelta(messages) {
  const last = messages.at(-1);
  const text = typeof last.content === "string" ? last.content : (last.content ?? []).map((part) => part.text ?? "").join("");
  if (last.role === "tool") return { content: text.includes('"error"') ? "I have **not** written the note." : "The note is **written**." };
  const found = Object.keys(ANSWERS).find((words) => text.includes(words));
  if (found) return { content: ANSWERS[found] };
  if (!text.includes("write")) return { content: "Good day." };
  calls += 1;
  return write(`c${calls}`, "# Today\n- buy <b>milk</b>\n- call Ada\n");
}

/** Starts the model, and returns its address. */
export async function startModel() {
  const model = createServer((request, response) => {
    let body = "";
    request.on("data", (piece) => (body += piece)).on("end", () => answer(response, nextDelta(JSON.parse(body).messages)));
  });
  await new Promise((listening) => model.listen(0, "127.0.0.1", listening));
  return { url: `http://127.0.0.1:${model.address().port}/v1`, stop: () => model.close() };
}

function answer(response, delta) {
  response.writeHead(200, { "content-type": "text/event-stream", connection: "close" });
  const send = (part, finish = null) => {
    const choice = { index: 0, delta: part, finish_reason: finish };
    response.write(`data: ${JSON.stringify({ id: "x", object: "chat.completion.chunk", choices: [choice] })}\n\n`);
  };
  send({ role: "assistant" });
  if (delta.content) delta.content.match(/[^]{1,4000}/g).forEach((content) => send({ content }));
  else send(delta);
  send({}, delta.tool_calls ? "tool_calls" : "stop");
  const usage = { prompt_tokens: 1200, completion_tokens: 80, total_tokens: 1280 };
  response.write(`data: ${JSON.stringify({ id: "x", object: "chat.completion.chunk", choices: [], usage })}\n\n`);
  response.end("data: [DONE]\n\n");
}

/** A service. */
export class Service {
  constructor(program, home, model) {
    this.program = program;
    this.env = {
      ...process.env, SALLYPORT_HOME: home, SALLYPORT_COMPILE_WAIT: "300s", SALLYPORT_COLOR: "never",
      OPENAI_BASE_URL: model, OPENAI_API_KEY: "k", SALLYPORT_MODEL: "openai/m",
    };
  }

  /** Makes the home. */
  static prepare(home, plugins, names) {
    const notes = join(home, "notes");
    mkdirSync(notes, { recursive: true });
    for (const name of names) cpSync(join(plugins, name), join(home, "plugins", name), { recursive: true });
    const folder = JSON.stringify(notes);
    writeFileSync(join(home, "policy.toml"), `[plugin.files]\nfs = [{ path = ${folder}, mount = "/notes", access = "read-write" }]\n`);
  }

  /** Runs a command to its end, and returns what it prints. */
  run(...args) {
    const done = spawnSync(this.program, args, { env: this.env, encoding: "utf8" });
    if (done.status !== 0) throw new Error(`${args.join(" ")}: ${done.stderr}`);
    return done.stdout.trim();
  }

  /** Starts it, and waits until it says where the console is. */
  async start(listen = "127.0.0.1:0") {
    this.child = spawn(this.program, ["serve", "--listen", listen], { env: this.env, stdio: ["ignore", "ignore", "pipe"] });
    let log = "";
    const found = new Promise((resolve, reject) => {
      this.child.stderr.on("data", (piece) => {
        log += piece;
        const console = /The console is at (\S+)\.\n/.exec(log);
        if (console) resolve(console[1]);
      });
      this.child.on("exit", () => reject(new Error(`the service ended: ${log}`)));
    });
    this.url = await found;
    return this.url;
  }

  /** Kills it, as a machine that loses its power does. */
  async kill() {
    const ended = new Promise((resolve) => this.child.once("exit", resolve));
    this.child.removeAllListeners("exit");
    this.child.once("exit", () => {});
    this.child.kill("SIGKILL");
    await Promise.race([ended, new Promise((later) => setTimeout(later, 5000))]);
  }
}
