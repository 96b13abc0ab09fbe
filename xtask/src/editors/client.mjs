// Drives `sallyport acp` with the official client of the protocol: a call that is approved, one
// that is refused, a diff, a cancel, and a load after a kill. The model is a script in this file.
//
// Arguments: the program, a folder for the home, a folder of plugins.

import * as acp from "@agentclientprotocol/sdk";
import { spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";

const [program, home, plugins] = process.argv.slice(2);
const folder = join(home, "notes");
const file = join(folder, "a.md");
const rows = [];

function check(name, isTrue, detail) {
  rows.push([isTrue ? "ok" : "FAILED", name, detail]);
}

function write(id, mode, text) {
  const args = JSON.stringify({ path: "/notes/a.md", text, mode });
  return { tool_calls: [{ index: 0, id, type: "function", function: { name: "files__write", arguments: args } }] };
}

// What the model says, one entry a request. `stall` never ends.
const script = [
  write("c1", "create", "one\n"),
  { content: "Written." },
  write("c2", "overwrite", "two\n"),
  { content: "Not written." },
  { stall: true, content: "I begin" },
  { content: "Still here." },
];

const model = createServer((request, response) => {
  request.resume().on("end", () => {
    const step = script.shift() ?? { content: "No more." };
    response.writeHead(200, { "content-type": "text/event-stream" });
    const send = (delta, finish = null) =>
      response.write(`data: ${JSON.stringify({ id: "x", object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`);
    const { stall, ...delta } = step;
    send({ role: "assistant", ...delta });
    if (stall) return;
    send({}, step.tool_calls ? "tool_calls" : "stop");
    response.end("data: [DONE]\n\n");
  });
});
await new Promise((listening) => model.listen(0, "127.0.0.1", listening));
const address = `http://127.0.0.1:${model.address().port}/v1`;

mkdirSync(folder, { recursive: true });
cpSync(join(plugins, "files"), join(home, "plugins", "files"), { recursive: true });
writeFileSync(
  join(home, "policy.toml"),
  `[plugin.files]\nfs = [{ path = ${JSON.stringify(folder)}, mount = "/notes", access = "read-write" }]\n`,
);

// An agent, its client, and everything that the client received.
function start() {
  const agent = spawn(program, ["acp", "--model", "openai/m"], {
    env: {
      ...process.env,
      SALLYPORT_HOME: home,
      SALLYPORT_COMPILE_WAIT: "300s",
      OPENAI_BASE_URL: address,
      OPENAI_API_KEY: "k",
    },
    stdio: ["pipe", "pipe", "ignore"],
  });
  const seen = { agent, updates: [], questions: [], choice: "once" };
  const app = acp
    .client({ name: "xtask" })
    .onRequest(acp.methods.client.session.requestPermission, ({ params }) => {
      seen.questions.push(params);
      return { outcome: { outcome: "selected", optionId: seen.choice } };
    })
    .onNotification(acp.methods.client.session.update, ({ params }) => {
      seen.updates.push(params.update);
    });
  const stream = acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
  seen.connection = app.connect(stream);
  seen.ask = (method, params) => seen.connection.agent.request(method, params);
  seen.text = () =>
    seen.updates
      .filter((update) => update.sessionUpdate === "agent_message_chunk")
      .map((update) => update.content.text)
      .join("");
  return seen;
}

async function until(what, isTrue) {
  for (let wait = 0; wait < 600; wait += 1) {
    if (isTrue()) return;
    await new Promise((later) => setTimeout(later, 100));
  }
  throw new Error(`${what} did not come`);
}

const methods = acp.methods.agent;
const about = { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: {} };
const say = (sessionId, text) => ({ sessionId, prompt: [{ type: "text", text }] });

try {
  let client = start();
  const hello = await client.ask(methods.initialize, about);
  check("initialize", hello.protocolVersion === 1 && hello.agentCapabilities.loadSession, `${hello.agentInfo.name} ${hello.agentInfo.version}`);
  const { sessionId, modes, configOptions } = await client.ask(methods.session.new, { cwd: folder, mcpServers: [] });
  check("session/new", modes.currentModeId === "ask" && configOptions[0].category === "model", sessionId);

  let end = await client.ask(methods.session.prompt, say(sessionId, "write one"));
  check("a call is approved", end.stopReason === "end_turn" && readFileSync(file, "utf8") === "one\n", end.stopReason);
  const kinds = client.questions[0].options.map((option) => option.kind);
  check("the choices", ["allow_once", "allow_always", "reject_once", "reject_always"].every((kind) => kinds.includes(kind)), kinds.join(" "));
  const card = client.questions[0].toolCall.content[0].content.text;
  check("the card", card.includes("argument: path") && card.includes('"always" adds'), card.split("\n")[1]);
  const diffs = client.updates.flatMap((update) => update.content ?? []).filter((part) => part.type === "diff");
  check("the diff", diffs.some((diff) => diff.path === file && diff.oldText === null && diff.newText === "one\n"), file);

  client.choice = "no";
  end = await client.ask(methods.session.prompt, say(sessionId, "write two"));
  check("a call is refused", readFileSync(file, "utf8") === "one\n" && client.text().endsWith("Not written."), end.stopReason);
  const question = client.questions[1].toolCall.content.find((part) => part.type === "diff");
  check("its diff before", question.oldText === "one\n" && question.newText === "two\n", file);

  const turn = client.ask(methods.session.prompt, say(sessionId, "think"));
  await until("the begin of the answer", () => client.text().endsWith("I begin"));
  await client.connection.agent.notify(methods.session.cancel, { sessionId });
  end = await turn;
  check("a cancel", end.stopReason === "cancelled", end.stopReason);

  client.agent.kill("SIGKILL");
  await client.connection.closed;
  client = start();
  await client.ask(methods.initialize, about);
  const listed = await client.ask(methods.session.list, {});
  check("session/list", listed.sessions[0].sessionId === sessionId, listed.sessions[0].title);
  await client.ask(methods.session.load, { sessionId, cwd: folder, mcpServers: [] });
  const calls = client.updates.filter((update) => update.sessionUpdate === "tool_call");
  check("session/load after a kill", calls.length === 2 && client.text().includes("Written."), `${client.updates.length} updates`);
  end = await client.ask(methods.session.prompt, say(sessionId, "go on"));
  check("it continues", client.text().endsWith("Still here."), end.stopReason);
  await client.ask(methods.session.setMode, { sessionId, modeId: "deny-all" });
  const chosen = await client.ask(methods.session.setConfigOption, { sessionId, configId: "model", value: "offline" });
  check("mode and model", chosen.configOptions[0].currentValue === "offline", "deny-all, offline");
  await client.ask(methods.session.close, { sessionId });
  await client.ask(methods.session.resume, { sessionId, cwd: folder, mcpServers: [] });
  await client.ask(methods.session.delete, { sessionId });
  const left = await client.ask(methods.session.list, {});
  check("close, resume, delete", left.sessions.length === 0, `${left.sessions.length} left`);
  client.agent.stdin.end();
  const code = await new Promise((ended) => client.agent.on("exit", ended));
  check("the end", code === 0, `exit ${code}`);
} catch (error) {
  check("an error", false, error?.stack ?? JSON.stringify(error));
}
model.closeAllConnections();
model.close();
for (const [state, name, detail] of rows) {
  console.log(`${state.padEnd(7)} ${name.padEnd(28)} ${detail ?? ""}`);
}
process.exit(rows.every(([state]) => state === "ok") && existsSync(file) ? 0 : 1);
