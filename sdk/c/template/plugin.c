// The tools of the plugin {{name}}.
#include <string.h>

#include "sallyport.h"

// Counts the words of a text: runs of characters other than white space.
static int64_t count_words(const char *text) {
  int64_t words = 0;
  for (const char *at = text + strspn(text, " \t\r\n"); *at; at += strspn(at, " \t\r\n")) {
    words++;
    at += strcspn(at, " \t\r\n");
  }
  return words;
}

static void word_count(sp_call *call) {
  const char *text = sp_string(call, "text", "");
  if (!*text) {
    sp_fail(call, SP_INVALID_ARGUMENTS, "text is empty");
    return;
  }
  sp_set_int64(call, "words", count_words(text));
}
SALLYPORT_TOOL(word_count, .description = "Counts the words of a text.", .parameters = {
  {"text", SP_STRING, "The text."},
}, .read_only = true, .idempotent = true)
