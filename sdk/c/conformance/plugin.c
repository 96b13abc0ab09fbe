/* The tools of the conformance set. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sallyport.h"

static void copy_argument(sp_call *call, const char *name) {
  yyjson_val *value = sp_argument(call, name);
  if (value) sp_set_json(call, name, yyjson_val_mut_copy(sp_document(call), value));
  else sp_set_null(call, name);
}

static void types(sp_call *call) {
  sp_set_boolean(call, "flag", sp_boolean(call, "flag", false));
  sp_set_int64(call, "count", sp_int64(call, "count", 0));
  sp_set_string(call, "big", sp_format(call, "%" PRIu64, sp_uint64(call, "big", 0)));
  sp_set_number(call, "ratio", sp_number(call, "ratio", 0));
  sp_set_string_n(call, "text", sp_string(call, "text", ""), sp_string_length(call, "text"));
  copy_argument(call, "choice");
  copy_argument(call, "items");
  copy_argument(call, "record");
  copy_argument(call, "note");
}
SALLYPORT_TOOL(types, .description = "Returns its arguments.", .parameters = {
  {"flag", SP_BOOLEAN, "A flag."},
  {"count", SP_INTEGER, "A count.", .minimum = "-2147483648", .maximum = "2147483647"},
  {"big", SP_UINT64, "A large count."},
  {"ratio", SP_NUMBER, "A ratio."},
  {"text", SP_STRING, "A text."},
  {"choice", SP_STRING, "A colour.", .choices = "red|green|blue"},
  {"items", SP_STRINGS, "Texts."},
  {"record", SP_SCHEMA, "A point.", .schema =
    "{\"type\":\"object\",\"properties\":{\"x\":{\"type\":\"number\"},\"y\":{\"type\":\"number\"}},"
    "\"required\":[\"x\",\"y\"],\"additionalProperties\":false}"},
  {"note", SP_STRING, "A note.", .optional = true},
})

static void echo(sp_call *call) {
  sp_add_text(call, sp_string(call, "text", ""), sp_string_length(call, "text"));
}
SALLYPORT_TOOL(echo, .description = "Returns a text.", .parameters = {{"text", SP_STRING, "The text."}})

static void large(sp_call *call) {
  size_t length = (size_t)sp_uint64(call, "bytes", 0);
  char *text = sp_allocate(call, length);
  memset(text, 'x', length);
  sp_add_text(call, text, length);
}
SALLYPORT_TOOL(large, .description = "Returns a long text.", .parameters = {
  {"bytes", SP_INTEGER, "Its length.", .minimum = "0"},
})

static void fail(sp_call *call) {
  static const char *const KINDS[] = {"invalid-arguments", "not-found", "denied", "auth-required",
                                      "unavailable", "failed"};
  const char *kind = sp_string(call, "kind", "failed"), *message = sp_string(call, "message", "");
  int at = SP_INVALID_ARGUMENTS;
  while (at < SP_OTHER && strcmp(kind, KINDS[at])) at++;
  sp_fail(call, (sp_error)at, "%s", message);
}
SALLYPORT_TOOL(fail, .description = "Fails.", .parameters = {
  {"kind", SP_STRING, "The kind."},
  {"message", SP_STRING, "The message."},
})

static void log_line(sp_call *call) {
  static const char *const LEVELS[] = {"trace", "debug", "info", "warn", "error"};
  const char *level = sp_string(call, "level", "info");
  for (int at = SP_TRACE; at <= SP_ERROR; at++) {
    if (!strcmp(level, LEVELS[at])) sp_log((sp_level)at, "%s", sp_string(call, "text", ""));
  }
}
SALLYPORT_TOOL(log_line, .description = "Writes to the log.", .parameters = {
  {"level", SP_STRING, "The level.", .choices = "trace|debug|info|warn|error"},
  {"text", SP_STRING, "The line."},
})

static void setting(sp_call *call) {
  yyjson_val *value = sp_setting(call, sp_string(call, "key", ""));
  yyjson_mut_doc *doc = sp_document(call);
  sp_return(call, value ? yyjson_val_mut_copy(doc, value) : yyjson_mut_null(doc));
}
SALLYPORT_TOOL(setting, .description = "Returns a setting.", .parameters = {{"key", SP_STRING, "Its name."}})

/* Fails with the reason of a status. Returns whether it was SP_OK. */
static bool worked(sp_call *call, sp_status status) {
  if (status == SP_OK) return true;
  sp_error error = status == SP_NOT_GRANTED ? SP_DENIED : status == SP_ABSENT ? SP_NOT_FOUND : SP_FAILED;
  sp_fail(call, error, "%s", sp_problem(call));
  return false;
}

static void fetch(sp_call *call) {
  sp_request request = {.url = sp_string(call, "url", ""), .method = sp_string(call, "method", "GET")};
  sp_response response;
  if (!worked(call, sp_http(call, &request, &response))) return;
  sp_set_int64(call, "status", response.status);
  sp_set_string_n(call, "body", response.body.data, response.body.length);
}
SALLYPORT_TOOL(fetch, .description = "Sends a request.", .parameters = {
  {"url", SP_STRING, "The address."},
  {"method", SP_STRING, "The method.", .optional = true},
}, .open_world = true)

static void fail_with_errno(sp_call *call, const char *path) {
  bool is_refused = errno == EACCES || errno == EPERM || errno == ENOTCAPABLE || errno == EROFS;
  sp_error error = is_refused ? SP_DENIED : errno == ENOENT ? SP_NOT_FOUND : SP_FAILED;
  sp_fail(call, error, "%s: %s", path, strerror(errno));
}

static void read_file(sp_call *call) {
  const char *path = sp_string(call, "path", "");
  FILE *file = fopen(path, "rb");
  if (!file) return fail_with_errno(call, path);
  char *text = NULL;
  size_t length = 0, read;
  do {
    text = realloc(text, length + 65536);
    if (!text) abort();
    read = fread(text + length, 1, 65536, file);
    length += read;
  } while (read);
  if (ferror(file)) fail_with_errno(call, path);
  sp_add_text(call, text, length);
  free(text);
  fclose(file);
}
SALLYPORT_TOOL(read_file, .description = "Returns a file's text.", .parameters = {{"path", SP_STRING, "The file."}})

static void write_file(sp_call *call) {
  const char *path = sp_string(call, "path", "");
  FILE *file = fopen(path, "wb");
  if (!file) return fail_with_errno(call, path);
  size_t length = sp_string_length(call, "text");
  bool is_written = fwrite(sp_string(call, "text", ""), 1, length, file) == length;
  if (fclose(file) || !is_written) fail_with_errno(call, path);
}
SALLYPORT_TOOL(write_file, .description = "Writes a file.", .parameters = {
  {"path", SP_STRING, "The file."}, {"text", SP_STRING, "Its text."},
})

static void state_set(sp_call *call) {
  const char *key = sp_string(call, "key", "");
  worked(call, sp_state_set(call, key, sp_string(call, "value", ""), sp_string_length(call, "value"), 0));
}
SALLYPORT_TOOL(state_set, .description = "Keeps a value.", .parameters = {
  {"key", SP_STRING, "Its key."}, {"value", SP_STRING, "The value."},
})

static void state_get(sp_call *call) {
  sp_bytes value;
  sp_status status = sp_state_get(call, sp_string(call, "key", ""), &value, NULL);
  yyjson_mut_doc *doc = sp_document(call);
  if (status == SP_ABSENT) sp_return(call, yyjson_mut_null(doc));
  else if (worked(call, status)) sp_return(call, yyjson_mut_strn(doc, value.data, value.length));
}
SALLYPORT_TOOL(state_get, .description = "Returns a kept value.", .parameters = {{"key", SP_STRING, "Its key."}})

static void secret_known(sp_call *call) {
  sp_bytes value;
  bool is_known = sp_secret(call, sp_string(call, "name", ""), &value) == SP_OK;
  sp_return(call, yyjson_mut_bool(sp_document(call), is_known));
}
SALLYPORT_TOOL(secret_known, .description = "Tells whether a secret is known.", .parameters = {
  {"name", SP_STRING, "Its name."},
})

static void trap(sp_call *call) {
  (void)call;
  abort();
}
SALLYPORT_TOOL(trap, .description = "Stops the plugin.")

static void spin(sp_call *call) {
  (void)call;
  for (volatile int turns = 0;; turns = !turns) {
  }
}
SALLYPORT_TOOL(spin, .description = "Never ends.")

static void grow(sp_call *call) {
  size_t length = (size_t)sp_uint64(call, "bytes", 0);
  char *memory = sp_allocate(call, length);
  memset(memory, 1, length); /* untouched memory might not count */
  sp_set_uint64(call, "bytes", length);
}
SALLYPORT_TOOL(grow, .description = "Allocates memory.", .parameters = {
  {"bytes", SP_INTEGER, "How much.", .minimum = "0"},
})
