// A server of the TypeScript SDK with the echo tool of the bench.
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { z } from "zod";

const server = new McpServer({ name: "echo", version: "1.0.0" });
const inputSchema = { text: z.string().describe("The text.") };
server.registerTool("echo", { description: "Returns a text.", inputSchema }, ({ text }) => ({
  content: [{ type: "text", text }],
}));
await server.connect(new StdioServerTransport());
