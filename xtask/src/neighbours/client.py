"""The client of the Python SDK: lists and calls every tool of the reference plugin, reads its
resources and prompts, follows progress, and cancels. Prints a JSON line for each row.

Arguments: the program, its home, the address of a server of the same plugin.
"""

import json
import os
import sys

import anyio
from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

PROGRAM, HOME, URL = sys.argv[1:]

EXPECTED = {
    "test_simple_text": "This is a simple text response for testing.",
    "test_tool_with_logging": "Logged three lines.",
    "test_logging_tool": "Logged three lines.",
    "test_error_handling": "This tool intentionally returns an error for testing",
    "test_tool_with_progress": "Reported three times.",
    "echo": "hello",
    "greet": "Hello, Ada!",
    "slow_compute": "Computed it.",
    "failing_job": "This job intentionally fails",
    "protocol_error_job": "the plugin panicked",
}

GIVEN = {
    "echo": {"text": "hello"},
    "greet": {"name": "Ada"},
    "slow_compute": {"seconds": 1, "label": "it"},
}

KINDS = {
    "test_image_content": "image",
    "test_audio_content": "audio",
    "test_embedded_resource": "resource",
    "test_multiple_content_types": "text,image,resource",
}


def row(name, ok, detail=""):
    print(json.dumps({"name": name, "ok": bool(ok), "detail": str(detail)[:300]}), flush=True)


def text(result):
    return next((part.text for part in result.content if part.type == "text"), None)


def kinds(result):
    return ",".join(part.type for part in result.content)


def is_expected(name, result):
    if name in KINDS:
        return kinds(result) == KINDS[name]
    return text(result) == EXPECTED.get(name, "Approved.")


async def approve(context, params):
    schema = params.requested_schema
    name, choice = next(iter(schema["properties"].items()))
    values = choice.get("enum") or [one["const"] for one in choice["oneOf"]]
    return types.ElicitResult(action="accept", content={name: values[0]})


async def cancel_a_call(way, session):
    """The SDK cancels a call whose task is cancelled, or is told to by a notification."""
    with anyio.move_on_after(2) as scope:
        await session.call_tool("test_until_cancelled", {})
    row(f"{way} cancels a call", scope.cancelled_caught)
    result = await session.call_tool("echo", {"text": "hello"})
    row(f"{way} goes on after it", text(result) == "hello")


async def follow_progress(way, session):
    seen = []

    async def note(progress, total, message):
        seen.append(progress)

    await session.call_tool("test_tool_with_progress", {}, progress_callback=note)
    grows = all(later > earlier for earlier, later in zip(seen, seen[1:]))
    row(f"{way} follows progress", len(seen) >= 3 and grows and seen[-1] == 100, seen)


async def drive(way, read, write):
    async with ClientSession(read, write, elicitation_callback=approve) as session:
        await session.initialize()
        tools = (await session.list_tools()).tools
        row(f"{way} lists the tools", len(tools) == 19, " ".join(tool.name for tool in tools))
        for tool in tools:
            if tool.name != "test_until_cancelled":
                result = await session.call_tool(tool.name, GIVEN.get(tool.name, {}))
                row(f"{way} calls {tool.name}", is_expected(tool.name, result), kinds(result))
        await follow_progress(way, session)
        await cancel_a_call(way, session)
        resources = (await session.list_resources()).resources
        row(f"{way} lists resources", len(resources) == 5)
        contents = (await session.read_resource("test://template/7/data")).contents
        row(f"{way} reads a resource", json.loads(contents[0].text)["id"] == "7", contents[0].text)
        arguments = {"arg1": "a", "arg2": "b"}
        prompt = await session.get_prompt("test_prompt_with_arguments", arguments)
        words = prompt.messages[0].content.text
        row(f"{way} gets a prompt", words == "Prompt with arguments: arg1='a', arg2='b'", words)


async def main():
    env = {**os.environ, "SALLYPORT_HOME": HOME}
    server = StdioServerParameters(command=PROGRAM, args=["mcp", "--names", "tool"], env=env)
    with open(os.devnull, "w") as log:
        async with stdio_client(server, errlog=log) as (read, write):
            await drive("stdio", read, write)
    async with streamable_http_client(URL) as streams:
        await drive("http", streams[0], streams[1])


anyio.run(main)
