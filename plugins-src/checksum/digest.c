/* The digests of digest.h, each as its standard describes it. */
#include "digest.h"

#include <string.h>

/* The fractional parts of the cube roots of the first 80 primes (FIPS 180-4). SHA-256 uses the upper
   halves of the first 64. */
static const uint64_t SHA2_CONSTANTS[] = {
  0x428a2f98d728ae22, 0x7137449123ef65cd, 0xb5c0fbcfec4d3b2f, 0xe9b5dba58189dbbc,
  0x3956c25bf348b538, 0x59f111f1b605d019, 0x923f82a4af194f9b, 0xab1c5ed5da6d8118,
  0xd807aa98a3030242, 0x12835b0145706fbe, 0x243185be4ee4b28c, 0x550c7dc3d5ffb4e2,
  0x72be5d74f27b896f, 0x80deb1fe3b1696b1, 0x9bdc06a725c71235, 0xc19bf174cf692694,
  0xe49b69c19ef14ad2, 0xefbe4786384f25e3, 0x0fc19dc68b8cd5b5, 0x240ca1cc77ac9c65,
  0x2de92c6f592b0275, 0x4a7484aa6ea6e483, 0x5cb0a9dcbd41fbd4, 0x76f988da831153b5,
  0x983e5152ee66dfab, 0xa831c66d2db43210, 0xb00327c898fb213f, 0xbf597fc7beef0ee4,
  0xc6e00bf33da88fc2, 0xd5a79147930aa725, 0x06ca6351e003826f, 0x142929670a0e6e70,
  0x27b70a8546d22ffc, 0x2e1b21385c26c926, 0x4d2c6dfc5ac42aed, 0x53380d139d95b3df,
  0x650a73548baf63de, 0x766a0abb3c77b2a8, 0x81c2c92e47edaee6, 0x92722c851482353b,
  0xa2bfe8a14cf10364, 0xa81a664bbc423001, 0xc24b8b70d0f89791, 0xc76c51a30654be30,
  0xd192e819d6ef5218, 0xd69906245565a910, 0xf40e35855771202a, 0x106aa07032bbd1b8,
  0x19a4c116b8d2d0c8, 0x1e376c085141ab53, 0x2748774cdf8eeb99, 0x34b0bcb5e19b48a8,
  0x391c0cb3c5c95a63, 0x4ed8aa4ae3418acb, 0x5b9cca4f7763e373, 0x682e6ff3d6b2b8a3,
  0x748f82ee5defb2fc, 0x78a5636f43172f60, 0x84c87814a1f0ab72, 0x8cc702081a6439ec,
  0x90befffa23631e28, 0xa4506cebde82bde9, 0xbef9a3f7b2c67915, 0xc67178f2e372532b,
  0xca273eceea26619c, 0xd186b8c721c0c207, 0xeada7dd6cde0eb1e, 0xf57d4f7fee6ed178,
  0x06f067aa72176fba, 0x0a637dc5a2c898a6, 0x113f9804bef90dae, 0x1b710b35131c471b,
  0x28db77f523047d84, 0x32caab7b40c72493, 0x3c9ebe0a15c9bebc, 0x431d67c49c100d4c,
  0x4cc5d4becb3e42b6, 0x597f299cfc657e2a, 0x5fcb6fab3ad6faec, 0x6c44198c4a475817,
};

/* The fractional parts of the square roots of the first 8 primes. SHA-256 uses the upper halves. */
static const uint64_t SHA2_START[] = {
  0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
  0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179,
};

/* The sines of 1 to 64 (RFC 1321). */
static const uint32_t MD5_CONSTANTS[] = {
  0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
  0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
  0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
  0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
  0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
  0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
  0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
  0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391,
};

static const uint8_t MD5_SHIFTS[] = {7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21};

const char *const DIGEST_NAMES[] = {"crc32", "md5", "sha1", "sha256", "sha512"};

static uint32_t left(uint32_t value, unsigned bits) {
  return value << bits | value >> (32 - bits);
}

static uint32_t right(uint32_t value, unsigned bits) {
  return value >> bits | value << (32 - bits);
}

static uint64_t right_64(uint64_t value, unsigned bits) {
  return value >> bits | value << (64 - bits);
}

static uint64_t read_big(const uint8_t *bytes, size_t length) {
  uint64_t value = 0;
  for (size_t at = 0; at < length; at++) value = value << 8 | bytes[at];
  return value;
}

static void write_big(uint8_t *bytes, uint64_t value, size_t length) {
  for (size_t at = length; at-- > 0; value >>= 8) bytes[at] = (uint8_t)value;
}

/* --- One block of each algorithm --- */

static void md5_block(uint64_t *state, const uint8_t *block) {
  uint32_t words[16];
  for (size_t at = 0; at < 16; at++) {
    const uint8_t *b = block + 4 * at;
    words[at] = b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
  }
  uint32_t a = (uint32_t)state[0], b = (uint32_t)state[1], c = (uint32_t)state[2], d = (uint32_t)state[3];
  for (unsigned step = 0; step < 64; step++) {
    uint32_t mixed;
    unsigned word;
    switch (step / 16) {
      case 0: mixed = (b & c) | (~b & d), word = step; break;
      case 1: mixed = (d & b) | (~d & c), word = (5 * step + 1) % 16; break;
      case 2: mixed = b ^ c ^ d, word = (3 * step + 5) % 16; break;
      default: mixed = c ^ (b | ~d), word = (7 * step) % 16;
    }
    uint32_t sum = a + mixed + MD5_CONSTANTS[step] + words[word];
    a = d, d = c, c = b;
    b += left(sum, MD5_SHIFTS[step / 16 * 4 + step % 4]);
  }
  uint32_t ends[] = {a, b, c, d};
  for (size_t at = 0; at < 4; at++) state[at] = (uint32_t)(state[at] + ends[at]);
}

static void sha1_block(uint64_t *state, const uint8_t *block) {
  uint32_t words[80];
  for (size_t at = 0; at < 16; at++) words[at] = (uint32_t)read_big(block + 4 * at, 4);
  for (size_t at = 16; at < 80; at++) words[at] = left(words[at - 3] ^ words[at - 8] ^ words[at - 14] ^ words[at - 16], 1);
  uint32_t a = (uint32_t)state[0], b = (uint32_t)state[1], c = (uint32_t)state[2], d = (uint32_t)state[3], e = (uint32_t)state[4];
  for (unsigned step = 0; step < 80; step++) {
    uint32_t mixed;
    switch (step / 20) {
      case 0: mixed = ((b & c) | (~b & d)) + 0x5a827999; break;
      case 1: mixed = (b ^ c ^ d) + 0x6ed9eba1; break;
      case 2: mixed = ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc; break;
      default: mixed = (b ^ c ^ d) + 0xca62c1d6;
    }
    uint32_t sum = left(a, 5) + mixed + e + words[step];
    e = d, d = c, c = left(b, 30), b = a, a = sum;
  }
  uint32_t ends[] = {a, b, c, d, e};
  for (size_t at = 0; at < 5; at++) state[at] = (uint32_t)(state[at] + ends[at]);
}

static void sha256_block(uint64_t *state, const uint8_t *block) {
  uint32_t words[64], s[8];
  for (size_t at = 0; at < 16; at++) words[at] = (uint32_t)read_big(block + 4 * at, 4);
  for (size_t at = 16; at < 64; at++) {
    uint32_t old = words[at - 15], new = words[at - 2];
    words[at] = words[at - 16] + words[at - 7] + (right(old, 7) ^ right(old, 18) ^ old >> 3) + (right(new, 17) ^ right(new, 19) ^ new >> 10);
  }
  for (size_t at = 0; at < 8; at++) s[at] = (uint32_t)state[at];
  for (size_t step = 0; step < 64; step++) {
    uint32_t high = right(s[4], 6) ^ right(s[4], 11) ^ right(s[4], 25), choice = (s[4] & s[5]) ^ (~s[4] & s[6]);
    uint32_t first = s[7] + high + choice + (uint32_t)(SHA2_CONSTANTS[step] >> 32) + words[step];
    uint32_t low = right(s[0], 2) ^ right(s[0], 13) ^ right(s[0], 22), majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
    memmove(s + 1, s, 7 * sizeof *s);
    s[4] += first;
    s[0] = first + low + majority;
  }
  for (size_t at = 0; at < 8; at++) state[at] = (uint32_t)(state[at] + s[at]);
}

static void sha512_block(uint64_t *state, const uint8_t *block) {
  uint64_t words[80], s[8];
  for (size_t at = 0; at < 16; at++) words[at] = read_big(block + 8 * at, 8);
  for (size_t at = 16; at < 80; at++) {
    uint64_t old = words[at - 15], new = words[at - 2];
    words[at] = words[at - 16] + words[at - 7] + (right_64(old, 1) ^ right_64(old, 8) ^ old >> 7) + (right_64(new, 19) ^ right_64(new, 61) ^ new >> 6);
  }
  memcpy(s, state, sizeof s);
  for (size_t step = 0; step < 80; step++) {
    uint64_t high = right_64(s[4], 14) ^ right_64(s[4], 18) ^ right_64(s[4], 41), choice = (s[4] & s[5]) ^ (~s[4] & s[6]);
    uint64_t first = s[7] + high + choice + SHA2_CONSTANTS[step] + words[step];
    uint64_t low = right_64(s[0], 28) ^ right_64(s[0], 34) ^ right_64(s[0], 39), majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
    memmove(s + 1, s, 7 * sizeof *s);
    s[4] += first;
    s[0] = first + low + majority;
  }
  for (size_t at = 0; at < 8; at++) state[at] += s[at];
}

/* A bit at a time: this is the part that need not be fast. The table makes it eight at a time. */
static uint32_t crc_entry(uint32_t value) {
  for (int bit = 0; bit < 8; bit++) value = value >> 1 ^ (value & 1 ? 0xedb88320 : 0);
  return value;
}

static void crc32_bytes(digest *digest, const uint8_t *bytes, size_t length) {
  uint32_t sum = (uint32_t)digest->state[0];
  for (size_t at = 0; at < length; at++) sum = sum >> 8 ^ digest->crc_table[(sum ^ bytes[at]) & 0xff];
  digest->state[0] = sum;
}

/* --- All together --- */

static size_t block_size(digest_algorithm algorithm) {
  return algorithm == DIGEST_SHA512 ? 128 : 64;
}

static void add_block(digest *digest, const uint8_t *block) {
  switch (digest->algorithm) {
    case DIGEST_CRC32: break; /* it has no blocks */
    case DIGEST_MD5: md5_block(digest->state, block); break;
    case DIGEST_SHA1: sha1_block(digest->state, block); break;
    case DIGEST_SHA256: sha256_block(digest->state, block); break;
    case DIGEST_SHA512: sha512_block(digest->state, block); break;
  }
}

void digest_start(digest *digest, digest_algorithm algorithm) {
  static const uint64_t SHA1_START[] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
  memset(digest, 0, sizeof *digest);
  digest->algorithm = algorithm;
  for (size_t at = 0; at < 8; at++) {
    if (algorithm == DIGEST_SHA512) digest->state[at] = SHA2_START[at];
    else if (algorithm == DIGEST_SHA256) digest->state[at] = SHA2_START[at] >> 32;
    else if (algorithm != DIGEST_CRC32 && at < 5) digest->state[at] = SHA1_START[at]; /* MD5 has the first four */
  }
  if (algorithm != DIGEST_CRC32) return;
  digest->state[0] = 0xffffffff;
  for (uint32_t at = 0; at < 256; at++) digest->crc_table[at] = crc_entry(at);
}

void digest_add(digest *digest, const void *bytes, size_t length) {
  const uint8_t *from = bytes;
  digest->length += length;
  if (digest->algorithm == DIGEST_CRC32) {
    crc32_bytes(digest, from, length);
    return;
  }
  size_t size = block_size(digest->algorithm);
  while (length) {
    size_t piece = size - digest->waiting < length ? size - digest->waiting : length;
    memcpy(digest->block + digest->waiting, from, piece);
    digest->waiting += piece;
    from += piece;
    length -= piece;
    if (digest->waiting == size) {
      add_block(digest, digest->block);
      digest->waiting = 0;
    }
  }
}

/* Adds a one bit, zeros, and the length in bits at the end of a block. */
static void add_padding(digest *digest) {
  uint64_t bits = digest->length * 8;
  size_t size = block_size(digest->algorithm), length_size = size / 8;
  uint8_t padding[256] = {0x80};
  size_t zeros = (2 * size - length_size - 1 - digest->waiting) % size;
  uint8_t *end = padding + 1 + zeros + length_size - 8;
  write_big(end, bits, 8);
  if (digest->algorithm == DIGEST_MD5) {
    for (size_t at = 0; at < 8; at++) end[at] = (uint8_t)(bits >> 8 * at);
  }
  digest_add(digest, padding, 1 + zeros + length_size);
}

void digest_end(digest *digest, char *hex) {
  static const size_t WORDS[] = {1, 4, 5, 8, 8};
  size_t word_size = digest->algorithm == DIGEST_SHA512 ? 8 : 4;
  uint8_t bytes[64];
  if (digest->algorithm == DIGEST_CRC32) digest->state[0] ^= 0xffffffff;
  else add_padding(digest);
  size_t count = WORDS[digest->algorithm] * word_size;
  for (size_t at = 0; at < WORDS[digest->algorithm]; at++) write_big(bytes + at * word_size, digest->state[at], word_size);
  for (size_t at = 0; at < count; at++) {
    /* MD5 is written with the lowest byte of each word first. */
    uint8_t byte = bytes[digest->algorithm == DIGEST_MD5 ? at ^ 3 : at];
    hex[2 * at] = "0123456789abcdef"[byte >> 4];
    hex[2 * at + 1] = "0123456789abcdef"[byte & 15];
  }
  hex[2 * count] = 0;
}
