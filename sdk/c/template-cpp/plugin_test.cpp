// A native test, without WebAssembly. Run it after the first build, which brings the SDK:
//   cc -c -I.build/sdk .build/sdk/{sallyport,sallyport_native,yyjson}.c
//   c++ -std=c++20 -I.build/sdk -o .build/test plugin_test.cpp {sallyport,sallyport_native,yyjson}.o && .build/test
#include "plugin.cpp"

#include <cstdio>
#include <cstdlib>

static int failures;

static void check(const char *arguments, const std::string &expected) {
  char *result = sp_test_call("word_count", arguments);
  if (result != expected) {
    failures++;
    std::printf("%s gives %s, expected %s\n", arguments, result, expected.c_str());
  }
  std::free(result);
}

int main() {
  check(R"({"text":"two words"})", R"({"words":2})");
  check(R"({"text":""})", "invalid-arguments: text is empty");
  std::puts(failures ? "failed" : "passed");
  return failures != 0;
}
