/* A native test:
     cc -o /tmp/digest_test digest_test.c digest.c && /tmp/digest_test */
#include "digest.h"

#include <stdio.h>
#include <string.h>

static int failures;

static void check(digest_algorithm algorithm, const char *text, size_t length, size_t piece, const char *expected) {
  digest sum;
  char hex[DIGEST_HEX_MAX];
  digest_start(&sum, algorithm);
  for (size_t at = 0; at < length; at += piece) digest_add(&sum, text + at, length - at < piece ? length - at : piece);
  digest_end(&sum, hex);
  if (!strcmp(hex, expected)) return;
  failures++;
  printf("%s of %zu bytes in pieces of %zu is %s, expected %s\n", DIGEST_NAMES[algorithm], length, piece, hex, expected);
}

int main(void) {
  static const struct {
    digest_algorithm algorithm;
    const char *empty, *hundred_thousand;
  } CASES[] = {
    {DIGEST_CRC32, "00000000",
     "72afc085"},
    {DIGEST_MD5, "d41d8cd98f00b204e9800998ecf8427e",
     "d4daff469aac4cf8a8f2c0e812ced852"},
    {DIGEST_SHA1, "da39a3ee5e6b4b0d3255bfef95601890afd80709",
     "e2302d6d30c391ab6cbab1bc008e1e4add094d77"},
    {DIGEST_SHA256, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
     "6b4e3f3d1dee15db72c519f5962bad253dfc7d4183d7e30e656259ce1eeab007"},
    {DIGEST_SHA512, "cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e",
     "31215b2120b6fbac5f7eac5da6d13f26082a63e2484a599d9d0116687145dfed31dab47164581bee08737a859c54de5ea5bee0621ac37705a947910819cc4fa1"},
  };
  static char text[100000];
  for (size_t at = 0; at < sizeof text; at++) text[at] = (char)(at * 7 + at / 251);
  for (size_t at = 0; at < DIGEST_COUNT; at++) {
    check(CASES[at].algorithm, "", 0, 1, CASES[at].empty);
    static const size_t PIECES[] = {1, 3, 55, 56, 63, 64, 65, 111, 112, 127, 128, 129, 100000};
    for (size_t piece = 0; piece < sizeof PIECES / sizeof *PIECES; piece++) {
      check(CASES[at].algorithm, text, sizeof text, PIECES[piece], CASES[at].hundred_thousand);
    }
  }
  check(DIGEST_MD5, text, 55, 55, "8d24280288a696559fd8d5aa1b6d8c6e");
  check(DIGEST_MD5, text, 56, 56, "ef2c72b7254c92459e498eddd4ace573");
  check(DIGEST_MD5, text, 63, 63, "c4c8c6d513f4e1604eb18508a1769364");
  check(DIGEST_MD5, text, 64, 64, "a2fcb39a253b9b785b1f97518fa37683");
  check(DIGEST_MD5, text, 65, 65, "e49fe82d0bb12967a196c85de313e446");
  check(DIGEST_MD5, text, 111, 111, "d33e91d921631eea0d6c25fc96e10524");
  check(DIGEST_MD5, text, 112, 112, "ac43942f2f342010747a0de1fe3cf15b");
  check(DIGEST_MD5, text, 119, 119, "1640deea49ebb258ec6ede18d4b2d2d7");
  check(DIGEST_MD5, text, 120, 120, "05f879f7b542a7ebf0605adff67d4423");
  check(DIGEST_MD5, text, 127, 127, "c774d99f2281f28edc4257944c8871d1");
  check(DIGEST_MD5, text, 128, 128, "fe942895e9aae953f3e246e5fd00739d");
  check(DIGEST_SHA1, text, 55, 55, "aecd1643c9903b9bae8cb94f53c50f8a4e18605b");
  check(DIGEST_SHA1, text, 56, 56, "f5d65c621c02cc8e785159feff8088e3072da1bc");
  check(DIGEST_SHA1, text, 63, 63, "4952f0fe097e4d6410ae9eab4855aa836caf3bff");
  check(DIGEST_SHA1, text, 64, 64, "1e17ae1fc093e5daca033553c97a5192ca164486");
  check(DIGEST_SHA1, text, 65, 65, "ac44f5dbe3e9b5d2733fc9537fcad715c3c20bc3");
  check(DIGEST_SHA1, text, 111, 111, "df2f6197f2b13b38727c3317ee887f0dfae15339");
  check(DIGEST_SHA1, text, 112, 112, "fe6021ce28099e49dbe7eaf995feac7848f25a48");
  check(DIGEST_SHA1, text, 119, 119, "b4a4e69060d0b1e7e8ebbf7041a4211c63438b57");
  check(DIGEST_SHA1, text, 120, 120, "b651390c2996406336a3f6647e4b590c18cdd6f8");
  check(DIGEST_SHA1, text, 127, 127, "374f47c1c8d4700fc2588e71f6d1e861b431b5c3");
  check(DIGEST_SHA1, text, 128, 128, "516846cd40bd1fe431119c3b0a0f362957992ee8");
  check(DIGEST_SHA256, text, 55, 55, "576a1bf8d4478657e6dc4af9398544765c2a92cde28478b019235cfed315fc09");
  check(DIGEST_SHA256, text, 56, 56, "9b20501dfd1d99161c257950f3444f3e49230c351c5c8e0943ef369f85f5205d");
  check(DIGEST_SHA256, text, 63, 63, "30b345906b493f06f69444b6521113511c242f30e29840462950035043682f1e");
  check(DIGEST_SHA256, text, 64, 64, "d8bc63b4fc1156e5e7d95a418b9bf54cd3174bedbc2db40f74895349b229b3c0");
  check(DIGEST_SHA256, text, 65, 65, "1ee23b0fbcaecc1aff4a9e8f1645f35ab2c8e13609cd73b68df8b5e3f63ce073");
  check(DIGEST_SHA256, text, 111, 111, "d80a22461ae74d8e6944001e255f9e47eca17702b1dc987238d78e6e1ea3e342");
  check(DIGEST_SHA256, text, 112, 112, "a4ecd1e6c38e9d976d0cef32d899be35eb83c98d46b4dbfd68a1560f83b786a2");
  check(DIGEST_SHA256, text, 119, 119, "7a6589821178918ca8d9edaba5abfc1e9b2669564f4469b66885379c1530b2c8");
  check(DIGEST_SHA256, text, 120, 120, "655250427d56b1b0eeb8497d21428704273458a01772d6881b65c0abac0f8a98");
  check(DIGEST_SHA256, text, 127, 127, "67d79933e3c9aa8e89f481e071cfca1e9a16c09d7263b5efa3bb01f1a9f8d065");
  check(DIGEST_SHA256, text, 128, 128, "54c9eb041badfd7064645067b107661fed6113197ce2dd066ba69618abd3732f");
  check(DIGEST_SHA512, text, 55, 55, "1fa86069db165162601ddc6103789cbca1fe97bc7c32de0d11a62e140f489340fc07d2664635a196fbebfb9fa976204882a1b803261b1018c257d24423553fb5");
  check(DIGEST_SHA512, text, 56, 56, "7b6d8a5b05452e1ca1237d37573bd3847c51a2f4f8aac8b9dd4dd4d91dd69b9561cc5b499bfa23c8767e272d1cfb4132746f6ff9518de6b5dc969b4c47947e48");
  check(DIGEST_SHA512, text, 63, 63, "60a1cdd00a75f8715cc0c284bca24836c17d60b2cc4dc43ebd4091dee226c8cf32e32846456d316ee0782fe8b6a0f1de0cae8c47a6614e4b529075a7d2aa24af");
  check(DIGEST_SHA512, text, 64, 64, "9f59bad22a6a8bda005caa01350372bf744703244db0aeb0446d8523012962ced1e49fd8ff703523938926a0dbbb023920b07cce073352920635bb28cad8e104");
  check(DIGEST_SHA512, text, 65, 65, "c5d02d0a9a36b0a0bd33affdd269abe60a3a3a1765ed039ca841382c79f8cb08825d2f36c15aef65061f2f2a557d333790e8baa502e195f1e55f9424fc260620");
  check(DIGEST_SHA512, text, 111, 111, "d2026b9857418e96d800f55017d1c1566c027453ff240da88f0a25558fabf5d6ffbe00bb14bc04f120af1cac53f21cb4a81765140b9249f52aaab4935079dd94");
  check(DIGEST_SHA512, text, 112, 112, "4dc754b8985c03b8015b1efd61af5c05828b6d07eecda8d90dd5863f7704bd375905932f2fbdeb4ee1b754a7778e4a0327e7d75b71ae95d1f619136e27564467");
  check(DIGEST_SHA512, text, 119, 119, "5f44e9790c0769086d75954f27060e0e9bd38ca3075a6f663caa8c5c8ab0d54dd2b1de58d07bf7d3e3e1e560afb15c977337d22f5bec6cd7979f6d0e301e52c2");
  check(DIGEST_SHA512, text, 120, 120, "34736c669f4ffd4cfd945fdc62e1d31c2852e963649c7b3cd17e8469def1264310926a9f18241b14fc50e4e672350d853b4dddd3d19c34a6a7ffb1d48d4f0baa");
  check(DIGEST_SHA512, text, 127, 127, "78de13cc28717e3ee7a3cb21b2ecac6d201f32f4a81bc1becdf9de5126e1a0139e25784aeb8baf327cc32f98d54d20e80e61d4d6bff5b37872fdaa645a4f3886");
  check(DIGEST_SHA512, text, 128, 128, "6e7f10bc87eacc3e98014eaade39e273285ba13c79231361c24c304a8d409018f543a28847fcc829b87fdde605caa5ab5fdb00e296737fa4687d5ee8d130ceea");
  puts(failures ? "failed" : "passed");
  return failures != 0;
}
