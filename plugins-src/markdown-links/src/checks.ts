// Checks links and headings.

import { type Link, type MarkdownFacts, readMarkdown } from "./markdown.ts";

export interface Problem {
  line: number;
  problem: string;
}

/** Reads another file; `undefined` if it does not exist, and `null` for a folder or another kind of file. */
export type FileReader = (path: string) => string | null | undefined;

/** Checks a text. `readFile` reads a linked file; without it, links to files are not checked. */
export function findProblems(facts: MarkdownFacts, folder: string, readFile?: FileReader): Problem[] {
  const problems = [
    ...facts.links.flatMap((link) => linkProblems(link, facts, folder, readFile)),
    ...facts.undefinedReferences.map(({ line, name }) => ({ line, problem: `the reference [${name}] is not defined` })),
    ...headingProblems(facts),
  ];
  return problems.sort((a, b) => a.line - b.line);
}

function linkProblems(link: Link, facts: MarkdownFacts, folder: string, readFile?: FileReader): Problem[] {
  const problem = (text: string): Problem[] => [{ line: link.line, problem: text }];
  if (link.target.trim() === "") return problem(`the link "${link.text}" has no target`);
  switch (link.kind) {
    case "anchor":
      return hasAnchor(facts, link.target.slice(1)) ? [] : problem(`there is no heading or anchor ${link.target}${nearest(facts, link.target)}`);
    case "file":
      return readFile ? fileProblems(link, folder, readFile).flatMap(problem) : [];
    case "web":
      return URL.canParse(link.target.replace(/^\/\//, "https://")) ? [] : problem(`${link.target} is not an address`);
    default:
      return [];
  }
}

/** Anchors are compared as browsers do: as they are, or with their escapes resolved. */
function hasAnchor(facts: MarkdownFacts, anchor: string): boolean {
  return anchor === "" || anchor === "top" || facts.anchors.has(anchor) || facts.anchors.has(unescaped(anchor));
}

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Suggests an anchor that differs only in case and punctuation. */
function nearest(facts: MarkdownFacts, target: string): string {
  const plain = (text: string) => text.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");
  const found = [...facts.anchors].find((anchor) => plain(anchor) === plain(target));
  return found === undefined ? "" : `; did you mean #${found}?`;
}

function fileProblems(link: Link, folder: string, readFile: FileReader): string[] {
  const [path = "", anchor] = unescaped(link.target).split("#", 2);
  const [withoutQuery = ""] = path.split("?", 1);
  const place = resolved(folder, withoutQuery);
  const text = readFile(place);
  if (text === undefined) return [`${place} does not exist`];
  if (text === null || anchor === undefined) return [];
  return hasAnchor(readMarkdown(text), anchor) ? [] : [`${place} has no heading or anchor #${anchor}`];
}

/** Resolves a path in a folder. The host decides what may be read. */
function resolved(folder: string, path: string): string {
  const parts = path.startsWith("/") ? [] : folder.split("/").filter(Boolean);
  for (const part of path.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== "" && part !== ".") parts.push(part);
  }
  return `/${parts.join("/")}`;
}

function headingProblems({ headings }: MarkdownFacts): Problem[] {
  return headings.flatMap(({ line, depth, text }, index) => {
    const before = headings[index - 1];
    const problems: Problem[] = [];
    if (text.trim() === "") problems.push({ line, problem: "the heading is empty" });
    if (before && depth > before.depth + 1) {
      problems.push({ line, problem: `the heading "${text}" has level ${depth} after level ${before.depth}` });
    }
    return problems;
  });
}
