// A native test, without WebAssembly. Run it after the first build, which brings the SDK:
//   cc -I.build/sdk -o .build/test plugin_test.c .build/sdk/{sallyport,sallyport_native,yyjson}.c && .build/test
#include "plugin.c"

#include <stdio.h>
#include <stdlib.h>

static int failures;

static void check(const char *arguments, const char *expected) {
  char *result = sp_test_call("word_count", arguments);
  if (strcmp(result, expected)) {
    failures++;
    printf("%s gives %s, expected %s\n", arguments, result, expected);
  }
  free(result);
}

int main(void) {
  check("{\"text\":\"two words\"}", "{\"words\":2}");
  check("{\"text\":\" a\\tb\\n \"}", "{\"words\":2}");
  check("{\"text\":\"\"}", "invalid-arguments: text is empty");
  check("{\"text\":1}", "invalid-arguments: text is not a text");
  puts(failures ? "failed" : "passed");
  return failures != 0;
}
