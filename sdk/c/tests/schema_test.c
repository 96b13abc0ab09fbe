/* A native test of the SDK:
     cc -Isrc -o /tmp/schema_test tests/schema_test.c src/{sallyport,sallyport_native,yyjson}.c && /tmp/schema_test */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sallyport_internal.h"

static int failures;

static void expect(const char *what, const char *found, const char *expected) {
  if (!strcmp(found, expected)) return;
  failures++;
  printf("%s is\n  %s, expected\n  %s\n", what, found, expected);
}

static void typed(sp_call *call) {
  sp_set_uint64(call, "big", sp_uint64(call, "big", 1));
  sp_set_int64(call, "small", sp_int64(call, "small", 2));
  sp_set_number(call, "ratio", sp_number(call, "ratio", 0.5));
  sp_set_string_n(call, "text", sp_string(call, "text", "\xff" "a"), sp_argument(call, "text") ? sp_string_length(call, "text") : 2);
}
SALLYPORT_TOOL(typed, .description = "Types.", .parameters = {
  {"big", SP_UINT64, .optional = true},
  {"small", SP_INT64, .optional = true},
  {"ratio", SP_NUMBER, .optional = true, .minimum = "0"},
  {"text", SP_STRING, "A text.", .optional = true, .choices = "a|b"},
  {"list", SP_STRINGS},
})

static void not_a_number(sp_call *call) {
  volatile double zero = 0;
  sp_set_number(call, "value", zero / zero);
}
SALLYPORT_TOOL(not_a_number, .description = "NaN.")

static void refuses(sp_call *call) {
  sp_fail(call, SP_NOT_FOUND, "no %s", "\xc3(");
  sp_fail(call, SP_FAILED, "too late");
}
SALLYPORT_TOOL(refuses, .description = "Fails twice.")

static void check(const char *tool, const char *arguments, const char *expected) {
  char *result = sp_test_call(tool, arguments);
  expect(arguments, result, expected);
  free(result);
}

/* JSON that is nested as deep as said. */
static void check_depth(size_t depth, const char *expected) {
  char *json = malloc(2 * depth + 16), *at = json;
  at += sprintf(at, "{\"list\":");
  memset(at, '[', depth - 1);
  memset(at + depth - 1, ']', depth - 1);
  strcpy(at + 2 * (depth - 1), "}");
  char *result = sp_test_call("refuses", json);
  expect("deep JSON", result, expected);
  free(result);
  free(json);
}

int main(void) {
  char *schema = sp_schema(sp_tools()->tool);
  expect("the schema of text", strstr(schema, "\"text\":"),
         "\"text\":{\"type\":[\"string\",\"null\"],\"description\":\"A text.\",\"enum\":[\"a\",\"b\",null]},"
         "\"list\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}},\"required\":[\"list\"],\"additionalProperties\":false}");
  free(schema);
  const char *fallback = "{\"big\":1,\"small\":2,\"ratio\":0.5,\"text\":\"\xEF\xBF\xBD" "a\"}";
  check("typed", "{}", fallback);
  check("typed", "{\"big\":null,\"text\":null}", fallback);
  check("typed", "{\"big\":18446744073709551615,\"small\":\"-9223372036854775808\",\"ratio\":1,\"text\":\"a\\u0000b\"}",
        "{\"big\":18446744073709551615,\"small\":-9223372036854775808,\"ratio\":1.0,\"text\":\"a\\u0000b\"}");
  check("typed", "{\"big\":\"18446744073709551616\"}", "invalid-arguments: big is not an integer from 0 to 18446744073709551615");
  check("typed", "{\"big\":-1}", "invalid-arguments: big is not an integer from 0 to 18446744073709551615");
  check("typed", "{\"small\":9223372036854775808}", "invalid-arguments: small is not an integer of 64 bits");
  check("typed", "{\"small\":2.5}", "invalid-arguments: small is not an integer of 64 bits");
  check("typed", "{\"ratio\":\"1\"}", "invalid-arguments: ratio is not a number");
  check("typed", "[]", "invalid-arguments: the arguments are not an object");
  check("not_a_number", "{}", "failed: the tool's result cannot be written as JSON: nan or inf number is not allowed");
  check("refuses", "{}", "not-found: no \xEF\xBF\xBD(");
  check("absent", "{}", "not-found: there is no tool absent");
  check_depth(256, "not-found: no \xEF\xBF\xBD(");
  check_depth(257, "invalid-arguments: the arguments are nested deeper than 256 levels");
  check_depth(1000000, "invalid-arguments: the arguments are nested deeper than 256 levels");
  puts(failures ? "failed" : "passed");
  return failures != 0;
}
