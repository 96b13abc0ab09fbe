"""A server of the Python SDK with the echo tool of the bench."""

from mcp.server import MCPServer

server = MCPServer("echo")


@server.tool(description="Returns a text.")
def echo(text: str) -> str:
    return text


server.run()
