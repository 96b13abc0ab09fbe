/* Requests to the network over wasi:http. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "bindings.h"
#include "sallyport_internal.h"

/* Longest response that is read unless the plugin says otherwise. */
enum { BODY_MAX = 8 << 20 };

/* Most bytes of a body that one write to the host may have. */
enum { WRITE_MAX = 4096 };

static const char *const METHODS[] = {"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"};

static bindings_string_t lent(const char *text, size_t length) {
  return (bindings_string_t){(uint8_t *)text, length};
}

static sp_status problem(sp_call *call, const char *text) {
  return sp_not(call, SP_NOT_DONE, text, strlen(text));
}

/* The reason of an error code. The host puts its own words into `internal-error`. */
static sp_status not_sent(sp_call *call, wasi_http_types_error_code_t *error) {
  sp_status status;
  switch (error->tag) {
    case WASI_HTTP_TYPES_ERROR_CODE_HTTP_REQUEST_DENIED:
      return sp_not(call, SP_NOT_GRANTED, "the request is not granted", 26);
    case WASI_HTTP_TYPES_ERROR_CODE_INTERNAL_ERROR:
      if (!error->val.internal_error.is_some) return problem(call, "the request failed");
      status = sp_not(call, SP_NOT_DONE, (char *)error->val.internal_error.val.ptr, error->val.internal_error.val.len);
      wasi_http_types_error_code_free(error);
      return status;
    case WASI_HTTP_TYPES_ERROR_CODE_DNS_TIMEOUT:
    case WASI_HTTP_TYPES_ERROR_CODE_DNS_ERROR:
    case WASI_HTTP_TYPES_ERROR_CODE_DESTINATION_NOT_FOUND:
      return problem(call, "the host name was not found");
    case WASI_HTTP_TYPES_ERROR_CODE_DESTINATION_IP_PROHIBITED:
      return sp_not(call, SP_NOT_GRANTED, "the address of the server is not granted", 40);
    case WASI_HTTP_TYPES_ERROR_CODE_CONNECTION_REFUSED:
    case WASI_HTTP_TYPES_ERROR_CODE_DESTINATION_UNAVAILABLE:
      return problem(call, "the server refused the connection");
    case WASI_HTTP_TYPES_ERROR_CODE_CONNECTION_TIMEOUT:
    case WASI_HTTP_TYPES_ERROR_CODE_CONNECTION_READ_TIMEOUT:
    case WASI_HTTP_TYPES_ERROR_CODE_HTTP_RESPONSE_TIMEOUT:
      return problem(call, "the server did not answer in time");
    case WASI_HTTP_TYPES_ERROR_CODE_TLS_PROTOCOL_ERROR:
    case WASI_HTTP_TYPES_ERROR_CODE_TLS_CERTIFICATE_ERROR:
    case WASI_HTTP_TYPES_ERROR_CODE_TLS_ALERT_RECEIVED:
      return problem(call, "the TLS connection failed");
    case WASI_HTTP_TYPES_ERROR_CODE_HTTP_RESPONSE_BODY_SIZE:
      return problem(call, "the response is longer than allowed");
    default:
      return problem(call, sp_format(call, "the request failed (wasi:http error %d)", error->tag));
  }
}

/* --- The request --- */

static bool set_headers(wasi_http_types_own_fields_t fields, const sp_request *request) {
  for (size_t at = 0; at < request->headers_count; at++) {
    const sp_header *header = &request->headers[at];
    bindings_string_t name = lent(header->name, strlen(header->name));
    wasi_http_types_field_value_t value = {(uint8_t *)header->value, strlen(header->value)};
    wasi_http_types_header_error_t error;
    if (!wasi_http_types_method_fields_append(wasi_http_types_borrow_fields(fields), &name, &value, &error)) return false;
  }
  return true;
}

static wasi_http_types_method_t method_of(const char *name) {
  for (uint8_t tag = 0; tag < sizeof METHODS / sizeof *METHODS; tag++) {
    if (!strcmp(METHODS[tag], name)) return (wasi_http_types_method_t){.tag = tag};
  }
  wasi_http_types_method_t other = {.tag = WASI_HTTP_TYPES_METHOD_OTHER};
  other.val.other = lent(name, strlen(name));
  return other;
}

/* Splits `scheme://authority/path?query#fragment`. The host checks the parts. */
static bool set_url(wasi_http_types_borrow_outgoing_request_t request, const char *url) {
  bool is_https = !strncasecmp(url, "https://", 8);
  if (!is_https && strncasecmp(url, "http://", 7)) return false;
  wasi_http_types_scheme_t scheme = {.tag = is_https ? WASI_HTTP_TYPES_SCHEME_HTTPS : WASI_HTTP_TYPES_SCHEME_HTTP};
  const char *start = url + (is_https ? 8 : 7);
  size_t length = strcspn(start, "/?#");
  const char *path = start + length;
  bindings_string_t authority = lent(start, length), target = lent(path, strcspn(path, "#"));
  bool is_set = wasi_http_types_method_outgoing_request_set_scheme(request, &scheme)
      && wasi_http_types_method_outgoing_request_set_authority(request, &authority);
  char *rooted = NULL;
  if (path[0] != '/') { /* `https://host?query` means the path `/` */
    rooted = malloc(target.len + 1);
    if (!rooted) abort();
    rooted[0] = '/';
    memcpy(rooted + 1, path, target.len);
    target = lent(rooted, target.len + 1);
  }
  is_set = is_set && wasi_http_types_method_outgoing_request_set_path_with_query(request, &target);
  free(rooted);
  return is_set;
}

/* Writes the body in the pieces that the host takes. */
static bool write_body(wasi_io_streams_own_output_stream_t stream, const uint8_t *bytes, size_t length) {
  wasi_io_streams_borrow_output_stream_t to = wasi_io_streams_borrow_output_stream(stream);
  wasi_io_streams_stream_error_t error;
  for (size_t at = 0; at < length;) {
    size_t piece = length - at < WRITE_MAX ? length - at : WRITE_MAX;
    bindings_list_u8_t contents = {(uint8_t *)bytes + at, piece};
    if (!wasi_io_streams_method_output_stream_blocking_write_and_flush(to, &contents, &error)) {
      wasi_io_streams_stream_error_free(&error);
      return false;
    }
    at += piece;
  }
  return true;
}

/* A server may answer before it has read the body, so a body that could not be written is no
   failure yet: the response decides. */
static void send_body(wasi_http_types_own_outgoing_body_t body, const sp_request *request) {
  wasi_http_types_own_output_stream_t stream;
  bool is_written = !request->body_length;
  if (request->body_length && wasi_http_types_method_outgoing_body_write(wasi_http_types_borrow_outgoing_body(body), &stream)) {
    is_written = write_body(stream, request->body, request->body_length);
    wasi_io_streams_output_stream_drop_own(stream);
  }
  wasi_http_types_error_code_t error;
  if (!is_written) wasi_http_types_outgoing_body_drop_own(body);
  else if (!wasi_http_types_static_outgoing_body_finish(body, NULL, &error)) wasi_http_types_error_code_free(&error);
}

static wasi_http_types_own_request_options_t options_of(const sp_request *request) {
  wasi_http_types_own_request_options_t options = wasi_http_types_constructor_request_options();
  if (!request->timeout_ms) return options;
  wasi_http_types_duration_t wait = request->timeout_ms * 1000000ull;
  wasi_http_types_borrow_request_options_t borrowed = wasi_http_types_borrow_request_options(options);
  wasi_http_types_method_request_options_set_connect_timeout(borrowed, &wait);
  wasi_http_types_method_request_options_set_first_byte_timeout(borrowed, &wait);
  wasi_http_types_method_request_options_set_between_bytes_timeout(borrowed, &wait);
  return options;
}

static sp_status wait_for(sp_call *call, wasi_http_types_own_future_incoming_response_t future,
                          wasi_http_types_own_incoming_response_t *response) {
  wasi_http_types_borrow_future_incoming_response_t borrowed = wasi_http_types_borrow_future_incoming_response(future);
  wasi_io_poll_own_pollable_t ready = wasi_http_types_method_future_incoming_response_subscribe(borrowed);
  wasi_io_poll_method_pollable_block(wasi_io_poll_borrow_pollable(ready));
  wasi_io_poll_pollable_drop_own(ready);
  wasi_http_types_result_result_own_incoming_response_error_code_void_t result;
  bool is_there = wasi_http_types_method_future_incoming_response_get(borrowed, &result) && !result.is_err;
  wasi_http_types_future_incoming_response_drop_own(future);
  if (!is_there) return problem(call, "there is no response");
  if (result.val.ok.is_err) return not_sent(call, &result.val.ok.val.err);
  *response = result.val.ok.val.ok;
  return SP_OK;
}

/* Gives the request to the host, which owns it from then on. */
static sp_status start(sp_call *call, const sp_request *request, wasi_http_types_own_outgoing_request_t outgoing,
                       wasi_http_types_own_future_incoming_response_t *future) {
  wasi_http_types_own_outgoing_body_t body;
  if (!wasi_http_types_method_outgoing_request_body(wasi_http_types_borrow_outgoing_request(outgoing), &body))
    return problem(call, "the request has no body");
  wasi_http_types_own_request_options_t options = options_of(request);
  wasi_http_types_error_code_t error;
  if (!wasi_http_outgoing_handler_handle(outgoing, &options, future, &error)) {
    wasi_http_types_outgoing_body_drop_own(body);
    return not_sent(call, &error);
  }
  send_body(body, request);
  return SP_OK;
}

/* --- The response --- */

static void read_headers(sp_call *call, wasi_http_types_own_incoming_response_t incoming, sp_response *response) {
  wasi_http_types_own_headers_t headers =
      wasi_http_types_method_incoming_response_headers(wasi_http_types_borrow_incoming_response(incoming));
  wasi_http_types_list_tuple2_field_name_field_value_t entries;
  wasi_http_types_method_fields_entries(wasi_http_types_borrow_fields(headers), &entries);
  sp_header *list = sp_allocate(call, (entries.len + 1) * sizeof *list);
  for (size_t at = 0; at < entries.len; at++) {
    list[at].name = sp_copy(call, entries.ptr[at].f0.ptr, entries.ptr[at].f0.len).data;
    list[at].value = sp_copy(call, entries.ptr[at].f1.ptr, entries.ptr[at].f1.len).data;
  }
  response->headers = list;
  response->headers_count = entries.len;
  wasi_http_types_list_tuple2_field_name_field_value_free(&entries);
  wasi_http_types_fields_drop_own(headers);
}

/* Reads to the end of a stream, or fails if there is more than `max` bytes. */
static sp_status read_stream(sp_call *call, wasi_io_streams_borrow_input_stream_t stream, size_t max, sp_bytes *body) {
  uint8_t *bytes = NULL;
  size_t length = 0, capacity = 0;
  sp_status status = SP_OK;
  for (;;) {
    bindings_list_u8_t piece;
    wasi_io_streams_stream_error_t error;
    if (!wasi_io_streams_method_input_stream_blocking_read(stream, 65536, &piece, &error)) {
      if (error.tag != WASI_IO_STREAMS_STREAM_ERROR_CLOSED) status = problem(call, "the response broke off");
      wasi_io_streams_stream_error_free(&error);
      break;
    }
    if (piece.len > max - length) {
      status = problem(call, "the response is longer than allowed");
      bindings_list_u8_free(&piece);
      break;
    }
    if (length + piece.len > capacity) {
      capacity = 2 * (length + piece.len);
      bytes = realloc(bytes, capacity);
      if (!bytes) abort();
    }
    if (piece.len) memcpy(bytes + length, piece.ptr, piece.len);
    length += piece.len;
    bindings_list_u8_free(&piece);
  }
  *body = sp_copy(call, bytes, length);
  free(bytes);
  return status;
}

static sp_status read_response(sp_call *call, const sp_request *request, wasi_http_types_own_incoming_response_t incoming,
                               sp_response *response) {
  wasi_http_types_borrow_incoming_response_t borrowed = wasi_http_types_borrow_incoming_response(incoming);
  response->status = wasi_http_types_method_incoming_response_status(borrowed);
  read_headers(call, incoming, response);
  wasi_http_types_own_incoming_body_t body;
  wasi_http_types_own_input_stream_t stream;
  if (!wasi_http_types_method_incoming_response_consume(borrowed, &body)) return problem(call, "the response has no body");
  sp_status status = problem(call, "the response has no body");
  if (wasi_http_types_method_incoming_body_stream(wasi_http_types_borrow_incoming_body(body), &stream)) {
    size_t max = request->body_max ? request->body_max : BODY_MAX;
    status = read_stream(call, wasi_io_streams_borrow_input_stream(stream), max, &response->body);
    wasi_io_streams_input_stream_drop_own(stream);
  }
  wasi_http_types_incoming_body_drop_own(body);
  return status;
}

sp_status sp_http(sp_call *call, const sp_request *request, sp_response *response) {
  *response = (sp_response){.body = {"", 0}};
  wasi_http_types_own_fields_t fields = wasi_http_types_constructor_fields();
  if (!set_headers(fields, request)) {
    wasi_http_types_fields_drop_own(fields);
    return problem(call, "a header of the request is not allowed");
  }
  wasi_http_types_own_outgoing_request_t outgoing = wasi_http_types_constructor_outgoing_request(fields);
  wasi_http_types_borrow_outgoing_request_t borrowed = wasi_http_types_borrow_outgoing_request(outgoing);
  wasi_http_types_method_t method = method_of(request->method ? request->method : "GET");
  if (!wasi_http_types_method_outgoing_request_set_method(borrowed, &method) || !set_url(borrowed, request->url)) {
    wasi_http_types_outgoing_request_drop_own(outgoing);
    return problem(call, "the method or the address of the request is not valid");
  }
  wasi_http_types_own_future_incoming_response_t future;
  wasi_http_types_own_incoming_response_t incoming;
  sp_status status = start(call, request, outgoing, &future);
  if (status == SP_OK) status = wait_for(call, future, &incoming);
  if (status != SP_OK) return status;
  status = read_response(call, request, incoming, response);
  wasi_http_types_incoming_response_drop_own(incoming);
  return status;
}

sp_status sp_http_get(sp_call *call, const char *url, sp_response *response) {
  return sp_http(call, &(sp_request){.url = url}, response);
}

const char *sp_response_header(const sp_response *response, const char *name) {
  for (size_t at = 0; at < response->headers_count; at++) {
    if (!strcasecmp(response->headers[at].name, name)) return response->headers[at].value;
  }
  return NULL;
}
