// The client of the TypeScript SDK: lists and calls every tool of the reference plugin, reads its
// resources and prompts, follows progress, and cancels. Prints a JSON line for each row.
//
// Arguments: the program, its home, the address of a server of the same plugin.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const [program, home, url] = process.argv.slice(2);

function row(name, ok, detail = "") {
  console.log(JSON.stringify({ name, ok: Boolean(ok), detail: String(detail).slice(0, 300) }));
}

const text = (result) => result.content.find((part) => part.type === "text")?.text;
const kinds = (result) => result.content.map((part) => part.type).join(",");

// What each tool has to return. The others need an approval.
const expected = {
  test_simple_text: (r) => text(r) === "This is a simple text response for testing.",
  test_image_content: (r) => r.content[0].mimeType === "image/png" && r.content[0].data.startsWith("iVBORw0KGgo"),
  test_audio_content: (r) => r.content[0].mimeType === "audio/wav" && r.content[0].data.startsWith("UklGR"),
  test_embedded_resource: (r) => r.content[0].resource.text === "This is an embedded resource content.",
  test_multiple_content_types: (r) => kinds(r) === "text,image,resource",
  test_tool_with_logging: (r) => text(r) === "Logged three lines.",
  test_logging_tool: (r) => text(r) === "Logged three lines.",
  test_error_handling: (r) => r.isError && text(r) === "This tool intentionally returns an error for testing",
  test_tool_with_progress: (r) => text(r) === "Reported three times.",
  echo: (r) => text(r) === "hello",
  greet: (r) => text(r) === "Hello, Ada!",
  slow_compute: (r) => text(r) === "Computed it.",
  failing_job: (r) => r.isError && text(r) === "This job intentionally fails",
  protocol_error_job: (r) => r.isError && text(r) === "the plugin panicked",
};

const given = {
  echo: { text: "hello" },
  greet: { name: "Ada" },
  slow_compute: { seconds: 1, label: "it" },
};

async function drive(way, transport) {
  const client = new Client({ name: "neighbours", version: "1" }, { capabilities: { elicitation: {} } });
  const questions = [];
  client.setRequestHandler(ElicitRequestSchema, async (request) => {
    questions.push(request.params.message);
    const [choice] = Object.entries(request.params.requestedSchema.properties);
    const [name, schema] = choice;
    const value = (schema.enum ?? schema.oneOf.map((one) => one.const))[0];
    return { action: "accept", content: { [name]: value } };
  });
  await client.connect(transport);

  const { tools } = await client.listTools();
  row(`${way} lists the tools`, tools.length === 19, tools.map((tool) => tool.name).join(" "));
  for (const { name } of tools.filter((tool) => tool.name !== "test_until_cancelled")) {
    const result = await client.callTool({ name, arguments: given[name] ?? {} });
    const check = expected[name] ?? ((r) => text(r) === "Approved." && questions.at(-1)?.includes(name));
    row(`${way} calls ${name}`, check(result), kinds(result));
  }

  const seen = [];
  const onprogress = (progress) => seen.push(progress.progress);
  await client.callTool({ name: "test_tool_with_progress", arguments: {} }, undefined, { onprogress });
  const grows = seen.every((value, at) => at === 0 || value > seen[at - 1]);
  row(`${way} follows progress`, seen.length >= 3 && grows && seen.at(-1) === 100, seen.join(" "));

  const controller = new AbortController();
  const started = Date.now();
  const stopped = await client
    .callTool({ name: "test_until_cancelled", arguments: {} }, undefined, {
      signal: controller.signal,
      onprogress: () => controller.abort("enough"),
    })
    .then(() => "it completed", (error) => error);
  row(`${way} cancels a call`, stopped instanceof Error && Date.now() - started < 30000, stopped);
  const after = await client.callTool({ name: "echo", arguments: { text: "hello" } });
  row(`${way} goes on after it`, text(after) === "hello");

  const { resources } = await client.listResources();
  const { resourceTemplates } = await client.listResourceTemplates();
  row(`${way} lists resources`, resources.length === 5 && resourceTemplates.length === 1);
  const read = await client.readResource({ uri: "test://template/7/data" });
  row(`${way} reads a resource`, JSON.parse(read.contents[0].text).id === "7", read.contents[0].text);
  const missing = await client.readResource({ uri: "test://nothing" }).then(() => "it was read", (error) => error);
  row(`${way} is told of a missing one`, missing instanceof Error, missing);
  const { prompts } = await client.listPrompts();
  const prompt = await client.getPrompt({ name: "test_prompt_with_arguments", arguments: { arg1: "a", arg2: "b" } });
  const words = prompt.messages[0].content.text;
  row(`${way} gets a prompt`, prompts.length === 4 && words === "Prompt with arguments: arg1='a', arg2='b'", words);
  await client.close();
}

const env = { ...process.env, SALLYPORT_HOME: home };
await drive("stdio", new StdioClientTransport({ command: program, args: ["mcp", "--names", "tool"], env, stderr: "ignore" }));
await drive("http", new StreamableHTTPClientTransport(new URL(url)));
