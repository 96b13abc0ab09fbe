/* Digests of bytes that come in pieces. */
#ifndef DIGEST_H
#define DIGEST_H

#include <stddef.h>
#include <stdint.h>

typedef enum { DIGEST_CRC32, DIGEST_MD5, DIGEST_SHA1, DIGEST_SHA256, DIGEST_SHA512 } digest_algorithm;

enum { DIGEST_COUNT = 5, DIGEST_HEX_MAX = 129 };

/* The names of the algorithms, in their order. */
extern const char *const DIGEST_NAMES[];

typedef struct {
  digest_algorithm algorithm;
  uint64_t state[8];
  uint64_t length; /* bytes so far */
  uint8_t block[128];
  size_t waiting; /* bytes of the block that are filled */
  uint32_t crc_table[256];
} digest;

void digest_start(digest *digest, digest_algorithm algorithm);
void digest_add(digest *digest, const void *bytes, size_t length);

/* Ends the digest. `hex` receives its text, at most DIGEST_HEX_MAX bytes with the NUL. */
void digest_end(digest *digest, char *hex);

#endif
