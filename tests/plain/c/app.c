// The plain component in C: each value comes back as it came. What a function returns is freed by
// the bindings, so an argument that is returned is not copied.
#include <stdlib.h>
#include <string.h>

#include "plain.h"

void exports_acme_typed_echo_integers(int8_t a, uint8_t b, int16_t c, uint16_t d, int32_t e, uint32_t f,
                                      int64_t g, uint64_t h,
                                      plain_tuple8_s8_u8_s16_u16_s32_u32_s64_u64_t *ret) {
  *ret = (plain_tuple8_s8_u8_s16_u16_s32_u32_s64_u64_t){a, b, c, d, e, f, g, h};
}

void exports_acme_typed_echo_floats(float narrow, double wide, plain_tuple2_f32_f64_t *ret) {
  *ret = (plain_tuple2_f32_f64_t){narrow, wide};
}

void exports_acme_typed_echo_texts(uint32_t letter, plain_string_t *text, bool truth,
                                   plain_tuple3_char32_string_bool_t *ret) {
  *ret = (plain_tuple3_char32_string_bool_t){letter, *text, truth};
}

void exports_acme_typed_echo_bytes(plain_list_u8_t *bytes, plain_list_u8_t *ret) { *ret = *bytes; }

void exports_acme_typed_echo_places(exports_acme_typed_echo_list_place_t *places,
                                    exports_acme_typed_echo_list_place_t *ret) {
  *ret = *places;
}

void exports_acme_typed_echo_shapes(exports_acme_typed_echo_list_shape_t *shapes,
                                    exports_acme_typed_echo_list_shape_t *ret) {
  *ret = *shapes;
}

void exports_acme_typed_echo_choices(exports_acme_typed_echo_colour_t colour, exports_acme_typed_echo_days_t days,
                                     exports_acme_typed_echo_tuple2_colour_days_t *ret) {
  *ret = (exports_acme_typed_echo_tuple2_colour_days_t){colour, days};
}

void exports_acme_typed_echo_options(uint32_t *plain, plain_option_string_t *nested,
                                     plain_tuple2_option_u32_option_option_string_t *ret) {
  memset(ret, 0, sizeof *ret);
  ret->f0.is_some = plain;
  if (plain) ret->f0.val = *plain;
  ret->f1.is_some = nested;
  if (nested) ret->f1.val = *nested;
}

void exports_acme_typed_echo_results(
    exports_acme_typed_echo_result_u32_string_t *outcome, exports_acme_typed_echo_result_void_void_t *empty,
    exports_acme_typed_echo_tuple2_result_u32_string_result_void_void_t *ret) {
  ret->f0 = *outcome;
  ret->f1 = *empty;
}

void exports_plain_greet(plain_string_t *name, plain_string_t *greeting, plain_string_t *ret) {
  plain_string_t hello = {(uint8_t *)"Hello", 5};
  plain_string_t before = greeting ? *greeting : hello;
  ret->len = before.len + name->len + 3;
  ret->ptr = malloc(ret->len);
  if (!ret->ptr) abort();
  memcpy(ret->ptr, before.ptr, before.len);
  memcpy(ret->ptr + before.len, ", ", 2);
  memcpy(ret->ptr + before.len + 2, name->ptr, name->len);
  ret->ptr[ret->len - 1] = '!';
}
