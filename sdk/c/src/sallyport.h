/* The SDK for plugins in C and C++. A plugin is one or more tools:

     #include "sallyport.h"

     static void add(sp_call *call) {
       sp_set_number(call, "sum", sp_number(call, "a", 0) + sp_number(call, "b", 0));
     }
     SALLYPORT_TOOL(add, .description = "Adds two numbers.", .parameters = {
       {"a", SP_NUMBER, "The first number."},
       {"b", SP_NUMBER, "The second number."},
     })

   Memory: what a function returns belongs to the call and is valid until the tool returns. Text is
   UTF-8. A text may contain NUL bytes; where that matters, use its length. Bytes that are not UTF-8
   are replaced by U+FFFD on their way to the host. */
#ifndef SALLYPORT_H
#define SALLYPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "yyjson.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One call of a tool. */
typedef struct sp_call sp_call;

/* --- Tools --- */

/* The type of a parameter. */
typedef enum {
  SP_END, /* no parameter: the end of the list */
  SP_STRING,
  SP_NUMBER,
  SP_INTEGER,
  SP_INT64,  /* an integer of 64 bits, as a number or as decimal text */
  SP_UINT64, /* the same without a sign */
  SP_BOOLEAN,
  SP_STRINGS, /* a list of texts */
  SP_NUMBERS, /* a list of numbers */
  SP_SCHEMA,  /* anything: see `schema` */
} sp_type;

/* A parameter of a tool. It is required unless `optional` is set. */
typedef struct {
  const char *name;
  sp_type type;
  const char *description;
  bool optional;
  const char *choices; /* SP_STRING: the allowed texts, separated by `|` */
  const char *minimum; /* numbers: the smallest allowed one, as JSON */
  const char *maximum; /* numbers: the largest allowed one, as JSON */
  const char *schema;  /* SP_SCHEMA: the JSON Schema of the value */
} sp_parameter;

enum { SP_PARAMETERS_MAX = 32 };

/* What a model reads about a tool. */
typedef struct {
  const char *name; /* the name of the function, unless another one is given */
  const char *description;
  const char *title;
  sp_parameter parameters[SP_PARAMETERS_MAX];
  const char *output; /* the JSON Schema of the result */
  bool read_only;     /* it changes nothing */
  bool destructive;   /* it may destroy something */
  bool idempotent;    /* calling it twice is the same as calling it once */
  bool open_world;    /* it reaches things outside of this machine */
} sp_tool;

typedef void (*sp_run)(sp_call *call);

/* Makes a function `void function(sp_call *)` a tool. The other arguments set fields of `sp_tool`. */
#define SALLYPORT_TOOL(function, ...) \
  SALLYPORT_NUMBERED_TOOL(__COUNTER__, function, #function, __VA_ARGS__)
#define SALLYPORT_NUMBERED_TOOL(...) SALLYPORT_DECLARE_TOOL(__VA_ARGS__)
/* By number, because the function may be `space::name`. */
#define SALLYPORT_DECLARE_TOOL(number, function, text, ...)                                \
  static const sp_tool sallyport_tool_##number = {.name = text, __VA_ARGS__};              \
  __attribute__((constructor)) static void sallyport_register_##number(void) {             \
    static const char place[] = __FILE__ ":" SALLYPORT_TEXT(__LINE__);                     \
    sp_register(&sallyport_tool_##number, function, place);                                \
  }
#define SALLYPORT_TEXT(value) SALLYPORT_PLAIN_TEXT(value)
#define SALLYPORT_PLAIN_TEXT(value) #value

/* SALLYPORT_TOOL calls it. `place` is the file and the line of the tool. */
void sp_register(const sp_tool *tool, sp_run run, const char *place);

/* --- Arguments --- */

/* All arguments: an object, to be read with the functions of yyjson.h. */
yyjson_val *sp_arguments(sp_call *call);

/* One argument, or NULL if it was left out. */
yyjson_val *sp_argument(sp_call *call, const char *name);

/* One argument of a type, or `absent` if it was left out. The host checks the arguments against the
   schema before the call. An argument that does not fit all the same ends the tool's call with
   `invalid-arguments` when the tool returns. */
const char *sp_string(sp_call *call, const char *name, const char *absent);
size_t sp_string_length(sp_call *call, const char *name);
double sp_number(sp_call *call, const char *name, double absent);
int64_t sp_int64(sp_call *call, const char *name, int64_t absent);
uint64_t sp_uint64(sp_call *call, const char *name, uint64_t absent);
bool sp_boolean(sp_call *call, const char *name, bool absent);

/* Reads JSON. NULL if it is not JSON, also if it has NaN, comments or text after the value. */
yyjson_val *sp_read_json(sp_call *call, const char *json, size_t length);

/* Where a call comes from. A text that the host did not send is NULL. */
typedef struct {
  const char *call_id;
  const char *session_id;
  const char *user_id;
  const char *conversation_id;
  int64_t deadline_ms; /* milliseconds until the host stops the call, or -1 */
} sp_context;

const sp_context *sp_call_context(sp_call *call);

/* --- Result --- */

/* Sets a member of the result, which is an object. */
void sp_set_string(sp_call *call, const char *name, const char *text);
void sp_set_string_n(sp_call *call, const char *name, const char *text, size_t length);
void sp_set_number(sp_call *call, const char *name, double value);
void sp_set_int64(sp_call *call, const char *name, int64_t value);
void sp_set_uint64(sp_call *call, const char *name, uint64_t value);
void sp_set_boolean(sp_call *call, const char *name, bool value);
void sp_set_null(sp_call *call, const char *name);
void sp_set_json(sp_call *call, const char *name, yyjson_mut_val *value);

/* Makes a value the whole result. Without a result, it is `null`. */
void sp_return(sp_call *call, yyjson_mut_val *value);

/* The document that values of the result are made in, with the functions of yyjson.h. */
yyjson_mut_doc *sp_document(sp_call *call);

/* Adds a part to the output, next to the result. */
void sp_add_text(sp_call *call, const char *text, size_t length);
void sp_add_image(sp_call *call, const char *media_type, const void *bytes, size_t length);
void sp_add_audio(sp_call *call, const char *media_type, const void *bytes, size_t length);
void sp_add_link(sp_call *call, const char *uri, const char *title);
void sp_add_resource(sp_call *call, const char *uri, const char *media_type, const char *text,
                     size_t length);

/* Sets a sentence that is said to the user as it is, if the session is a spoken one. */
void sp_speak(sp_call *call, const char *text);

/* --- Errors --- */

/* Why a call did not work. */
typedef enum {
  SP_INVALID_ARGUMENTS,
  SP_NOT_FOUND,
  SP_DENIED,
  SP_AUTH_REQUIRED,
  SP_UNAVAILABLE,
  SP_FAILED,
  SP_OTHER,
} sp_error;

/* Ends the call with an error. Return from the tool after it. The text is for the model to read;
   `format` is that of printf. The first error of a call counts. */
__attribute__((format(printf, 3, 4))) void sp_fail(sp_call *call, sp_error error,
                                                   const char *format, ...);

/* Ends the call because the user has to sign in. `connection` may be NULL. */
void sp_fail_sign_in(sp_call *call, const char *message, const char *connection);

/* Whether the call has failed. */
bool sp_failed(sp_call *call);

/* --- Host --- */

/* How a call into the host ended. */
typedef enum {
  SP_OK,
  SP_ABSENT,      /* there is no such key */
  SP_NOT_GRANTED, /* the policy does not grant it */
  SP_CONFLICT,    /* the key is in another version */
  SP_NOT_DONE,    /* anything else: see sp_problem */
} sp_status;

/* Bytes, with a NUL after them. */
typedef struct {
  const char *data;
  size_t length;
} sp_bytes;

/* The reason for the last status other than SP_OK. */
const char *sp_problem(sp_call *call);

typedef enum { SP_TRACE, SP_DEBUG, SP_INFO, SP_WARN, SP_ERROR } sp_level;

/* Writes a line to the log. `format` is that of printf. */
__attribute__((format(printf, 2, 3))) void sp_log(sp_level level, const char *format, ...);

/* A setting of this plugin, or NULL if it is not set. */
yyjson_val *sp_setting(sp_call *call, const char *key);

/* Values that outlive the call: [[request.state]]. `version` may be NULL. A value is kept for
   `keep_ms` milliseconds, or until it is removed if that is 0. */
sp_status sp_state_get(sp_call *call, const char *key, sp_bytes *value, uint64_t *version);
sp_status sp_state_set(sp_call *call, const char *key, const void *bytes, size_t length,
                       uint64_t keep_ms);
/* Sets a value only if its key is in the version `expected`, or absent if that is 0. */
sp_status sp_state_replace(sp_call *call, const char *key, uint64_t expected, const void *bytes,
                           size_t length, uint64_t keep_ms);
sp_status sp_state_remove(sp_call *call, const char *key);

/* Lists up to `capacity` keys that start with `prefix`, after the key `after` (NULL: from the
   start). `*count` is how many were found. */
sp_status sp_state_list(sp_call *call, const char *prefix, const char *after, sp_bytes *keys,
                        size_t capacity, size_t *count);

/* The value of a secret: [[request.secrets]] with `reveal = true`. */
sp_status sp_secret(sp_call *call, const char *name, sp_bytes *value);

/* Sends a message to the user: [[request.notify]]. `speech` may be NULL. */
sp_status sp_notify(sp_call *call, const char *text, const char *speech);

/* Opens a page in the user's browser: [[request.open-url]]. */
sp_status sp_open_url(sp_call *call, const char *url);

/* Reports progress: [[request.progress]]. `part` is between 0 and 1, or negative if it is unknown;
   `message` may be NULL. */
void sp_progress(double part, const char *message);

/* --- HTTP: [[request.net]] --- */

typedef struct {
  const char *name;
  const char *value;
} sp_header;

typedef struct {
  const char *method; /* NULL: GET */
  const char *url;
  const sp_header *headers;
  size_t headers_count;
  const void *body; /* NULL: none */
  size_t body_length;
  size_t body_max;     /* longest accepted response in bytes; 0: 8 MiB */
  uint32_t timeout_ms; /* for each wait; 0: the host's limit */
} sp_request;

typedef struct {
  uint16_t status;
  const sp_header *headers;
  size_t headers_count;
  sp_bytes body;
} sp_response;

/* Sends a request and reads the whole response. A response of any status is SP_OK. */
sp_status sp_http(sp_call *call, const sp_request *request, sp_response *response);

/* Sends a GET request. */
sp_status sp_http_get(sp_call *call, const char *url, sp_response *response);

/* The value of a header, or NULL. Its name may be in any case. */
const char *sp_response_header(const sp_response *response, const char *name);

/* --- Memory and tests --- */

/* Memory that is freed when the call ends. It is never NULL: without memory, the plugin stops. */
void *sp_allocate(sp_call *call, size_t size);

/* A text made like printf's. */
__attribute__((format(printf, 2, 3))) const char *sp_format(sp_call *call, const char *format, ...);

/* Calls a tool in a native test. The result is its JSON, or `KIND: MESSAGE` if it failed; free it.
   The host is a stand-in: see sallyport_native.c. */
char *sp_test_call(const char *tool, const char *arguments);

#ifdef __cplusplus
}
#endif
#endif
