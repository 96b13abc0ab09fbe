// Lists and checks the links, headings and anchors of Markdown.

import { Denied, files, InvalidArguments, NotFound, s, tool } from "sallyport";
import { findProblems, type FileReader } from "./checks.ts";
import { readMarkdown } from "./markdown.ts";

/** Longest text in bytes. Its syntax tree takes about fifty times as much memory. */
const TEXT_BYTES_MAX = 512 * 1024;

/** Most entries of one list, because a model reads no more. */
const ENTRIES_MAX = 500;

const source = {
  text: s.string("The Markdown. Leave it out if file is given.").max(TEXT_BYTES_MAX).optional(),
  file: s.string("The path of a Markdown file in a granted folder, such as /docs/guide.md.").optional(),
};

export const listLinks = tool({
  name: "list_links",
  title: "List links and headings",
  description: "Lists the links and headings of a Markdown text or file, with their lines, targets and anchors.",
  readOnly: true,
  idempotent: true,
  openWorld: false,
  parameters: source,
  run(args) {
    const { links, headings } = readMarkdown(textOf(args));
    return { ...shortened("links", links), ...shortened("headings", headings) };
  },
});

export const checkLinks = tool({
  name: "check_links",
  title: "Check links and headings",
  description: `Checks a Markdown text or file: anchors that do not exist, links without a target, undefined references, \
skipped levels of headings, and, for a file, linked files that do not exist. Addresses on the web are not fetched.`,
  readOnly: true,
  idempotent: true,
  openWorld: false,
  parameters: source,
  run(args) {
    const facts = readMarkdown(textOf(args));
    const problems = findProblems(facts, folderOf(args.file ?? ""), args.file === undefined ? undefined : fileReader());
    return { links: facts.links.length, headings: facts.headings.length, ...shortened("problems", problems) };
  },
});

function textOf({ text, file }: { text?: string | undefined; file?: string | undefined }): string {
  if (text !== undefined && file === undefined) return text;
  if (file !== undefined && text === undefined) return files.readText(file, { bytesMax: TEXT_BYTES_MAX });
  throw new InvalidArguments("give either text or file, not both and not neither");
}

function folderOf(file: string): string {
  return file.slice(0, Math.max(file.lastIndexOf("/"), 0));
}

/** Reads linked files, each once. A file that is not granted counts as one that exists. */
function fileReader(): FileReader {
  const known = new Map<string, string | null | undefined>();
  return (path) => {
    if (!known.has(path)) known.set(path, readLinked(path));
    return known.get(path);
  };
}

function readLinked(path: string): string | null | undefined {
  try {
    const { isFolder, size } = files.stat(path);
    const isText = !isFolder && size <= TEXT_BYTES_MAX && /\.(md|markdown)$/i.test(path);
    return isText ? files.readText(path) : null;
  } catch (error) {
    if (error instanceof NotFound) return undefined;
    if (error instanceof Denied) return null;
    throw error;
  }
}

function shortened<T>(name: string, entries: T[]): Record<string, T[] | string> {
  if (entries.length <= ENTRIES_MAX) return { [name]: entries };
  return { [name]: entries.slice(0, ENTRIES_MAX), [`${name}_cut`]: `the first ${ENTRIES_MAX} of ${entries.length}` };
}
