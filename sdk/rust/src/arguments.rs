//! Parsing the JSON arguments of a call into a struct, with errors that name the argument.

use std::{
    cell::Cell,
    collections::{BTreeSet, HashSet, VecDeque},
    marker::PhantomData,
};

use schemars::JsonSchema;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, Visitor,
};
use serde_json::{Map, Value};

use crate::ToolError;

/// The arguments of a tool that takes none.
#[derive(Debug, serde::Deserialize, JsonSchema)]
pub struct NoArguments {}

/// Detects whether a type can be the arguments of a tool, as [`Returned`](crate::output::Returned)
/// does for return types.
#[derive(Debug)]
pub struct Takes<T>(PhantomData<T>);

impl<T> Takes<T> {
    /// The value that represents the type.
    pub const TYPE: Self = Self(PhantomData);
}

/// Data that is not a JSON object, so it has no fields that a model could name.
pub trait NotAnObject {}

macro_rules! not_objects {
    ($($type:ty),+ $(,)?) => { $(impl NotAnObject for $type {})+ };
}

not_objects!(
    (),
    bool,
    char,
    f32,
    f64,
    i8,
    i16,
    i32,
    i64,
    i128,
    isize,
    u8,
    u16,
    u32,
    u64,
    u128,
    usize,
    String,
);

impl<T> NotAnObject for Option<T> {}
impl<T> NotAnObject for Vec<T> {}
impl<T> NotAnObject for VecDeque<T> {}
impl<T> NotAnObject for BTreeSet<T> {}
impl<T, S> NotAnObject for HashSet<T, S> {}
impl<T, const N: usize> NotAnObject for [T; N] {}
impl<T> NotAnObject for (T,) {}
impl<T, U> NotAnObject for (T, U) {}
impl<T, U, V> NotAnObject for (T, U, V) {}
impl<T, U, V, W> NotAnObject for (T, U, V, W) {}

/// Types that cannot be a struct of arguments.
pub trait TakesNoObject<T> {
    /// Fails to compile, with an error that states the reason.
    fn check(&self)
    where
        T: ToolArguments,
    {
    }
}

/// Types that may be a struct of arguments.
pub trait TakesObject {
    /// Does nothing.
    fn check(&self) {}
}

impl<T: NotAnObject> TakesNoObject<T> for &Takes<T> {}
impl<T> TakesObject for Takes<T> {}

/// A struct of arguments. No type implements this, so the compiler reports what is missing.
#[diagnostic::on_unimplemented(
    message = "a tool takes a struct of arguments, not `{Self}`",
    label = "make this the field of a struct that derives `Deserialize` and `JsonSchema`",
    note = "a model gives arguments by their names: `struct Args {{ name: {Self} }}`"
)]
pub trait ToolArguments {}

/// Reads the arguments of a call.
///
/// # Errors
///
/// The text is not a JSON object, or an argument is missing, unknown or of the wrong type.
pub fn parse<T: DeserializeOwned>(text: &str) -> Result<T, ToolError> {
    let object: Map<String, Value> = serde_json::from_str(text).map_err(|e| {
        ToolError::InvalidArguments(format!("the arguments are not a JSON object: {e}"))
    })?;
    let current = Cell::new(None);
    T::deserialize(Named { object, current: &current }).map_err(|error| {
        ToolError::InvalidArguments(match current.take() {
            Some(name) => format!("argument `{name}`: {error}"),
            None => error.to_string(),
        })
    })
}

/// Deserializes the arguments one by one, and records which one is being read.
struct Named<'a> {
    object: Map<String, Value>,
    current: &'a Cell<Option<String>>,
}

impl<'de> Deserializer<'de> for Named<'_> {
    type Error = serde_json::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_map(Entries {
            rest: self.object.into_iter(),
            value: Value::Null,
            current: self.current,
        })
    }

    /// Written out: an enum has its own representation, `{"variant": content}`.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        Value::Object(self.object).deserialize_enum(name, variants, visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_newtype_struct(self)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

struct Entries<'a> {
    rest: serde_json::map::IntoIter,
    value: Value,
    current: &'a Cell<Option<String>>,
}

impl<'de> MapAccess<'de> for Entries<'_> {
    type Error = serde_json::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Self::Error> {
        self.current.set(None);
        let Some((key, value)) = self.rest.next() else { return Ok(None) };
        self.value = value;
        let read = seed.deserialize(key.as_str().into_deserializer())?;
        self.current.set(Some(key));
        Ok(Some(read))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, Self::Error> {
        let read = seed.deserialize(self.value.take()).map_err(de::Error::custom)?;
        self.current.set(None);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Search {
        query: String,
        #[serde(default)]
        limit: Option<u8>,
        #[serde(default)]
        within: Vec<Range>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Range {
        from: i64,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(tag = "by", rename_all = "lowercase")]
    enum Find {
        Id { id: u32 },
        Name { name: String },
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Wrapped(Range);

    #[track_caller]
    fn check<T: DeserializeOwned + PartialEq + std::fmt::Debug>(text: &str, want: T) {
        assert_eq!(parse::<T>(text), Ok(want));
    }

    #[track_caller]
    fn check_error<T: DeserializeOwned + std::fmt::Debug>(text: &str, want: &str) {
        match parse::<T>(text) {
            Err(ToolError::InvalidArguments(message)) => {
                assert!(message.contains(want), "{message:?} lacks {want:?}");
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn well_formed_arguments_arrive() {
        let search = |limit| Search { query: "a".to_owned(), limit, within: vec![] };
        check(r#"{"query":"a"}"#, search(None));
        check(r#"{"query":"a","limit":null}"#, search(None));
        check(r#"{"limit":3,"query":"a"}"#, search(Some(3)));
        check(r#"{"by":"id","id":7}"#, Find::Id { id: 7 });
        check(r#"{"by":"name","name":"x"}"#, Find::Name { name: "x".to_owned() });
        check(r#"{"from":-9007199254740993}"#, Wrapped(Range { from: -9_007_199_254_740_993 }));
    }

    #[test]
    fn a_wrong_argument_is_named() {
        let object = "not a JSON object";
        check_error::<Search>("", object);
        check_error::<Search>("[]", object);
        check_error::<Search>("null", object);
        check_error::<Search>(r#"{"query":"a"} {}"#, object);
        check_error::<Search>("{}", "missing field `query`");
        check_error::<Search>(r#"{"query":5}"#, "argument `query`: invalid type: integer `5`");
        check_error::<Search>(r#"{"query":"a","limit":256}"#, "argument `limit`: invalid value");
        check_error::<Search>(r#"{"query":"a","limit":-1}"#, "argument `limit`");
        check_error::<Search>(r#"{"query":"a","within":[{}]}"#, "argument `within`: missing field");
        check_error::<Search>(r#"{"query":"a","colour":1}"#, "unknown field `colour`");
        check_error::<Search>(r#"{"within":[]}"#, "missing field `query`");
        check_error::<Find>(r#"{"by":"id","id":"x"}"#, "invalid type: string \"x\"");
        check_error::<Find>(r#"{"by":"smell"}"#, "unknown variant `smell`");
        check_error::<Wrapped>(r#"{"from":"x"}"#, "argument `from`: invalid type");
    }
}
