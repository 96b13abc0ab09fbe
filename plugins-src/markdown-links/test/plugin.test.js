import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { call, host } from "sallyport/testing";
import { checkLinks, listLinks } from "../src/plugin.ts";

const GUIDE = `# The *Guide*

See [usage](#usage), [the site][site] and <https://a.example/>.

## Usage

![logo](img/logo.png) and <a id="extra"></a> and [extra](#extra).

## Usage

[site]: https://b.example/x
`;

beforeEach(() => host());

test("links and headings are listed with their lines", async () => {
  const { data } = await call(listLinks, { text: GUIDE });
  assert.deepEqual(data.headings, [
    { line: 1, depth: 1, text: "The Guide", anchor: "the-guide" },
    { line: 5, depth: 2, text: "Usage", anchor: "usage" },
    { line: 9, depth: 2, text: "Usage", anchor: "usage-1" },
  ]);
  assert.deepEqual(data.links.map(({ line, target, kind }) => `${line} ${kind} ${target}`), [
    "3 anchor #usage", "3 web https://b.example/x", "3 web https://a.example/", "7 file img/logo.png", "7 anchor #extra",
  ]);
});

test("a sound text has no problems", async () => {
  const { data } = await call(checkLinks, { text: GUIDE });
  assert.deepEqual(data, { links: 5, headings: 3, problems: [] });
});

test("problems are found with their lines", async () => {
  for (const [text, problems] of [
    ["# A\n\n[x](#b)", ["3: there is no heading or anchor #b"]],
    ["# Über uns\n\n[x](#über-uns) [y](#%C3%BCber-uns) [z](#Über_Uns)", ["3: there is no heading or anchor #%C3%9Cber_Uns; did you mean #über-uns?"]],
    ["[x]()", ['1: the link "x" has no target']],
    ["[x][gone]", ["1: the reference [gone] is not defined"]],
    ["`[x][gone]`\n\n```\n[x](#gone)\n```", []],
    ["# A\n\n### C", ['3: the heading "C" has level 3 after level 1']],
    ["#", ["1: the heading is empty"]],
    ["[x](https://)", ["1: https:// is not an address"]],
    ["<a href='#no'>x</a>", ["1: there is no heading or anchor #no"]],
    ["[mail](mailto:a@b.example) [t](tel:1) [f](gone.md)", []],
    ["", []],
  ]) {
    const { data } = await call(checkLinks, { text });
    const found = data.problems.map(({ line, problem }) => `${line}: ${problem}`);
    assert.deepEqual(found.map((one) => one.replace("#Über_Uns", "#%C3%9Cber_Uns")), problems, text);
  }
});

test("linked files are checked", async () => {
  host({
    files: {
      "/docs/a/guide.md": "[b](../b.md#intro) [c](../b.md#gone) [d](missing.md) [e](../img/x.png?raw=1) [f](/etc/passwd) [g](..)",
      "/docs/b.md": "# Intro",
      "/docs/img/x.png": new Uint8Array([1]),
    },
  });
  const { data } = await call(checkLinks, { file: "/docs/a/guide.md" });
  assert.deepEqual(data.problems.map(({ problem }) => problem), [
    "/docs/b.md has no heading or anchor #gone",
    "/docs/a/missing.md does not exist",
  ]);
});

test("mistakes of a caller are refused", async () => {
  for (const [args, kind] of [
    [{}, "invalid-arguments"],
    [{ text: "a", file: "/docs/b.md" }, "invalid-arguments"],
    [{ file: "/etc/passwd" }, "denied"],
  ]) {
    await assert.rejects(call(checkLinks, args), { kind });
  }
  host({ files: { "/docs/a.md": "x" } });
  await assert.rejects(call(checkLinks, { file: "/docs/b.md" }), { kind: "not-found" });
});

test("long lists are cut", async () => {
  const { data } = await call(listLinks, { text: "[x](y) ".repeat(501) });
  assert.deepEqual([data.links.length, data.links_cut], [500, "the first 500 of 501"]);
});
