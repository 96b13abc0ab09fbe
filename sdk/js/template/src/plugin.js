// The tools of the plugin. Each exported `tool(…)` is one.

import { InvalidArguments, s, tool } from "sallyport";

/** How many words people read in a second. */
const WORDS_PER_SECOND = 4;

export const countWords = tool({
  name: "count_words",
  description: "Counts the words and sentences of a text, and estimates how long reading it takes.",
  readOnly: true,
  parameters: {
    text: s.string("The text to count."),
    wordsPerSecond: s.number("How fast the reader is.").min(0.1).default(WORDS_PER_SECOND),
  },
  run({ text, wordsPerSecond }) {
    const words = text.match(/[\p{L}\p{N}'’-]+/gu) ?? [];
    if (words.length === 0) throw new InvalidArguments("the text has no words");
    const sentences = text.split(/[.!?]+(?:\s|$)/).filter((part) => part.trim() !== "");
    return {
      words: words.length,
      sentences: sentences.length,
      reading_seconds: Math.ceil(words.length / wordsPerSecond),
    };
  },
});
