// The tools of the plugin {{name}}.
#include <cstdint>
#include <sstream>
#include <string>

#include "sallyport.h"

// Counts the words of a text: runs of characters other than white space.
static int64_t count_words(const std::string &text) {
  std::istringstream words(text);
  int64_t count = 0;
  for (std::string word; words >> word;) count++;
  return count;
}

static void word_count(sp_call *call) {
  std::string text = sp_string(call, "text", "");
  if (text.empty()) {
    sp_fail(call, SP_INVALID_ARGUMENTS, "text is empty");
    return;
  }
  sp_set_int64(call, "words", count_words(text));
}
SALLYPORT_TOOL(word_count, .description = "Counts the words of a text.", .parameters = {
  {"text", SP_STRING, "The text."},
}, .read_only = true, .idempotent = true)
