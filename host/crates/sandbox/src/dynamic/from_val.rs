//! The values of a component to JSON, up to a number of bytes: the JSON is never longer than what
//! is counted.

use data_encoding::BASE64;
use serde_json::{Map, Number, Value, json};
use wasmtime::component::Val;

use super::{
    ERR, INFINITY, NAN, NEGATIVE_INFINITY, OK, PAYLOAD, SAFE_INTEGER_MAX, SOME, TAG,
    value_type::{NamedType, ResultType, ValueType, VariantCase},
};

/// The bytes around the name of a member of an object: quotes and colon, and one more.
const MEMBER_BYTES: usize = 4;

/// The bytes around a value: quotes, brackets or braces, and the comma after it.
const VALUE_BYTES: usize = 3;

/// The bytes of `null`.
const NULL_BYTES: usize = 4;

/// The bytes of `false`.
const BOOL_BYTES: usize = 5;

/// Why a value has no JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WriteError {
    /// It takes more bytes than allowed.
    #[error("it is too large")]
    TooLarge,
    /// It is not of its type. The engine checks that, so this is a mistake of the host.
    #[error("it is not of its type")]
    OtherType,
}

/// Converts values until their JSON takes more than a number of bytes.
pub(crate) struct JsonWriter {
    bytes_left: usize,
}

impl JsonWriter {
    /// Converts values of at most this many bytes in all.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { bytes_left: bytes_max }
    }

    /// Converts a value.
    ///
    /// # Errors
    ///
    /// See [`WriteError`].
    pub(crate) fn val_to_json(&mut self, ty: &ValueType, val: &Val) -> Result<Value, WriteError> {
        self.count(VALUE_BYTES)?;
        Ok(match (ty, val) {
            (ValueType::Bool, Val::Bool(truth)) => {
                self.count(BOOL_BYTES)?;
                Value::Bool(*truth)
            }
            (ValueType::Integer(_), val) => {
                self.number(integer_json(val).ok_or(WriteError::OtherType)?)?
            }
            (ValueType::Float32, Val::Float32(float)) => self.number(float32_json(*float))?,
            (ValueType::Float64, Val::Float64(float)) => self.number(float_json(*float))?,
            (ValueType::Char, Val::Char(character)) => self.text(&character.to_string())?,
            (ValueType::String, Val::String(text)) => self.text(text)?,
            (ValueType::List(element), Val::List(items)) if element.is_byte() => {
                self.bytes(items)?
            }
            (ValueType::List(element), Val::List(items))
            | (ValueType::FixedList(element, _), Val::FixedLengthList(items)) => {
                self.elements(element, items)?
            }
            (ValueType::Map(key, element), Val::Map(pairs)) => self.map(key, element, pairs)?,
            (ValueType::Record(fields), Val::Record(values)) => self.record(fields, values)?,
            (ValueType::Tuple(types), Val::Tuple(items)) => self.tuple(types, items)?,
            (ValueType::Variant(cases), Val::Variant(name, payload)) => {
                self.variant(cases, name, payload.as_deref())?
            }
            (ValueType::Enum(_), Val::Enum(name)) => self.text(name)?,
            (ValueType::Flags(_), Val::Flags(names)) => self.flags(names)?,
            (ValueType::Option(_), Val::Option(None)) => self.null()?,
            (ValueType::Option(inner), Val::Option(Some(val))) => self.some(inner, val)?,
            (ValueType::Result(result), Val::Result(outcome)) => self.result(result, outcome)?,
            _ => return Err(WriteError::OtherType),
        })
    }

    /// Converts a payload that a case or a result may lack.
    ///
    /// # Errors
    ///
    /// See [`WriteError`].
    pub(crate) fn payload_to_json(
        &mut self,
        ty: Option<&ValueType>,
        val: Option<&Val>,
    ) -> Result<Value, WriteError> {
        match (ty, val) {
            (Some(ty), Some(val)) => self.val_to_json(ty, val),
            (None, None) => self.null(),
            _ => Err(WriteError::OtherType),
        }
    }

    fn count(&mut self, bytes: usize) -> Result<(), WriteError> {
        self.bytes_left = self.bytes_left.checked_sub(bytes).ok_or(WriteError::TooLarge)?;
        Ok(())
    }

    fn null(&mut self) -> Result<Value, WriteError> {
        self.count(NULL_BYTES)?;
        Ok(Value::Null)
    }

    fn number(&mut self, number: Value) -> Result<Value, WriteError> {
        self.count(number.to_string().len())?;
        Ok(number)
    }

    fn text(&mut self, text: &str) -> Result<Value, WriteError> {
        self.count(escaped_len(text))?;
        Ok(Value::String(text.to_owned()))
    }

    fn flags(&mut self, names: &[String]) -> Result<Value, WriteError> {
        let name = |name: &String| {
            self.count(VALUE_BYTES)?;
            self.text(name)
        };
        Ok(Value::Array(names.iter().map(name).collect::<Result<_, _>>()?))
    }

    fn bytes(&mut self, items: &[Val]) -> Result<Value, WriteError> {
        self.count(BASE64.encode_len(items.len()))?;
        let byte = |item: &Val| match item {
            Val::U8(byte) => Ok(*byte),
            _ => Err(WriteError::OtherType),
        };
        let bytes: Vec<u8> = items.iter().map(byte).collect::<Result<_, _>>()?;
        Ok(Value::String(BASE64.encode(&bytes)))
    }

    fn elements(&mut self, element: &ValueType, items: &[Val]) -> Result<Value, WriteError> {
        let items = items.iter().map(|item| self.val_to_json(element, item));
        Ok(Value::Array(items.collect::<Result<_, _>>()?))
    }

    fn tuple(&mut self, types: &[ValueType], items: &[Val]) -> Result<Value, WriteError> {
        let items = types.iter().zip(items).map(|(ty, item)| self.val_to_json(ty, item));
        Ok(Value::Array(items.collect::<Result<_, _>>()?))
    }

    /// A key that comes twice has its last value, as the type says.
    fn map(
        &mut self,
        key: &ValueType,
        element: &ValueType,
        pairs: &[(Val, Val)],
    ) -> Result<Value, WriteError> {
        if *key != ValueType::String {
            let pair = |(name, item): &(Val, Val)| {
                self.count(VALUE_BYTES)?;
                Ok(json!([self.val_to_json(key, name)?, self.val_to_json(element, item)?]))
            };
            return Ok(Value::Array(pairs.iter().map(pair).collect::<Result<_, WriteError>>()?));
        }
        let mut object = Map::new();
        for (name, item) in pairs {
            let Val::String(name) = name else { return Err(WriteError::OtherType) };
            self.count(escaped_len(name) + MEMBER_BYTES)?;
            object.insert(name.clone(), self.val_to_json(element, item)?);
        }
        Ok(Value::Object(object))
    }

    fn record(
        &mut self,
        fields: &[NamedType],
        values: &[(String, Val)],
    ) -> Result<Value, WriteError> {
        let mut object = Map::new();
        for (field, (_, val)) in fields.iter().zip(values) {
            self.count(field.name.len() + MEMBER_BYTES)?;
            object.insert(field.name.clone(), self.val_to_json(&field.ty, val)?);
        }
        Ok(Value::Object(object))
    }

    fn variant(
        &mut self,
        cases: &[VariantCase],
        name: &str,
        payload: Option<&Val>,
    ) -> Result<Value, WriteError> {
        let case = cases.iter().find(|case| case.name == name).ok_or(WriteError::OtherType)?;
        self.count(TAG.len() + PAYLOAD.len() + name.len() + 2 * MEMBER_BYTES)?;
        let mut object = Map::from_iter([(TAG.to_owned(), name.into())]);
        if case.payload.is_some() {
            let payload = self.payload_to_json(case.payload.as_ref(), payload)?;
            object.insert(PAYLOAD.to_owned(), payload);
        }
        Ok(Value::Object(object))
    }

    fn some(&mut self, inner: &ValueType, val: &Val) -> Result<Value, WriteError> {
        let value = self.val_to_json(inner, val)?;
        if !inner.is_option() {
            return Ok(value);
        }
        self.count(SOME.len() + MEMBER_BYTES)?;
        Ok(json!({ SOME: value }))
    }

    fn result(
        &mut self,
        result: &ResultType,
        outcome: &Result<Option<Box<Val>>, Option<Box<Val>>>,
    ) -> Result<Value, WriteError> {
        self.count(ERR.len() + MEMBER_BYTES)?;
        Ok(match outcome {
            Ok(val) => json!({ OK: self.payload_to_json(result.ok.as_deref(), val.as_deref())? }),
            Err(val) => {
                json!({ ERR: self.payload_to_json(result.err.as_deref(), val.as_deref())? })
            }
        })
    }
}

/// The bytes of a text in JSON, without its quotes.
fn escaped_len(text: &str) -> usize {
    let escaped = |byte: u8| match byte {
        b'"' | b'\\' | 0x08 | b'\t' | b'\n' | 0x0c | b'\r' => 2,
        0..0x20 => "\\u0000".len(),
        _ => 1,
    };
    text.bytes().map(escaped).sum()
}

fn integer_json(val: &Val) -> Option<Value> {
    Some(match val {
        Val::S8(number) => Value::from(*number),
        Val::U8(number) => Value::from(*number),
        Val::S16(number) => Value::from(*number),
        Val::U16(number) => Value::from(*number),
        Val::S32(number) => Value::from(*number),
        Val::U32(number) => Value::from(*number),
        Val::S64(number) if i128::from(*number).abs() <= SAFE_INTEGER_MAX => Value::from(*number),
        Val::U64(number) if i128::from(*number) <= SAFE_INTEGER_MAX => Value::from(*number),
        Val::S64(number) => Value::String(number.to_string()),
        Val::U64(number) => Value::String(number.to_string()),
        _ => return None,
    })
}

fn float_json(float: f64) -> Value {
    match Number::from_f64(float) {
        Some(number) => Value::Number(number),
        None if float.is_nan() => NAN.into(),
        None if float > 0.0 => INFINITY.into(),
        None => NEGATIVE_INFINITY.into(),
    }
}

/// Writes 0.1 and not 0.10000000149011612: the shortest number that is read as the same f32. The
/// shortest of the largest f32 is greater than it, and its schema refuses that.
fn float32_json(float: f32) -> Value {
    let shortest = float.to_string().parse::<f64>().ok();
    let is_same = |wide: &f64| {
        (*wide as f32).to_bits() == float.to_bits() && wide.abs() <= f64::from(f32::MAX)
    };
    let shortest = shortest.filter(is_same);
    float_json(shortest.unwrap_or_else(|| f64::from(float)))
}
