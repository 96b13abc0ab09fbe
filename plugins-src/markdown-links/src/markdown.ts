// Reads the links and headings of a Markdown text (CommonMark).

import GithubSlugger from "github-slugger";
import type { Nodes, Parents } from "mdast";
import { fromMarkdown } from "mdast-util-from-markdown";
import { toString } from "mdast-util-to-string";
import { visit } from "unist-util-visit";

/** Where a link leads. */
export type LinkKind = "web" | "anchor" | "file" | "mail" | "other";

export interface Link {
  line: number;
  text: string;
  target: string;
  kind: LinkKind;
}

export interface Heading {
  line: number;
  depth: number;
  text: string;
  /** The anchor that GitHub and most other sites give it. */
  anchor: string;
}

export interface MarkdownFacts {
  links: Link[];
  headings: Heading[];
  /** All anchors: of headings, and of `id` and `name` in HTML. */
  anchors: Set<string>;
  /** References such as `[text][name]` whose name is not defined. */
  undefinedReferences: { line: number; name: string }[];
}

const HTML_ANCHOR = /\s(?:id|name)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))/g;
const HTML_LINK = /<a\s[^>]*?href\s*=\s*(?:"([^"]*)"|'([^']*)')/gi;

/** What a reference looks like that no definition belongs to: the parser leaves it as text. */
const REFERENCE = /\[[^[\]]+\]\[([^[\]]+)\]/g;

/** Reads a text. */
export function readMarkdown(text: string): MarkdownFacts {
  const tree = fromMarkdown(text);
  const facts: MarkdownFacts = { links: [], headings: [], anchors: new Set(), undefinedReferences: [] };
  const targets = definedTargets(tree);
  const slugger = new GithubSlugger();
  visit(tree, (node) => readNode(node, facts, targets, slugger));
  readUndefined(tree, facts);
  return facts;
}

/** The targets of `[name]: target`, by name. The first definition counts. */
function definedTargets(tree: Nodes): Map<string, string> {
  const targets = new Map<string, string>();
  visit(tree, "definition", (node) => {
    if (!targets.has(node.identifier)) targets.set(node.identifier, node.url);
  });
  return targets;
}

function readNode(node: Nodes, facts: MarkdownFacts, targets: Map<string, string>, slugger: GithubSlugger): void {
  switch (node.type) {
    case "heading": {
      const text = toString(node);
      const anchor = slugger.slug(text);
      facts.headings.push({ line: lineOf(node), depth: node.depth, text, anchor });
      facts.anchors.add(anchor);
      break;
    }
    case "link":
    case "image":
      addLink(facts, lineOf(node), toString(node), node.url);
      break;
    case "linkReference":
    case "imageReference":
      addLink(facts, lineOf(node), toString(node), targets.get(node.identifier) ?? "");
      break;
    case "html":
      readHtml(node.value, lineOf(node), facts);
      break;
  }
}

function readHtml(html: string, line: number, facts: MarkdownFacts): void {
  const at = (index: number) => line + html.slice(0, index).split("\n").length - 1;
  for (const [, ...values] of html.matchAll(HTML_ANCHOR)) facts.anchors.add(values.find((value) => value !== undefined) ?? "");
  for (const match of html.matchAll(HTML_LINK)) addLink(facts, at(match.index), "", match[1] ?? match[2] ?? "");
}

/** Finds references without a definition in paragraphs, whose text nodes the parser has split. */
function readUndefined(tree: Nodes, facts: MarkdownFacts): void {
  visit(tree, "text", (node) => {
    for (const match of node.value.matchAll(REFERENCE)) {
      const line = lineOf(node) + node.value.slice(0, match.index).split("\n").length - 1;
      facts.undefinedReferences.push({ line, name: match[1] ?? "" });
    }
  });
}

function addLink(facts: MarkdownFacts, line: number, text: string, target: string): void {
  facts.links.push({ line, text, target, kind: kindOf(target) });
}

function kindOf(target: string): LinkKind {
  if (target.startsWith("#")) return "anchor";
  if (/^(https?:)?\/\//i.test(target)) return "web";
  if (/^mailto:/i.test(target)) return "mail";
  return /^[a-z][a-z0-9+.-]*:/i.test(target) ? "other" : "file";
}

function lineOf(node: Nodes | Parents): number {
  return node.position?.start.line ?? 1;
}
