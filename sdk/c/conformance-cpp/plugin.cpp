// The tools of the conformance set, in C++.
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sallyport.h"

static std::string text_of(sp_call *call, const char *name, const char *absent = "") {
  const char *text = sp_string(call, name, absent);
  return sp_argument(call, name) ? std::string(text, sp_string_length(call, name)) : text;
}

static void add_text(sp_call *call, const std::string &text) { sp_add_text(call, text.data(), text.size()); }

// The position of a word in a list, or the list's length.
template <size_t length>
static size_t position(const std::array<std::string_view, length> &words, std::string_view word) {
  size_t at = 0;
  while (at < length && words[at] != word) at++;
  return at;
}

static void copy_argument(sp_call *call, const char *name) {
  yyjson_val *value = sp_argument(call, name);
  if (value) sp_set_json(call, name, yyjson_val_mut_copy(sp_document(call), value));
  else sp_set_null(call, name);
}

static void types(sp_call *call) {
  std::string text = text_of(call, "text");
  sp_set_boolean(call, "flag", sp_boolean(call, "flag", false));
  sp_set_int64(call, "count", sp_int64(call, "count", 0));
  sp_set_string(call, "big", std::to_string(sp_uint64(call, "big", 0)).c_str());
  sp_set_number(call, "ratio", sp_number(call, "ratio", 0));
  sp_set_string_n(call, "text", text.data(), text.size());
  for (const char *name : {"choice", "items", "record", "note"}) copy_argument(call, name);
}
SALLYPORT_TOOL(types, .description = "Returns its arguments.", .parameters = {
  {"flag", SP_BOOLEAN, "A flag."},
  {"count", SP_INTEGER, "A count.", .minimum = "-2147483648", .maximum = "2147483647"},
  {"big", SP_UINT64, "A large count."},
  {"ratio", SP_NUMBER, "A ratio."},
  {"text", SP_STRING, "A text."},
  {"choice", SP_STRING, "A colour.", .choices = "red|green|blue"},
  {"items", SP_STRINGS, "Texts."},
  {"record", SP_SCHEMA, "A point.", .schema = R"({
    "type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "number"}},
    "required": ["x", "y"], "additionalProperties": false})"},
  {"note", SP_STRING, "A note.", .optional = true},
})

static void echo(sp_call *call) { add_text(call, text_of(call, "text")); }
SALLYPORT_TOOL(echo, .description = "Returns a text.", .parameters = {{"text", SP_STRING, "The text."}})

static void large(sp_call *call) { add_text(call, std::string(sp_uint64(call, "bytes", 0), 'x')); }
SALLYPORT_TOOL(large, .description = "Returns a long text.", .parameters = {
  {"bytes", SP_INTEGER, "Its length.", .minimum = "0"},
})

static void fail(sp_call *call) {
  static constexpr std::array<std::string_view, SP_OTHER> kinds = {
    "invalid-arguments", "not-found", "denied", "auth-required", "unavailable", "failed"};
  auto kind = static_cast<sp_error>(position(kinds, text_of(call, "kind", "failed")));
  sp_fail(call, kind, "%s", text_of(call, "message").c_str());
}
SALLYPORT_TOOL(fail, .description = "Fails.", .parameters = {
  {"kind", SP_STRING, "The kind."},
  {"message", SP_STRING, "The message."},
})

static void log_line(sp_call *call) {
  static constexpr std::array<std::string_view, 5> levels = {"trace", "debug", "info", "warn", "error"};
  auto level = static_cast<sp_level>(position(levels, text_of(call, "level", "info")));
  sp_log(level, "%s", text_of(call, "text").c_str());
}
SALLYPORT_TOOL(log_line, .description = "Writes to the log.", .parameters = {
  {"level", SP_STRING, "The level.", .choices = "trace|debug|info|warn|error"},
  {"text", SP_STRING, "The line."},
})

static void setting(sp_call *call) {
  yyjson_val *value = sp_setting(call, text_of(call, "key").c_str());
  yyjson_mut_doc *doc = sp_document(call);
  sp_return(call, value ? yyjson_val_mut_copy(doc, value) : yyjson_mut_null(doc));
}
SALLYPORT_TOOL(setting, .description = "Returns a setting.", .parameters = {{"key", SP_STRING, "Its name."}})

// Fails with the reason of a status. Returns whether it was SP_OK.
static bool worked(sp_call *call, sp_status status) {
  if (status == SP_OK) return true;
  sp_error error = status == SP_NOT_GRANTED ? SP_DENIED : status == SP_ABSENT ? SP_NOT_FOUND : SP_FAILED;
  sp_fail(call, error, "%s", sp_problem(call));
  return false;
}

static void fetch(sp_call *call) {
  std::string url = text_of(call, "url"), method = text_of(call, "method", "GET");
  sp_request request{};
  request.method = method.c_str();
  request.url = url.c_str();
  sp_response response;
  if (!worked(call, sp_http(call, &request, &response))) return;
  sp_set_int64(call, "status", response.status);
  sp_set_string_n(call, "body", response.body.data, response.body.length);
}
SALLYPORT_TOOL(fetch, .description = "Sends a request.", .parameters = {
  {"url", SP_STRING, "The address."},
  {"method", SP_STRING, "The method.", .optional = true},
}, .open_world = true)

struct CloseFile {
  void operator()(FILE *file) const { fclose(file); }
};
using File = std::unique_ptr<FILE, CloseFile>;

static void fail_with_errno(sp_call *call, const std::string &path) {
  bool is_refused = errno == EACCES || errno == EPERM || errno == ENOTCAPABLE || errno == EROFS;
  sp_error error = is_refused ? SP_DENIED : errno == ENOENT ? SP_NOT_FOUND : SP_FAILED;
  sp_fail(call, error, "%s: %s", path.c_str(), strerror(errno));
}

static void read_file(sp_call *call) {
  std::string path = text_of(call, "path");
  File file(fopen(path.c_str(), "rb"));
  if (!file) return fail_with_errno(call, path);
  std::string text;
  std::vector<char> piece(65536);
  while (size_t read = fread(piece.data(), 1, piece.size(), file.get())) text.append(piece.data(), read);
  if (ferror(file.get())) return fail_with_errno(call, path);
  add_text(call, text);
}
SALLYPORT_TOOL(read_file, .description = "Returns a file's text.", .parameters = {{"path", SP_STRING, "The file."}})

static void write_file(sp_call *call) {
  std::string path = text_of(call, "path"), text = text_of(call, "text");
  File file(fopen(path.c_str(), "wb"));
  if (!file) return fail_with_errno(call, path);
  bool is_written = fwrite(text.data(), 1, text.size(), file.get()) == text.size();
  if (fclose(file.release()) || !is_written) fail_with_errno(call, path);
}
SALLYPORT_TOOL(write_file, .description = "Writes a file.", .parameters = {
  {"path", SP_STRING, "The file."}, {"text", SP_STRING, "Its text."},
})

static void state_set(sp_call *call) {
  std::string value = text_of(call, "value");
  worked(call, sp_state_set(call, text_of(call, "key").c_str(), value.data(), value.size(), 0));
}
SALLYPORT_TOOL(state_set, .description = "Keeps a value.", .parameters = {
  {"key", SP_STRING, "Its key."}, {"value", SP_STRING, "The value."},
})

static void state_get(sp_call *call) {
  sp_bytes value;
  sp_status status = sp_state_get(call, text_of(call, "key").c_str(), &value, nullptr);
  yyjson_mut_doc *doc = sp_document(call);
  if (status == SP_ABSENT) sp_return(call, yyjson_mut_null(doc));
  else if (worked(call, status)) sp_return(call, yyjson_mut_strn(doc, value.data, value.length));
}
SALLYPORT_TOOL(state_get, .description = "Returns a kept value.", .parameters = {{"key", SP_STRING, "Its key."}})

static void secret_known(sp_call *call) {
  sp_bytes value;
  bool is_known = sp_secret(call, text_of(call, "name").c_str(), &value) == SP_OK;
  sp_return(call, yyjson_mut_bool(sp_document(call), is_known));
}
SALLYPORT_TOOL(secret_known, .description = "Tells whether a secret is known.", .parameters = {
  {"name", SP_STRING, "Its name."},
})

static void trap(sp_call *) { abort(); }
SALLYPORT_TOOL(trap, .description = "Stops the plugin.")

static void spin(sp_call *) {
  for (volatile bool turn = false;; turn = !turn) {
  }
}
SALLYPORT_TOOL(spin, .description = "Never ends.")

static void grow(sp_call *call) {
  std::vector<char> memory(sp_uint64(call, "bytes", 0), 1);  // untouched memory might not count
  sp_set_uint64(call, "bytes", memory.size());
}
SALLYPORT_TOOL(grow, .description = "Allocates memory.", .parameters = {
  {"bytes", SP_INTEGER, "How much.", .minimum = "0"},
})
