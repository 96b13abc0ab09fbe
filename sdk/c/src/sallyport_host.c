/* The part of the SDK that talks to the host, over the generated bindings. The linker drops the
   functions that a plugin does not use, and with them what it imports. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "bindings.h"
#include "sallyport_internal.h"

/* The bindings refer to it, to keep an object with the component's type. The build writes that type
   into the module instead, so it has nothing to keep. */
void __component_type_object_force_link_bindings(void) {}

/* --- Text over the boundary --- */

/* Text for a call into the host, which copies it. */
static bindings_string_t lent(const char *text) {
  return (bindings_string_t){(uint8_t *)text, strlen(text)};
}

/* Text for a result, which the bindings free. */
static bindings_string_t given(const char *text, size_t length) {
  sp_bytes copy = sp_valid_text(NULL, text, length);
  return (bindings_string_t){(uint8_t *)copy.data, copy.length};
}

static bindings_option_string_t given_option(const char *text) {
  if (!text) return (bindings_option_string_t){0};
  return (bindings_option_string_t){true, given(text, strlen(text))};
}

static bindings_list_u8_t given_bytes(sp_bytes bytes) {
  bindings_list_u8_t list = {malloc(bytes.length ? bytes.length : 1), bytes.length};
  if (!list.ptr) abort();
  memcpy(list.ptr, bytes.data, bytes.length);
  return list;
}

static const char *received(sp_call *call, bindings_string_t text) {
  return sp_copy(call, text.ptr, text.len).data;
}

/* --- Exports --- */

static bindings_option_bool_t hint(bool value) {
  return (bindings_option_bool_t){value, value};
}

static void describe(const sp_tool *tool, sallyport_plugin_types_tool_spec_t *spec) {
  char *parameters = sp_schema(tool);
  const char *description = tool->description ? tool->description : "";
  *spec = (sallyport_plugin_types_tool_spec_t){
    .name = given(tool->name, strlen(tool->name)),
    .title = given_option(tool->title),
    .description = given(description, strlen(description)),
    .parameters = given(parameters, strlen(parameters)),
    .hints = {.read_only = hint(tool->read_only), .destructive = hint(tool->destructive),
              .idempotent = hint(tool->idempotent), .open_world = hint(tool->open_world)},
  };
  if (tool->output) {
    spec->output = (sallyport_plugin_types_option_json_t){true, given(tool->output, strlen(tool->output))};
  }
  free(parameters);
}

void exports_sallyport_plugin_tools_list_tools(exports_sallyport_plugin_tools_list_tool_spec_t *list) {
  sp_check_tools();
  list->len = 0;
  for (sp_registered *at = sp_tools(); at; at = at->next) list->len++;
  list->ptr = calloc(list->len ? list->len : 1, sizeof *list->ptr);
  if (!list->ptr) abort();
  size_t index = 0;
  for (sp_registered *at = sp_tools(); at; at = at->next) describe(at->tool, &list->ptr[index++]);
}

static sp_context read_context(sp_call *call, exports_sallyport_plugin_tools_call_context_t *context) {
  bool has_conversation = context->conversation_id.is_some;
  return (sp_context){
    .call_id = received(call, context->call_id),
    .session_id = received(call, context->session_id),
    .user_id = received(call, context->user_id),
    .conversation_id = has_conversation ? received(call, context->conversation_id.val) : NULL,
    .deadline_ms = context->deadline_ms.is_some ? (int64_t)context->deadline_ms.val : -1,
  };
}

static sallyport_plugin_types_content_t give_part(const sp_part *part) {
  sallyport_plugin_types_content_t content = {0};
  bindings_string_t label = part->label ? given(part->label, strlen(part->label)) : (bindings_string_t){0};
  content.tag = (uint8_t)part->kind; /* the kinds have the order of the variant */
  switch (part->kind) {
    case SP_PART_TEXT:
      content.val.text = given(part->bytes.data, part->bytes.length);
      break;
    case SP_PART_IMAGE:
    case SP_PART_AUDIO: /* one type, so one place in the union */
      content.val.image.media_type = label;
      content.val.image.data = given_bytes(part->bytes);
      break;
    case SP_PART_LINK:
      content.val.link.uri = label;
      content.val.link.title = given_option(part->extra);
      break;
    case SP_PART_RESOURCE:
      content.val.embedded.uri = label;
      content.val.embedded.media_type = given_option(part->extra);
      content.val.embedded.data.tag = SALLYPORT_PLUGIN_TYPES_RESOURCE_DATA_TEXT;
      content.val.embedded.data.val.text = given(part->bytes.data, part->bytes.length);
      break;
  }
  return content;
}

static void give_output(const sp_call *call, const char *json, size_t length,
                        exports_sallyport_plugin_tools_tool_output_t *output) {
  memset(output, 0, sizeof *output);
  output->data = given(json, length);
  output->speech = given_option(call->speech);
  output->content.ptr = calloc(call->parts_count ? call->parts_count : 1, sizeof *output->content.ptr);
  if (!output->content.ptr) abort();
  for (const sp_part *part = call->first_part; part; part = part->next) {
    output->content.ptr[output->content.len++] = give_part(part);
  }
}

/* The error `other` is a JSON object with the kind and the message. */
static bindings_string_t other_error(const char *message) {
  yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
  yyjson_mut_val *root = yyjson_mut_obj(doc);
  yyjson_mut_doc_set_root(doc, root);
  yyjson_mut_obj_add_str(doc, root, "kind", "other");
  yyjson_mut_obj_add_str(doc, root, "message", message);
  size_t length;
  char *json = yyjson_mut_write(doc, 0, &length);
  yyjson_mut_doc_free(doc);
  if (!json) abort();
  return (bindings_string_t){(uint8_t *)json, length};
}

static void give_error(const sp_call *call, exports_sallyport_plugin_tools_tool_error_t *error) {
  memset(error, 0, sizeof *error);
  error->tag = (uint8_t)call->error; /* the errors have the order of the variant */
  const char *message = call->error_message;
  switch (call->error) {
    case SP_AUTH_REQUIRED:
      error->val.auth_required.message = given(message, strlen(message));
      error->val.auth_required.connection = given_option(call->connection);
      break;
    case SP_OTHER:
      error->val.other = other_error(message);
      break;
    default: /* all others are one text, at one place in the union */
      error->val.failed = given(message, strlen(message));
  }
}

bool exports_sallyport_plugin_tools_call_tool(
    exports_sallyport_plugin_tools_call_context_t *context, bindings_string_t *name,
    exports_sallyport_plugin_tools_json_t *arguments,
    exports_sallyport_plugin_tools_tool_output_t *output,
    exports_sallyport_plugin_tools_tool_error_t *error) {
  sp_call call = {0};
  call.context = read_context(&call, context);
  size_t length = 0;
  const char *json = sp_run_tool(&call, (char *)name->ptr, name->len, (char *)arguments->ptr, arguments->len, &length);
  if (json) give_output(&call, json, length, output);
  else give_error(&call, error);
  sp_end_call(&call);
  exports_sallyport_plugin_tools_call_context_free(context);
  bindings_string_free(name);
  exports_sallyport_plugin_tools_json_free(arguments);
  return json != NULL;
}

/* --- Log, settings, progress --- */

void sp_log(sp_level level, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  char *text = sp_print(format, arguments);
  va_end(arguments);
  bindings_string_t message = given(text, strlen(text));
  sallyport_plugin_log_log((sallyport_plugin_log_level_t)level, &message);
  bindings_string_free(&message);
  free(text);
}

yyjson_val *sp_setting(sp_call *call, const char *key) {
  bindings_string_t name = lent(key);
  sallyport_plugin_config_json_t json;
  if (!sallyport_plugin_config_get(&name, &json)) return NULL;
  yyjson_val *value = sp_read_json(call, (char *)json.ptr, json.len);
  sallyport_plugin_types_json_free(&json);
  return value;
}

void sp_progress(double part, const char *message) {
  bool has_part = part >= 0;
  bindings_string_t text = {0};
  if (message) text = given(message, strlen(message));
  sallyport_plugin_progress_report(has_part ? &part : NULL, message ? &text : NULL);
  if (message) bindings_string_free(&text);
}

/* --- State --- */

static sp_status state_status(sp_call *call, sallyport_plugin_state_error_t *error) {
  sp_status status = SP_NOT_DONE;
  switch (error->tag) {
    case SALLYPORT_PLUGIN_STATE_ERROR_NOT_GRANTED:
      status = sp_not(call, SP_NOT_GRANTED, "state is not granted", 20);
      break;
    case SALLYPORT_PLUGIN_STATE_ERROR_CONFLICT:
      status = sp_not(call, SP_CONFLICT, "the key is in another version", 29);
      break;
    default: /* one text, at one place in the union */
      status = sp_not(call, SP_NOT_DONE, (char *)error->val.invalid.ptr, error->val.invalid.len);
  }
  sallyport_plugin_state_error_free(error);
  return status;
}

sp_status sp_state_get(sp_call *call, const char *key, sp_bytes *value, uint64_t *version) {
  bindings_string_t name = lent(key);
  sallyport_plugin_state_option_entry_t entry;
  sallyport_plugin_state_error_t error;
  if (!sallyport_plugin_state_get(&name, &entry, &error)) return state_status(call, &error);
  if (!entry.is_some) return sp_not(call, SP_ABSENT, "there is no such key", 20);
  *value = sp_copy(call, entry.val.value.ptr, entry.val.value.len);
  if (version) *version = entry.val.version;
  sallyport_plugin_state_entry_free(&entry.val);
  return SP_OK;
}

sp_status sp_state_set(sp_call *call, const char *key, const void *bytes, size_t length, uint64_t keep_ms) {
  bindings_string_t name = lent(key);
  bindings_list_u8_t value = {(uint8_t *)bytes, length};
  uint64_t version;
  sallyport_plugin_state_error_t error;
  bool done = sallyport_plugin_state_set(&name, &value, keep_ms ? &keep_ms : NULL, &version, &error);
  return done ? SP_OK : state_status(call, &error);
}

sp_status sp_state_replace(sp_call *call, const char *key, uint64_t expected, const void *bytes,
                           size_t length, uint64_t keep_ms) {
  bindings_string_t name = lent(key);
  bindings_list_u8_t value = {(uint8_t *)bytes, length};
  sallyport_plugin_state_expected_t before = {.tag = SALLYPORT_PLUGIN_STATE_EXPECTED_NOTHING};
  if (expected) {
    before.tag = SALLYPORT_PLUGIN_STATE_EXPECTED_VERSION;
    before.val.version = expected;
  }
  uint64_t version;
  sallyport_plugin_state_error_t error;
  uint64_t *expires = keep_ms ? &keep_ms : NULL;
  bool done = sallyport_plugin_state_compare_and_set(&name, &before, &value, expires, &version, &error);
  return done ? SP_OK : state_status(call, &error);
}

sp_status sp_state_remove(sp_call *call, const char *key) {
  bindings_string_t name = lent(key);
  bool existed;
  sallyport_plugin_state_error_t error;
  if (!sallyport_plugin_state_remove(&name, &existed, &error)) return state_status(call, &error);
  return existed ? SP_OK : sp_not(call, SP_ABSENT, "there is no such key", 20);
}

sp_status sp_state_list(sp_call *call, const char *prefix, const char *after, sp_bytes *keys,
                        size_t capacity, size_t *count) {
  bindings_string_t start = lent(prefix), from = lent(after ? after : "");
  sallyport_plugin_state_page_t page;
  sallyport_plugin_state_error_t error;
  uint32_t limit = capacity > UINT32_MAX ? UINT32_MAX : (uint32_t)capacity;
  *count = 0;
  bool done = sallyport_plugin_state_list_keys(&start, after ? &from : NULL, limit, &page, &error);
  if (!done) return state_status(call, &error);
  for (; *count < page.keys.len && *count < capacity; ++*count) {
    keys[*count] = sp_copy(call, page.keys.ptr[*count].ptr, page.keys.ptr[*count].len);
  }
  sallyport_plugin_state_page_free(&page);
  return SP_OK;
}

/* --- Secrets, messages, pages --- */

sp_status sp_secret(sp_call *call, const char *name, sp_bytes *value) {
  bindings_string_t wanted = lent(name), found;
  sallyport_plugin_secrets_error_t error;
  if (sallyport_plugin_secrets_get(&wanted, &found, &error)) {
    *value = sp_copy(call, found.ptr, found.len);
    bindings_string_free(&found);
    return SP_OK;
  }
  bool is_granted = error.tag != SALLYPORT_PLUGIN_SECRETS_ERROR_NOT_GRANTED;
  sp_status status = is_granted
      ? sp_not(call, SP_NOT_DONE, (char *)error.val.unavailable.ptr, error.val.unavailable.len)
      : sp_not(call, SP_NOT_GRANTED, "the secret is not granted", 25);
  sallyport_plugin_secrets_error_free(&error);
  return status;
}

sp_status sp_notify(sp_call *call, const char *text, const char *speech) {
  sallyport_plugin_notify_message_t message = {
    .text = given(text, strlen(text)),
    .speech = given_option(speech),
    .audience = {.tag = SALLYPORT_PLUGIN_NOTIFY_AUDIENCE_CONVERSATION},
  };
  sallyport_plugin_notify_error_t error;
  bool done = sallyport_plugin_notify_send(&message, &error);
  sallyport_plugin_notify_message_free(&message);
  if (done) return SP_OK;
  bool is_granted = error.tag != SALLYPORT_PLUGIN_NOTIFY_ERROR_NOT_GRANTED;
  sp_status status = is_granted
      ? sp_not(call, SP_NOT_DONE, (char *)error.val.invalid.ptr, error.val.invalid.len)
      : sp_not(call, SP_NOT_GRANTED, "messages are not granted", 24);
  sallyport_plugin_notify_error_free(&error);
  return status;
}

sp_status sp_open_url(sp_call *call, const char *url) {
  bindings_string_t address = given(url, strlen(url));
  sallyport_plugin_open_url_opened_t opened;
  sallyport_plugin_open_url_error_t error;
  bool done = sallyport_plugin_open_url_open(&address, &opened, &error);
  bindings_string_free(&address);
  if (done) {
    sallyport_plugin_open_url_opened_free(&opened);
    return SP_OK;
  }
  bool is_denied = error.tag == SALLYPORT_PLUGIN_OPEN_URL_ERROR_DENIED;
  sp_status status = sp_not(call, is_denied ? SP_NOT_GRANTED : SP_NOT_DONE, (char *)error.val.denied.ptr, error.val.denied.len);
  sallyport_plugin_open_url_error_free(&error);
  return status;
}
