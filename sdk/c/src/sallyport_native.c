/* The stand-in for the host in native tests. Compile it with the plugin, sallyport.c and yyjson.c;
   it is not part of a component. State is kept in memory, the log goes to standard error, and
   settings, secrets and the network are absent. */
#ifndef __wasm__
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sallyport_internal.h"

typedef struct kept {
  char *key;
  void *bytes;
  size_t length;
  uint64_t version;
  struct kept *next;
} kept;

static kept *state;

static kept *find(const char *key) {
  kept *at = state;
  while (at && strcmp(at->key, key)) at = at->next;
  return at && at->version ? at : NULL;
}

static sp_status absent(sp_call *call) {
  return sp_not(call, SP_ABSENT, "there is no such key", 20);
}

void sp_log(sp_level level, const char *format, ...) {
  static const char *const LEVELS[] = {"trace", "debug", "info", "warn", "error"};
  va_list arguments;
  va_start(arguments, format);
  fprintf(stderr, "%s: ", LEVELS[level]);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
}

yyjson_val *sp_setting(sp_call *call, const char *key) {
  (void)call, (void)key;
  return NULL;
}

void sp_progress(double part, const char *message) {
  (void)part, (void)message;
}

sp_status sp_state_get(sp_call *call, const char *key, sp_bytes *value, uint64_t *version) {
  kept *found = find(key);
  if (!found) return absent(call);
  *value = sp_copy(call, found->bytes, found->length);
  if (version) *version = found->version;
  return SP_OK;
}

sp_status sp_state_set(sp_call *call, const char *key, const void *bytes, size_t length, uint64_t keep_ms) {
  (void)call, (void)keep_ms;
  static uint64_t versions;
  kept *entry = find(key);
  if (!entry) {
    entry = calloc(1, sizeof *entry);
    if (!entry) abort();
    entry->key = strdup(key);
    entry->next = state;
    state = entry;
  }
  free(entry->bytes);
  entry->bytes = malloc(length ? length : 1);
  if (!entry->bytes) abort();
  if (length) memcpy(entry->bytes, bytes, length);
  entry->length = length;
  entry->version = ++versions;
  return SP_OK;
}

sp_status sp_state_replace(sp_call *call, const char *key, uint64_t expected, const void *bytes,
                           size_t length, uint64_t keep_ms) {
  kept *entry = find(key);
  if ((entry ? entry->version : 0) != expected) return sp_not(call, SP_CONFLICT, "the key is in another version", 29);
  return sp_state_set(call, key, bytes, length, keep_ms);
}

sp_status sp_state_remove(sp_call *call, const char *key) {
  kept *entry = find(key);
  if (!entry) return absent(call);
  entry->version = 0; /* removed; the entry stays in the list under a name that is not looked up */
  entry->key[0] = 0;
  return SP_OK;
}

sp_status sp_state_list(sp_call *call, const char *prefix, const char *after, sp_bytes *keys,
                        size_t capacity, size_t *count) {
  *count = 0;
  for (kept *at = state; at && *count < capacity; at = at->next) {
    bool is_listed = at->version && !strncmp(at->key, prefix, strlen(prefix)) && (!after || strcmp(at->key, after) > 0);
    if (is_listed) keys[(*count)++] = sp_copy(call, at->key, strlen(at->key));
  }
  return SP_OK;
}

sp_status sp_secret(sp_call *call, const char *name, sp_bytes *value) {
  (void)name, (void)value;
  return sp_not(call, SP_NOT_GRANTED, "a native test has no secrets", 28);
}

sp_status sp_notify(sp_call *call, const char *text, const char *speech) {
  (void)call, (void)speech;
  fprintf(stderr, "message: %s\n", text);
  return SP_OK;
}

sp_status sp_open_url(sp_call *call, const char *url) {
  (void)url;
  return sp_not(call, SP_NOT_GRANTED, "a native test has no browser", 28);
}

sp_status sp_http(sp_call *call, const sp_request *request, sp_response *response) {
  (void)request, (void)response;
  return sp_not(call, SP_NOT_GRANTED, "a native test has no network", 28);
}

sp_status sp_http_get(sp_call *call, const char *url, sp_response *response) {
  return sp_http(call, &(sp_request){.url = url}, response);
}

static const char *const ERRORS[] = {"invalid-arguments", "not-found", "denied", "auth-required",
                                     "unavailable", "failed", "other"};

char *sp_test_call(const char *tool, const char *arguments) {
  sp_call call = {.context = {"call", "session", "local", NULL, -1}};
  size_t length = 0;
  const char *json = sp_run_tool(&call, tool, strlen(tool), arguments, strlen(arguments), &length);
  const char *text = json ? json : sp_format(&call, "%s: %s", ERRORS[call.error], call.error_message);
  char *copy = strdup(text);
  sp_end_call(&call);
  return copy;
}
#endif
