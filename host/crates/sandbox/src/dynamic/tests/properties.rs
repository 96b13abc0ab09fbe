//! Random values of random types come back from JSON, and what is no value is refused as by the
//! schema. `cargo xtask fuzz values` runs these for longer.

use proptest::{collection::vec, prelude::*, sample::subsequence};
use serde_json::Value;
use wasmtime::component::Val;

use super::{field, write};
use crate::{
    dynamic::{
        docs::NamedTypes,
        from_val::{JsonWriter, WriteError},
        schema::type_schema,
        to_val::json_to_val,
        value_type::{IntegerType, ResultType, ValueType, VariantCase},
    },
    schema::CompiledSchema,
};

fn any_integer() -> impl Strategy<Value = IntegerType> {
    use IntegerType::{S8, S16, S32, S64, U8, U16, U32, U64};
    prop::sample::select(vec![S8, U8, S16, U16, S32, U32, S64, U64])
}

fn any_names() -> impl Strategy<Value = Vec<String>> {
    (1_usize..5).prop_map(|count| (0..count).map(|index| format!("name-{index}")).collect())
}

fn any_key() -> impl Strategy<Value = ValueType> {
    prop_oneof![Just(ValueType::String), any_integer().prop_map(ValueType::Integer)]
}

fn any_type() -> impl Strategy<Value = ValueType> {
    let leaf = prop_oneof![
        prop::sample::select(vec![
            ValueType::Bool,
            ValueType::Float32,
            ValueType::Float64,
            ValueType::Char,
            ValueType::String,
        ]),
        any_integer().prop_map(ValueType::Integer),
        any_names().prop_map(ValueType::Enum),
        any_names().prop_map(ValueType::Flags),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let boxed = inner.clone().prop_map(Box::new).boxed();
        let maybe = prop::option::of(boxed.clone()).boxed();
        let many = || vec(inner.clone(), 1..4);
        let name = |index: usize| format!("name-{index}");
        prop_oneof![
            boxed.clone().prop_map(ValueType::List),
            (boxed.clone(), 1_u32..4).prop_map(|(ty, length)| ValueType::FixedList(ty, length)),
            (any_key().prop_map(Box::new), boxed.clone())
                .prop_map(|(key, ty)| ValueType::Map(key, ty)),
            boxed.prop_map(ValueType::Option),
            many().prop_map(ValueType::Tuple),
            many().prop_map(move |types| {
                let fields = types.into_iter().enumerate();
                ValueType::Record(fields.map(|(index, ty)| field(&name(index), ty)).collect())
            }),
            vec(prop::option::of(inner.clone()), 1..4).prop_map(move |types| {
                let cases = types.into_iter().enumerate();
                let case = |(index, payload)| VariantCase { name: name(index), payload };
                ValueType::Variant(cases.map(case).collect())
            }),
            (maybe.clone(), maybe).prop_map(|(ok, err)| ValueType::Result(ResultType { ok, err })),
        ]
    })
}

fn any_integer_val(ty: IntegerType) -> BoxedStrategy<Val> {
    match ty {
        IntegerType::S8 => any::<i8>().prop_map(Val::S8).boxed(),
        IntegerType::U8 => any::<u8>().prop_map(Val::U8).boxed(),
        IntegerType::S16 => any::<i16>().prop_map(Val::S16).boxed(),
        IntegerType::U16 => any::<u16>().prop_map(Val::U16).boxed(),
        IntegerType::S32 => any::<i32>().prop_map(Val::S32).boxed(),
        IntegerType::U32 => any::<u32>().prop_map(Val::U32).boxed(),
        IntegerType::S64 => any::<i64>().prop_map(Val::S64).boxed(),
        IntegerType::U64 => any::<u64>().prop_map(Val::U64).boxed(),
    }
}

fn any_payload(ty: Option<&ValueType>) -> BoxedStrategy<Option<Box<Val>>> {
    match ty {
        Some(ty) => any_val(ty).prop_map(|val| Some(Box::new(val))).boxed(),
        None => Just(None).boxed(),
    }
}

fn any_vals<'t>(types: impl Iterator<Item = &'t ValueType>) -> Vec<BoxedStrategy<Val>> {
    types.map(any_val).collect()
}

/// Any value of a type.
fn any_val(ty: &ValueType) -> BoxedStrategy<Val> {
    match ty {
        ValueType::Bool => any::<bool>().prop_map(Val::Bool).boxed(),
        ValueType::Integer(integer) => any_integer_val(*integer),
        ValueType::Float32 => prop::num::f32::ANY.prop_map(Val::Float32).boxed(),
        ValueType::Float64 => prop::num::f64::ANY.prop_map(Val::Float64).boxed(),
        ValueType::Char => any::<char>().prop_map(Val::Char).boxed(),
        ValueType::String => any::<String>().prop_map(Val::String).boxed(),
        ValueType::List(element) => vec(any_val(element), 0..4).prop_map(Val::List).boxed(),
        ValueType::FixedList(element, length) => {
            vec(any_val(element), *length as usize).prop_map(Val::FixedLengthList).boxed()
        }
        ValueType::Map(key, element) if **key == ValueType::String => {
            let entries = prop::collection::btree_map(any::<String>(), any_val(element), 0..4);
            let pairs = |(key, val)| (Val::String(key), val);
            entries.prop_map(move |all| Val::Map(all.into_iter().map(pairs).collect())).boxed()
        }
        ValueType::Map(key, element) => {
            vec((any_val(key), any_val(element)), 0..4).prop_map(Val::Map).boxed()
        }
        ValueType::Record(fields) => {
            let names: Vec<String> = fields.iter().map(|field| field.name.clone()).collect();
            any_vals(fields.iter().map(|field| &field.ty))
                .prop_map(move |vals| Val::Record(names.iter().cloned().zip(vals).collect()))
                .boxed()
        }
        ValueType::Tuple(types) => any_vals(types.iter()).prop_map(Val::Tuple).boxed(),
        ValueType::Variant(cases) => {
            let case = |case: &VariantCase| {
                let name = case.name.clone();
                any_payload(case.payload.as_ref())
                    .prop_map(move |payload| Val::Variant(name.clone(), payload))
                    .boxed()
            };
            prop::strategy::Union::new(cases.iter().map(case)).boxed()
        }
        ValueType::Enum(names) => prop::sample::select(names.clone()).prop_map(Val::Enum).boxed(),
        ValueType::Flags(names) => {
            subsequence(names.clone(), 0..=names.len()).prop_map(Val::Flags).boxed()
        }
        ValueType::Option(inner) => {
            prop_oneof![Just(Val::Option(None)), any_payload(Some(inner)).prop_map(Val::Option)]
                .boxed()
        }
        ValueType::Result(result) => prop_oneof![
            any_payload(result.ok.as_deref()).prop_map(|val| Val::Result(Ok(val))),
            any_payload(result.err.as_deref()).prop_map(|val| Val::Result(Err(val))),
        ]
        .boxed(),
    }
}

/// JSON of any shape, with the words that types use.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "name-[0-3]|NaN|-?[0-9]{1,21}|.".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        let key = "name-[0-3]|tag|val|ok|err|some";
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(key, inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Replaces a part of a value: the path leads into it as far as it can.
fn replace_part(value: &mut Value, path: &[usize], part: Value) {
    let Some((step, rest)) = path.split_first() else { return *value = part };
    match value {
        Value::Array(items) if !items.is_empty() => {
            let index = step % items.len();
            replace_part(&mut items[index], rest, part);
        }
        Value::Object(map) if !map.is_empty() => {
            let index = step % map.len();
            let inner = map.values_mut().nth(index).expect("it is shorter than the map");
            replace_part(inner, rest, part);
        }
        whole => *whole = part,
    }
}

/// Whether the schema alone does not say all: digits and Base64 are checked by the conversion.
fn has_inexact_schema(ty: &ValueType) -> bool {
    let text = format!("{ty:?}");
    ["S64", "U64", "List(Integer(U8))"].iter().any(|part| text.contains(part))
}

proptest! {
    #[test]
    fn any_value_of_any_type_comes_back(
        (ty, val) in any_type().prop_flat_map(|ty| (Just(ty.clone()), any_val(&ty)))
    ) {
        let value = write(&ty, &val);
        let text = value.to_string();
        let read: Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(json_to_val(&ty, &read), Ok(val.clone()), "{}", text);
        if let Ok(schema) = CompiledSchema::new(&type_schema(&ty, &NamedTypes::default())) {
            prop_assert_eq!(schema.check_value(&read), Ok(()), "{}", text);
        }
        let enough = JsonWriter::new(text.len() * 4 + 64).val_to_json(&ty, &val);
        prop_assert_eq!(enough, Ok(value), "what is counted is near what is written");
        let few = JsonWriter::new(text.len() - 1).val_to_json(&ty, &val);
        prop_assert_eq!(few, Err(WriteError::TooLarge), "{}", text);
    }

    #[test]
    fn what_the_schema_refuses_is_refused_and_nothing_else(
        (ty, val) in any_type().prop_flat_map(|ty| (Just(ty.clone()), any_val(&ty))),
        path in vec(any::<usize>(), 0..4),
        part in any_json(),
    ) {
        let mut value = write(&ty, &val);
        replace_part(&mut value, &path, part);
        let read = json_to_val(&ty, &value);
        if let Ok(schema) = CompiledSchema::new(&type_schema(&ty, &NamedTypes::default())) {
            let fits = schema.check_value(&value).is_ok();
            prop_assert!(fits || read.is_err(), "{} is taken, but not by its schema", value);
            prop_assert!(read.is_ok() || !fits || has_inexact_schema(&ty), "{}: {:?}", value, read);
        }
        if let Ok(val) = read {
            prop_assert_eq!(json_to_val(&ty, &write(&ty, &val)), Ok(val));
        }
    }
}
