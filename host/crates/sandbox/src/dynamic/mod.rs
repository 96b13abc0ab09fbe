//! The bridge between JSON and the values of a component's own functions.
//!
//! A component that was written for no host in particular exports functions with types of its own.
//! [`value_type`] describes such a type, [`schema`] is its JSON Schema, [`to_val`] and [`from_val`]
//! convert values, [`signature`] writes a function as WIT does, [`names`] names its tool, and
//! [`docs`] finds what its author wrote about it.
//!
//! | WIT | JSON |
//! |---|---|
//! | `bool`, `string`, `char` | boolean, string, string of one character |
//! | `s8` to `u32` | integer |
//! | `s64`, `u64` | integer; beyond ±(2^53 − 1) a string of digits, so that no reader rounds it |
//! | `f32`, `f64` | number, or `"NaN"`, `"Infinity"`, `"-Infinity"` |
//! | `list<u8>` | Base64, because an array of numbers costs a model five times as much |
//! | `list<T>`, `list<T, N>`, `tuple<…>` | array |
//! | `map<string, T>`, `map<K, T>` | object, array of pairs |
//! | `record` | object; a field of the type `option` may be left out |
//! | `variant` | `{"tag": "case", "val": …}` |
//! | `enum`, `flags` | string, array of strings |
//! | `option<T>` | value or null; `{"some": …}` where the value itself can be null |
//! | `result<T, E>` | `{"ok": …}` or `{"err": …}` |
//!
//! Maps, lists of a fixed length and asynchronous functions are turned off in this engine, so its
//! compiler refuses a component that has them. They are converted, or named in an error, here
//! because the types of the engine have them already.
//!
//! The component is untrusted, and its types are read outside of the walls around the compiler.
//! [`value_type`] limits how deep a type is, so no value can make the conversion recurse further,
//! and [`type_budget`] how large the types of a function and of a component are. A text that is
//! made of types, as a schema or a signature is, has a bound of its own, because it may name a type
//! many times.

pub(crate) mod docs;
pub(crate) mod from_val;
pub(crate) mod names;
pub(crate) mod schema;
pub(crate) mod signature;
#[cfg(test)]
mod tests;
pub(crate) mod to_val;
pub(crate) mod type_budget;
pub(crate) mod value_type;

/// The key of a variant's case.
const TAG: &str = "tag";

/// The key of a case's value.
const PAYLOAD: &str = "val";

/// The key around a value of an option that could be null itself.
const SOME: &str = "some";

/// The keys of a result.
const OK: &str = "ok";
const ERR: &str = "err";

/// Largest integer that every JSON reader keeps exactly: 2^53 − 1.
const SAFE_INTEGER_MAX: i128 = (1 << 53) - 1;

/// The spellings of the floats that JSON has no number for.
const NAN: &str = "NaN";
const INFINITY: &str = "Infinity";
const NEGATIVE_INFINITY: &str = "-Infinity";
