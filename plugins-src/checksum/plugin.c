/* Checksums of texts and of the files that the policy grants. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "digest.h"
#include "sallyport.h"

#define ALGORITHMS "crc32|md5|sha1|sha256|sha512"

/* How much of a file is read at once, in bytes. */
enum { PIECE_BYTES = 65536 };

static digest_algorithm algorithm_of(sp_call *call) {
  const char *name = sp_string(call, "algorithm", "sha256");
  for (int at = 0; at < DIGEST_COUNT; at++) {
    if (!strcmp(name, DIGEST_NAMES[at])) return (digest_algorithm)at;
  }
  sp_fail(call, SP_INVALID_ARGUMENTS, "there is no algorithm %s", name);
  return DIGEST_SHA256;
}

/* Writes the result, and whether it is the expected one if the caller knows that. */
static void finish(sp_call *call, digest *sum) {
  char hex[DIGEST_HEX_MAX];
  uint64_t length = sum->length; /* without the padding */
  digest_end(sum, hex);
  sp_set_string(call, "algorithm", DIGEST_NAMES[sum->algorithm]);
  sp_set_string(call, "checksum", hex);
  sp_set_uint64(call, "bytes", length);
  const char *expected = sp_string(call, "expected", NULL);
  if (!expected) return;
  bool is_same = strlen(expected) == strlen(hex);
  for (size_t at = 0; is_same && hex[at]; at++) {
    char c = expected[at];
    is_same = (c >= 'A' && c <= 'F' ? c + ('a' - 'A') : c) == hex[at];
  }
  sp_set_boolean(call, "matches", is_same);
}

static void text_checksum(sp_call *call) {
  digest sum;
  digest_start(&sum, algorithm_of(call));
  digest_add(&sum, sp_string(call, "text", ""), sp_string_length(call, "text"));
  finish(call, &sum);
}
SALLYPORT_TOOL(text_checksum, .description = "Computes the checksum of a text in UTF-8.", .parameters = {
  {"text", SP_STRING, "The text."},
  {"algorithm", SP_STRING, "The algorithm; sha256 unless given.", .optional = true, .choices = ALGORITHMS},
  {"expected", SP_STRING, "A checksum in hexadecimal to compare with.", .optional = true},
}, .read_only = true, .idempotent = true)

static void fail_with_errno(sp_call *call, const char *path) {
  bool is_refused = errno == EACCES || errno == EPERM;
#ifdef ENOTCAPABLE /* WASI: outside of every granted folder */
  is_refused = is_refused || errno == ENOTCAPABLE;
#endif
  sp_fail(call, is_refused ? SP_DENIED : errno == ENOENT ? SP_NOT_FOUND : SP_FAILED, "%s: %s", path, strerror(errno));
}

/* Adds a file piece by piece, so that its size does not matter. */
static bool add_file(digest *sum, FILE *file) {
  static char piece[PIECE_BYTES];
  size_t length;
  while ((length = fread(piece, 1, sizeof piece, file)) > 0) digest_add(sum, piece, length);
  return !ferror(file);
}

static void file_checksum(sp_call *call) {
  const char *path = sp_string(call, "path", "");
  digest sum;
  digest_start(&sum, algorithm_of(call));
  FILE *file = fopen(path, "rb");
  if (!file) {
    fail_with_errno(call, path);
    return;
  }
  if (add_file(&sum, file)) finish(call, &sum);
  else fail_with_errno(call, path);
  fclose(file);
}
SALLYPORT_TOOL(file_checksum, .description = "Computes the checksum of a file in a granted folder.", .parameters = {
  {"path", SP_STRING, "The path of the file, such as /downloads/image.iso."},
  {"algorithm", SP_STRING, "The algorithm; sha256 unless given.", .optional = true, .choices = ALGORITHMS},
  {"expected", SP_STRING, "A checksum in hexadecimal to compare with.", .optional = true},
}, .read_only = true, .idempotent = true)
