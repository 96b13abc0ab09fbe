/* The part of the SDK that needs no host: tools, arguments and results. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sallyport_internal.h"

/* Deepest nesting of arguments and results. The stack of a plugin is small. */
enum { DEPTH_MAX = 256 };

static sp_registered *first_tool;
static sp_registered **last_tool = &first_tool;

static _Noreturn void stop(const char *reason) {
  fprintf(stderr, "sallyport: %s\n", reason);
  abort();
}

static void *checked(void *memory) {
  if (!memory) stop("out of memory");
  return memory;
}

/* --- Tools --- */

void sp_register(const sp_tool *tool, sp_run run, const char *place) {
  sp_registered *added = checked(calloc(1, sizeof *added));
  *added = (sp_registered){.tool = tool, .run = run, .place = place};
  *last_tool = added;
  last_tool = &added->next;
}

sp_registered *sp_tools(void) {
  return first_tool;
}

/* --- Memory --- */

struct sp_block {
  sp_block *next;
  max_align_t memory[];
};

void *sp_allocate(sp_call *call, size_t size) {
  if (size > SIZE_MAX - sizeof(sp_block)) stop("out of memory");
  sp_block *block = checked(malloc(sizeof *block + size));
  block->next = call->blocks;
  call->blocks = block;
  return block->memory;
}

sp_bytes sp_copy(sp_call *call, const void *bytes, size_t length) {
  char *copy = sp_allocate(call, length + 1);
  if (length) memcpy(copy, bytes, length);
  copy[length] = 0;
  return (sp_bytes){copy, length};
}

char *sp_print(const char *format, va_list arguments) {
  va_list measured;
  va_copy(measured, arguments);
  int length = vsnprintf(NULL, 0, format, measured);
  va_end(measured);
  if (length < 0) stop("a format is wrong");
  char *text = checked(malloc((size_t)length + 1));
  vsnprintf(text, (size_t)length + 1, format, arguments);
  return text;
}

static const char *print_into(sp_call *call, const char *format, va_list arguments) {
  char *text = sp_print(format, arguments);
  const char *copy = sp_copy(call, text, strlen(text)).data;
  free(text);
  return copy;
}

const char *sp_format(sp_call *call, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const char *text = print_into(call, format, arguments);
  va_end(arguments);
  return text;
}

struct sp_read {
  sp_read *next;
  yyjson_doc *doc;
};

yyjson_val *sp_read_json(sp_call *call, const char *json, size_t length) {
  yyjson_doc *doc = yyjson_read(json, length, 0);
  if (!doc) return NULL;
  sp_read *read = sp_allocate(call, sizeof *read);
  *read = (sp_read){call->reads, doc};
  call->reads = read;
  return yyjson_doc_get_root(doc);
}

void sp_end_call(sp_call *call) {
  yyjson_doc_free(call->arguments);
  for (sp_read *read = call->reads; read; read = read->next) yyjson_doc_free(read->doc);
  yyjson_mut_doc_free(call->document);
  for (sp_block *block = call->blocks; block;) {
    sp_block *next = block->next;
    free(block);
    block = next;
  }
}

/* --- Text --- */

/* The length of the UTF-8 sequence at `text`, or 0 if it is none. */
static size_t sequence_length(const unsigned char *text, size_t left) {
  unsigned char first = text[0];
  if (first < 0x80) return 1;
  size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || left < length) return 0;
  unsigned char low = 0x80, high = 0xBF;
  if (first == 0xE0) low = 0xA0; /* shorter forms exist */
  if (first == 0xED) high = 0x9F; /* surrogates */
  if (first == 0xF0) low = 0x90;
  if (first == 0xF4) high = 0x8F; /* beyond U+10FFFF */
  if (text[1] < low || text[1] > high) return 0;
  for (size_t at = 2; at < length; at++) {
    if (text[at] < 0x80 || text[at] > 0xBF) return 0;
  }
  return length;
}

static size_t replace_invalid(char *to, const unsigned char *text, size_t length) {
  size_t written = 0;
  for (size_t at = 0; at < length;) {
    size_t sequence = sequence_length(text + at, length - at);
    if (to) memcpy(to + written, sequence ? (const char *)text + at : "\xEF\xBF\xBD", sequence ? sequence : 3);
    written += sequence ? sequence : 3;
    at += sequence ? sequence : 1;
  }
  return written;
}

sp_bytes sp_valid_text(sp_call *call, const char *text, size_t length) {
  const unsigned char *bytes = (const unsigned char *)text;
  size_t valid = replace_invalid(NULL, bytes, length);
  char *to = call ? sp_allocate(call, valid + 1) : checked(malloc(valid + 1));
  replace_invalid(to, bytes, length);
  to[valid] = 0;
  return (sp_bytes){to, valid};
}

/* --- Mistakes of the author --- */

/* Stops with a message about a tool, which `sallyport plugin build` prints. */
/* The file and the line of a tool. */
static const char *place_of(const sp_tool *tool) {
  const sp_registered *at = first_tool;
  while (at && at->tool != tool) at = at->next;
  return at ? at->place : "plugin";
}

__attribute__((format(printf, 2, 3))) static _Noreturn void refuse(const sp_tool *tool, const char *format, ...) {
  fprintf(stderr, "%s: the tool %s", place_of(tool), tool->name);
  va_list arguments;
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fputc('\n', stderr);
  abort();
}

static bool is_number_type(sp_type type) {
  return type == SP_NUMBER || type == SP_INTEGER || type == SP_INT64 || type == SP_UINT64;
}

/* Whether a text is JSON, and a number if it has to be. */
static bool is_json(const char *text, bool is_number) {
  yyjson_doc *read = yyjson_read(text, strlen(text), 0);
  bool fits = read && (!is_number || yyjson_is_num(yyjson_doc_get_root(read)));
  yyjson_doc_free(read);
  return fits;
}

static void check_limit(const sp_tool *tool, const sp_parameter *at, const char *word, const char *limit) {
  if (!limit) return;
  if (!is_number_type(at->type))
    refuse(tool, ": the parameter %s has a minimum or maximum, which only numbers can have. Remove it", at->name);
  if (!is_json(limit, true)) refuse(tool, ": the parameter %s: its %s is not a number: %s. Write one such as \"1\"", at->name, word, limit);
}

static void check_parameter(const sp_tool *tool, const sp_parameter *at) {
  if (at->type == SP_END)
    refuse(tool, ": the parameter %s has no type. Write one such as SP_STRING after its name", at->name);
  if (at->choices && at->type != SP_STRING)
    refuse(tool, ": the parameter %s has choices, which only SP_STRING can have. Remove them", at->name);
  if (at->schema && at->type != SP_SCHEMA)
    refuse(tool, ": the parameter %s has a schema, which only SP_SCHEMA can have. Remove it", at->name);
  if (!at->schema && at->type == SP_SCHEMA)
    refuse(tool, ": the parameter %s: SP_SCHEMA needs .schema = \"{…}\"", at->name);
  if (at->schema && !is_json(at->schema, false))
    refuse(tool, ": the parameter %s: its schema is not JSON: %s. Write one such as {\"type\":\"object\"}", at->name, at->schema);
  check_limit(tool, at, "minimum", at->minimum);
  check_limit(tool, at, "maximum", at->maximum);
  for (const sp_parameter *before = tool->parameters; before < at; before++) {
    if (!strcmp(before->name, at->name)) refuse(tool, ": two parameters have the name %s. Rename one", at->name);
  }
}

static void check_tool(const sp_registered *registered) {
  const sp_tool *tool = registered->tool;
  if (!tool->description || !*tool->description)
    refuse(tool, " has no description. Write .description = \"…\": a model chooses tools by it");
  if (tool->output && !is_json(tool->output, false)) refuse(tool, ": its output is not JSON: %s. Write a JSON Schema", tool->output);
  for (const sp_registered *before = first_tool; before != registered; before = before->next) {
    if (!strcmp(before->tool->name, tool->name))
      refuse(tool, ": two tools have the name %s. Rename a function, or set .name", tool->name);
  }
  int count = 0;
  while (count < SP_PARAMETERS_MAX && tool->parameters[count].name) check_parameter(tool, &tool->parameters[count++]);
  if (count < SP_PARAMETERS_MAX && tool->parameters[count].type != SP_END)
    refuse(tool, ": parameter %d has no name. Write it first: {\"text\", SP_STRING, \"…\"}", count + 1);
}

void sp_check_tools(void) {
  for (const sp_registered *at = first_tool; at; at = at->next) check_tool(at);
}

/* --- Schema --- */

static yyjson_mut_val *typed(yyjson_mut_doc *doc, const char *type) {
  yyjson_mut_val *schema = yyjson_mut_obj(doc);
  yyjson_mut_obj_add_str(doc, schema, "type", type);
  return schema;
}

static yyjson_mut_val *list_of(yyjson_mut_doc *doc, const char *type) {
  yyjson_mut_val *schema = typed(doc, "array");
  yyjson_mut_obj_add_val(doc, schema, "items", typed(doc, type));
  return schema;
}

static yyjson_mut_val *parsed(yyjson_mut_doc *doc, const char *json) {
  yyjson_doc *read = json ? yyjson_read(json, strlen(json), 0) : NULL;
  if (!read) stop("a schema of a tool is not JSON"); /* sp_check_tools has found it before */
  yyjson_mut_val *copy = yyjson_val_mut_copy(doc, yyjson_doc_get_root(read));
  yyjson_doc_free(read);
  return copy;
}

/* A number, or decimal text, because many programs round integers of more than 53 bits. */
static yyjson_mut_val *wide_integer(yyjson_mut_doc *doc, bool is_signed) {
  return parsed(doc, is_signed
      ? "{\"anyOf\":[{\"type\":\"integer\",\"minimum\":-9223372036854775808,\"maximum\":9223372036854775807},"
        "{\"type\":\"string\",\"pattern\":\"^-?[0-9]{1,19}$\"}]}"
      : "{\"anyOf\":[{\"type\":\"integer\",\"minimum\":0,\"maximum\":18446744073709551615},"
        "{\"type\":\"string\",\"pattern\":\"^[0-9]{1,20}$\"}]}");
}

static yyjson_mut_val *type_schema(yyjson_mut_doc *doc, const sp_parameter *parameter) {
  switch (parameter->type) {
    case SP_STRING: return typed(doc, "string");
    case SP_NUMBER: return typed(doc, "number");
    case SP_INTEGER: return typed(doc, "integer");
    case SP_INT64: return wide_integer(doc, true);
    case SP_UINT64: return wide_integer(doc, false);
    case SP_BOOLEAN: return typed(doc, "boolean");
    case SP_STRINGS: return list_of(doc, "string");
    case SP_NUMBERS: return list_of(doc, "number");
    case SP_SCHEMA: return parsed(doc, parameter->schema);
    case SP_END: break;
  }
  stop("a parameter of a tool has no type");
}

static void add_choices(yyjson_mut_doc *doc, yyjson_mut_val *schema, const char *choices) {
  yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, schema, "enum");
  for (const char *at = choices;;) {
    size_t length = strcspn(at, "|");
    yyjson_mut_arr_add_strncpy(doc, list, at, length);
    if (!at[length]) return;
    at += length + 1;
  }
}

/* Lets a schema accept null too, because models write either null or nothing. */
static void allow_null(yyjson_mut_doc *doc, yyjson_mut_val *schema) {
  const char *type = yyjson_mut_get_str(yyjson_mut_obj_get(schema, "type"));
  if (type) {
    yyjson_mut_val *types = yyjson_mut_arr(doc);
    yyjson_mut_arr_add_str(doc, types, type);
    yyjson_mut_arr_add_str(doc, types, "null");
    yyjson_mut_obj_put(schema, yyjson_mut_str(doc, "type"), types);
  }
  yyjson_mut_val *choices = yyjson_mut_obj_get(schema, "enum"), *kinds = yyjson_mut_obj_get(schema, "anyOf");
  if (choices) yyjson_mut_arr_add_null(doc, choices);
  if (kinds) yyjson_mut_arr_append(kinds, typed(doc, "null"));
}

static yyjson_mut_val *parameter_schema(yyjson_mut_doc *doc, const sp_parameter *parameter) {
  yyjson_mut_val *schema = type_schema(doc, parameter);
  if (parameter->description)
    yyjson_mut_obj_add_str(doc, schema, "description", parameter->description);
  if (parameter->choices) add_choices(doc, schema, parameter->choices);
  if (parameter->minimum)
    yyjson_mut_obj_add_val(doc, schema, "minimum", parsed(doc, parameter->minimum));
  if (parameter->maximum)
    yyjson_mut_obj_add_val(doc, schema, "maximum", parsed(doc, parameter->maximum));
  if (parameter->optional && parameter->type != SP_SCHEMA) allow_null(doc, schema);
  return schema;
}

char *sp_schema(const sp_tool *tool) {
  yyjson_mut_doc *doc = checked(yyjson_mut_doc_new(NULL));
  yyjson_mut_val *root = typed(doc, "object");
  yyjson_mut_doc_set_root(doc, root);
  yyjson_mut_val *properties = yyjson_mut_obj_add_obj(doc, root, "properties");
  yyjson_mut_val *required = yyjson_mut_arr(doc);
  for (const sp_parameter *at = tool->parameters; at < tool->parameters + SP_PARAMETERS_MAX && at->name; at++) {
    yyjson_mut_obj_add_val(doc, properties, at->name, parameter_schema(doc, at));
    if (!at->optional) yyjson_mut_arr_add_str(doc, required, at->name);
  }
  yyjson_mut_obj_add_val(doc, root, "required", required);
  yyjson_mut_obj_add_bool(doc, root, "additionalProperties", false);
  char *text = checked(yyjson_mut_write(doc, 0, NULL));
  yyjson_mut_doc_free(doc);
  return text;
}

/* --- Arguments --- */

yyjson_val *sp_arguments(sp_call *call) {
  return yyjson_doc_get_root(call->arguments);
}

/* `null` is the same as left out: models write either. */
yyjson_val *sp_argument(sp_call *call, const char *name) {
  yyjson_val *value = yyjson_obj_get(sp_arguments(call), name);
  return yyjson_is_null(value) ? NULL : value;
}

static void misfit(sp_call *call, const char *name, const char *wanted) {
  sp_fail(call, SP_INVALID_ARGUMENTS, "%s is not %s", name, wanted);
}

const char *sp_string(sp_call *call, const char *name, const char *absent) {
  yyjson_val *value = sp_argument(call, name);
  if (!value) return absent;
  if (yyjson_is_str(value)) return yyjson_get_str(value);
  misfit(call, name, "a text");
  return absent;
}

size_t sp_string_length(sp_call *call, const char *name) {
  return yyjson_get_len(sp_argument(call, name));
}

double sp_number(sp_call *call, const char *name, double absent) {
  yyjson_val *value = sp_argument(call, name);
  if (!value) return absent;
  if (yyjson_is_num(value)) return yyjson_get_num(value);
  misfit(call, name, "a number");
  return absent;
}

/* Reads decimal text. `negative` is whether it has a minus. */
static bool read_decimal(const char *text, size_t length, bool *negative, uint64_t *value) {
  size_t at = *negative = length && text[0] == '-';
  if (at == length) return false;
  for (*value = 0; at < length; at++) {
    if (text[at] < '0' || text[at] > '9') return false;
    unsigned digit = (unsigned)(text[at] - '0');
    if (*value > (UINT64_MAX - digit) / 10) return false;
    *value = *value * 10 + digit;
  }
  return true;
}

/* Reads an integer from a number or text: its sign and its amount. */
static bool read_integer(yyjson_val *value, bool *negative, uint64_t *amount) {
  *negative = false;
  if (yyjson_is_str(value)) return read_decimal(yyjson_get_str(value), yyjson_get_len(value), negative, amount);
  if (yyjson_is_uint(value)) return *amount = yyjson_get_uint(value), true;
  if (yyjson_is_sint(value)) {
    int64_t number = yyjson_get_sint(value);
    *negative = number < 0;
    return *amount = *negative ? 0 - (uint64_t)number : (uint64_t)number, true;
  }
  double number = yyjson_get_real(value);
  *negative = number < 0;
  double positive = *negative ? -number : number;
  if (!yyjson_is_real(value) || !(positive < 18446744073709551616.0)) return false;
  *amount = (uint64_t)positive;
  return (double)*amount == positive; /* 2.0 is an integer of JSON Schema, 2.5 is not */
}

int64_t sp_int64(sp_call *call, const char *name, int64_t absent) {
  yyjson_val *value = sp_argument(call, name);
  if (!value) return absent;
  bool negative;
  uint64_t amount;
  if (read_integer(value, &negative, &amount) && amount <= (uint64_t)INT64_MAX + negative)
    return negative ? (int64_t)(0 - amount) : (int64_t)amount;
  misfit(call, name, "an integer of 64 bits");
  return absent;
}

uint64_t sp_uint64(sp_call *call, const char *name, uint64_t absent) {
  yyjson_val *value = sp_argument(call, name);
  if (!value) return absent;
  bool negative;
  uint64_t amount;
  if (read_integer(value, &negative, &amount) && !(negative && amount)) return amount;
  misfit(call, name, "an integer from 0 to 18446744073709551615");
  return absent;
}

bool sp_boolean(sp_call *call, const char *name, bool absent) {
  yyjson_val *value = sp_argument(call, name);
  if (!value) return absent;
  if (yyjson_is_bool(value)) return yyjson_get_bool(value);
  misfit(call, name, "true or false");
  return absent;
}

const sp_context *sp_call_context(sp_call *call) {
  return &call->context;
}

/* --- Result --- */

yyjson_mut_doc *sp_document(sp_call *call) {
  return call->document;
}

void sp_return(sp_call *call, yyjson_mut_val *value) {
  yyjson_mut_doc_set_root(call->document, value);
}

void sp_set_json(sp_call *call, const char *name, yyjson_mut_val *value) {
  yyjson_mut_doc *doc = call->document;
  yyjson_mut_val *root = yyjson_mut_doc_get_root(doc);
  if (!yyjson_mut_is_obj(root)) {
    root = checked(yyjson_mut_obj(doc));
    yyjson_mut_doc_set_root(doc, root);
  }
  yyjson_mut_val *key = checked(yyjson_mut_strcpy(doc, name));
  yyjson_mut_obj_put(root, key, checked(value));
}

void sp_set_string_n(sp_call *call, const char *name, const char *text, size_t length) {
  sp_bytes valid = sp_valid_text(call, text, length);
  sp_set_json(call, name, yyjson_mut_strn(call->document, valid.data, valid.length));
}

void sp_set_string(sp_call *call, const char *name, const char *text) {
  if (text) sp_set_string_n(call, name, text, strlen(text));
  else sp_set_null(call, name);
}

void sp_set_number(sp_call *call, const char *name, double value) {
  sp_set_json(call, name, yyjson_mut_real(call->document, value));
}

void sp_set_int64(sp_call *call, const char *name, int64_t value) {
  sp_set_json(call, name, yyjson_mut_sint(call->document, value));
}

void sp_set_uint64(sp_call *call, const char *name, uint64_t value) {
  sp_set_json(call, name, yyjson_mut_uint(call->document, value));
}

void sp_set_boolean(sp_call *call, const char *name, bool value) {
  sp_set_json(call, name, yyjson_mut_bool(call->document, value));
}

void sp_set_null(sp_call *call, const char *name) {
  sp_set_json(call, name, yyjson_mut_null(call->document));
}

static const char *copy_text(sp_call *call, const char *text) {
  return text ? sp_valid_text(call, text, strlen(text)).data : NULL;
}

static void add_part(sp_call *call, sp_part_kind kind, const char *label, const char *extra, sp_bytes bytes) {
  sp_part *part = sp_allocate(call, sizeof *part);
  *part = (sp_part){kind, copy_text(call, label), copy_text(call, extra), bytes, NULL};
  *call->last_part = part;
  call->last_part = &part->next;
  call->parts_count++;
}

void sp_add_text(sp_call *call, const char *text, size_t length) {
  add_part(call, SP_PART_TEXT, NULL, NULL, sp_valid_text(call, text, length));
}

void sp_add_image(sp_call *call, const char *media_type, const void *bytes, size_t length) {
  add_part(call, SP_PART_IMAGE, media_type, NULL, sp_copy(call, bytes, length));
}

void sp_add_audio(sp_call *call, const char *media_type, const void *bytes, size_t length) {
  add_part(call, SP_PART_AUDIO, media_type, NULL, sp_copy(call, bytes, length));
}

void sp_add_link(sp_call *call, const char *uri, const char *title) {
  add_part(call, SP_PART_LINK, uri, title, (sp_bytes){"", 0});
}

void sp_add_resource(sp_call *call, const char *uri, const char *media_type, const char *text, size_t length) {
  add_part(call, SP_PART_RESOURCE, uri, media_type, sp_valid_text(call, text, length));
}

void sp_speak(sp_call *call, const char *text) {
  call->speech = copy_text(call, text);
}

/* --- Errors --- */

static void fail_with(sp_call *call, sp_error error, const char *message) {
  if (call->has_failed) return;
  call->has_failed = true;
  call->error = error;
  call->error_message = message;
}

void sp_fail(sp_call *call, sp_error error, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const char *message = print_into(call, format, arguments);
  va_end(arguments);
  fail_with(call, error, copy_text(call, message));
}

void sp_fail_sign_in(sp_call *call, const char *message, const char *connection) {
  if (!call->has_failed) call->connection = copy_text(call, connection);
  fail_with(call, SP_AUTH_REQUIRED, copy_text(call, message));
}

bool sp_failed(sp_call *call) {
  return call->has_failed;
}

sp_status sp_not(sp_call *call, sp_status status, const char *problem, size_t length) {
  call->problem = sp_copy(call, problem, length).data;
  return status;
}

const char *sp_problem(sp_call *call) {
  return call->problem ? call->problem : "";
}

/* --- Running --- */

static const sp_registered *find_tool(const char *name, size_t length) {
  const sp_registered *at = sp_tools();
  while (at && (strlen(at->tool->name) != length || memcmp(at->tool->name, name, length))) at = at->next;
  return at;
}

/* The depth of the containers in JSON that was accepted already. */
static size_t json_depth(const char *json, size_t length) {
  size_t depth = 0, deepest = 0;
  bool in_text = false;
  for (size_t at = 0; at < length; at++) {
    char c = json[at];
    if (in_text && c == '\\') at++;
    else if (c == '"') in_text = !in_text;
    else if (!in_text && (c == '{' || c == '[') && ++depth > deepest) deepest = depth;
    else if (!in_text && (c == '}' || c == ']')) depth--;
  }
  return deepest;
}

static bool read_arguments(sp_call *call, const char *json, size_t length) {
  yyjson_read_err problem = {0};
  /* The reader does not change its input without the flag that allows it. */
  call->arguments = yyjson_read_opts((char *)json, length, 0, NULL, &problem);
  if (!call->arguments) {
    sp_fail(call, SP_INVALID_ARGUMENTS, "the arguments are not JSON: %s at byte %zu", problem.msg, problem.pos);
  } else if (!yyjson_is_obj(sp_arguments(call))) {
    sp_fail(call, SP_INVALID_ARGUMENTS, "the arguments are not an object");
  } else if (json_depth(json, length) > DEPTH_MAX) {
    sp_fail(call, SP_INVALID_ARGUMENTS, "the arguments are nested deeper than %d levels", DEPTH_MAX);
  }
  return !call->has_failed;
}

static const char *write_result(sp_call *call, size_t *length) {
  if (!yyjson_mut_doc_get_root(call->document)) sp_return(call, yyjson_mut_null(call->document));
  yyjson_write_err problem = {0};
  char *json = yyjson_mut_write_opts(call->document, 0, NULL, length, &problem);
  if (!json) {
    sp_fail(call, SP_FAILED, "the tool's result cannot be written as JSON: %s", problem.msg);
    return NULL;
  }
  const char *copy = sp_copy(call, json, *length).data;
  free(json);
  return copy;
}

const char *sp_run_tool(sp_call *call, const char *name, size_t name_length, const char *arguments,
                        size_t arguments_length, size_t *result_length) {
  call->last_part = &call->first_part;
  call->document = checked(yyjson_mut_doc_new(NULL));
  const sp_registered *found = find_tool(name, name_length);
  if (!found) {
    sp_fail(call, SP_NOT_FOUND, "there is no tool %.*s", (int)name_length, name);
  } else if (read_arguments(call, arguments, arguments_length)) {
    found->run(call);
  }
  return call->has_failed ? NULL : write_result(call, result_length);
}
