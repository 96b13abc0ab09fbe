//! Tests of the bridge: tables of values, and random values of random types in `properties`.

mod properties;

use serde_json::{Value, json};
use wasmtime::{
    Config, Engine, WasmFeatures,
    component::{Component, Type, Val, types::ComponentItem},
};

use super::{
    docs::{NamedTypes, PackageDocs},
    from_val::{JsonWriter, WriteError},
    names::tool_name,
    schema::{object_schema, type_schema},
    signature::format_signature,
    to_val::{arguments_to_vals, json_to_val},
    type_budget::TypeBudget,
    value_type::{
        IntegerType, NamedType, ResultType, TYPE_LEVELS_MAX, TypeReader, UnsupportedType,
        ValueType, VariantCase,
    },
};
use crate::schema::CompiledSchema;

fn field(name: &str, ty: ValueType) -> NamedType {
    NamedType { name: name.to_owned(), ty }
}

fn option(ty: ValueType) -> ValueType {
    ValueType::Option(Box::new(ty))
}

fn list(ty: ValueType) -> ValueType {
    ValueType::List(Box::new(ty))
}

fn write(ty: &ValueType, val: &Val) -> Value {
    JsonWriter::new(usize::MAX).val_to_json(ty, val).unwrap()
}

/// A value is read, and written again as it was.
#[track_caller]
fn check_same(ty: &ValueType, value: &Value) {
    let schema = type_schema(ty, &NamedTypes::default());
    let compiled = CompiledSchema::new(&schema).unwrap();
    assert_eq!(compiled.check_value(value), Ok(()), "{value} in {schema}");
    let val = json_to_val(ty, value).unwrap_or_else(|error| panic!("{value}: {error}"));
    assert_eq!(write(ty, &val).to_string(), value.to_string());
}

#[track_caller]
fn check_refused(ty: &ValueType, value: &Value, message: &str) {
    assert_eq!(json_to_val(ty, value).unwrap_err().to_string(), message, "{value}");
}

fn integer(integer: IntegerType) -> ValueType {
    ValueType::Integer(integer)
}

#[test]
fn every_integer_keeps_its_last_digit() {
    use IntegerType::{S8, S16, S32, S64, U8, U16, U32, U64};
    for ty in [S8, U8, S16, U16, S32, U32, S64, U64] {
        let (least, greatest) = ty.range();
        for number in [least, greatest, 0, 1] {
            let value: Value = match number.abs() > (1 << 53) - 1 {
                true => number.to_string().into(),
                false => serde_json::from_str(&number.to_string()).unwrap(),
            };
            check_same(&integer(ty), &value);
        }
        let message = format!("it must be from {least} to {greatest}");
        for number in [least - 1, greatest + 1] {
            let value = match ty.is_wide() {
                true => Value::String(number.to_string()),
                false => serde_json::from_str(&number.to_string()).unwrap(),
            };
            check_refused(&integer(ty), &value, &message);
        }
    }
    for number in [i64::MIN, i64::MAX, 9_007_199_254_740_993] {
        assert_eq!(json_to_val(&integer(S64), &json!(number)).unwrap(), Val::S64(number));
    }
    assert_eq!(json_to_val(&integer(U64), &json!(u64::MAX)).unwrap(), Val::U64(u64::MAX));
}

#[test]
fn numbers_that_are_not_exact_are_refused() {
    let wide = integer(IntegerType::U64);
    assert_eq!(json_to_val(&wide, &json!(3.0)).unwrap(), Val::U64(3));
    let digits = "expected an integer, or its decimal digits";
    for (value, message) in [
        (
            json!(1e19),
            "a number with a fraction or an exponent is not exact there: write all digits",
        ),
        (json!(0.5), "expected an integer"),
        (json!("+1"), digits),
        (json!("1e3"), digits),
        (json!(""), digits),
        (json!("-"), digits),
        (json!("123456789012345678901"), digits),
        (json!(-1), "it must be from 0 to 18446744073709551615"),
    ] {
        check_refused(&wide, &value, message);
    }
    check_refused(&integer(IntegerType::U32), &json!("1"), "expected an integer");
    check_refused(&ValueType::Float32, &json!(1e39), "it is beyond the range of an f32");
}

#[test]
fn floats_have_a_spelling() {
    for value in [json!("NaN"), json!("Infinity"), json!("-Infinity"), json!(0.1), json!(-0.0)] {
        check_same(&ValueType::Float32, &value);
        check_same(&ValueType::Float64, &value);
    }
    let message = "expected a number, \"NaN\", \"Infinity\" or \"-Infinity\"";
    check_refused(&ValueType::Float64, &json!("nan"), message);
    for number in [f32::MAX, f32::MIN, f32::MIN_POSITIVE] {
        let val = Val::Float32(number);
        let value = write(&ValueType::Float32, &val);
        check_same(&ValueType::Float32, &value);
        assert_eq!(json_to_val(&ValueType::Float32, &value), Ok(val));
    }
}

fn shape() -> ValueType {
    let case = |name: &str, payload| VariantCase { name: name.to_owned(), payload };
    ValueType::Variant(vec![
        case("circle", Some(ValueType::Float64)),
        case("nothing", None),
        case("named", Some(option(ValueType::String))),
    ])
}

fn place() -> ValueType {
    ValueType::Record(vec![
        field("name", ValueType::String),
        field("height-in-metres", option(integer(IntegerType::S32))),
    ])
}

#[test]
fn values_of_every_kind_come_back() {
    let nested = option(option(ValueType::String));
    let names = || ["red".to_owned(), "deep-blue".to_owned()].to_vec();
    let result = ValueType::Result(ResultType { ok: Some(Box::new(ValueType::Bool)), err: None });
    let map = |key| ValueType::Map(Box::new(key), Box::new(ValueType::Bool));
    let pair = ValueType::Tuple(vec![ValueType::Char, ValueType::Bool]);
    let triple = ValueType::FixedList(Box::new(integer(IntegerType::U8)), 3);
    for (ty, value) in [
        (ValueType::Char, json!("\u{1f600}")),
        (list(integer(IntegerType::U8)), json!("AP8=")),
        (list(integer(IntegerType::S8)), json!([-1, 1])),
        (triple, json!([1, 2, 255])),
        (pair, json!(["x", true])),
        (place(), json!({ "name": "Ulm", "height-in-metres": null })),
        (shape(), json!({ "tag": "circle", "val": 1.5 })),
        (shape(), json!({ "tag": "nothing" })),
        (shape(), json!({ "tag": "named", "val": null })),
        (ValueType::Enum(names()), json!("deep-blue")),
        (ValueType::Flags(names()), json!(["red", "deep-blue"])),
        (option(ValueType::Bool), Value::Null),
        (nested.clone(), Value::Null),
        (nested.clone(), json!({ "some": null })),
        (nested, json!({ "some": "text" })),
        (result.clone(), json!({ "ok": true })),
        (result, json!({ "err": null })),
        (map(ValueType::String), json!({ "a b": true })),
        (map(integer(IntegerType::U16)), json!([[7, true], [8, false]])),
    ] {
        check_same(&ty, &value);
    }
}

#[test]
fn a_bad_value_names_its_place() {
    let places = ValueType::Record(vec![field("all", list(place()))]);
    let known = "does not exist; there is";
    for (value, message) in [
        (json!([]), "expected an object"),
        (json!({}), "\"all\" is missing"),
        (json!({ "all": [{}] }), "/all/0: \"name\" is missing"),
        (json!({ "all": [{ "name": 1 }] }), "/all/0/name: expected a string"),
        (
            json!({ "all": [{ "name": "x" }, { "name": "x", "high": 1 }] }),
            &format!("/all/1: \"high\" {known} name, height-in-metres"),
        ),
    ] {
        check_refused(&places, &value, message);
    }
    let colours = ValueType::Flags(vec!["red".to_owned(), "green".to_owned()]);
    check_refused(&colours, &json!(["red", "red"]), "/1: \"red\" stands twice");
    check_refused(&colours, &json!(["blue"]), &format!("/0: \"blue\" {known} red, green"));
    let tag = format!("/tag: \"oval\" {known} circle, nothing, named");
    check_refused(&shape(), &json!({ "tag": "oval" }), &tag);
    check_refused(&shape(), &json!({ "tag": "circle" }), "\"val\" is missing");
    let val = format!("\"val\" {known} tag");
    check_refused(&shape(), &json!({ "tag": "nothing", "val": 1 }), &val);
    check_refused(
        &list(integer(IntegerType::U8)),
        &json!("AP8"),
        "expected bytes in Base64, with padding",
    );
}

#[test]
fn an_argument_that_is_an_option_may_be_left_out() {
    let parameters = [field("a", ValueType::Bool), field("b", option(ValueType::Bool))];
    let none = [Val::Bool(true), Val::Option(None)];
    for arguments in [json!({ "a": true }), json!({ "a": true, "b": null })] {
        assert_eq!(arguments_to_vals(&parameters, &arguments).unwrap(), none);
        let schema = object_schema(&parameters, &NamedTypes::default());
        assert_eq!(CompiledSchema::new(&schema).unwrap().check_value(&arguments), Ok(()));
    }
    let error = arguments_to_vals(&parameters, &json!({ "b": true })).unwrap_err();
    assert_eq!(error.to_string(), "\"a\" is missing");
}

#[test]
fn a_large_value_is_not_converted_to_its_end() {
    for (text, count) in [("x", 98), ("\"", 49), ("\n", 49), ("\u{1}", 17), ("é", 49)] {
        let text = Val::String(text.repeat(count));
        let written = JsonWriter::new(100).val_to_json(&ValueType::String, &text);
        assert_eq!(written, Err(WriteError::TooLarge), "its JSON has more than 100 bytes");
    }
    let empty = Val::List(vec![Val::List(Vec::new()); 1000]);
    let written = JsonWriter::new(100).val_to_json(&list(list(ValueType::Bool)), &empty);
    assert_eq!(written, Err(WriteError::TooLarge));
}

/// The types of the functions of a component, by name.
fn read_functions(wat: &str) -> Vec<(String, Result<Vec<NamedType>, UnsupportedType>)> {
    let mut config = Config::new();
    config.wasm_features(WasmFeatures::CM_MAP | WasmFeatures::CM_FIXED_LENGTH_LISTS, true);
    let engine = Engine::new(&config).unwrap();
    let component = Component::new(&engine, wat::parse_str(wat).unwrap()).unwrap();
    let ty = component.component_type();
    let read = |(name, item): (&str, ComponentItem)| match item {
        ComponentItem::ComponentFunc(function) => {
            let mut budget = TypeBudget::OF_COMPONENT;
            let mut reader = TypeReader::new(&mut budget);
            let members = function.params().map(|(name, ty)| reader.read_member(name, &ty));
            Some((name.to_owned(), members.collect()))
        }
        _ => None,
    };
    ty.imports(&engine).map(|(name, item)| (name, item.ty)).filter_map(read).collect()
}

#[test]
fn types_are_read_from_a_component() {
    let functions = read_functions(
        r#"(component
            (import "thing" (type $thing (sub resource)))
            (import "maps" (func (param "map" (map string u8)) (param "fixed" (list s64 3))))
            (import "owns" (func (param "thing" (own $thing))))
            (import "borrows" (func (param "things" (list (borrow $thing))))))"#,
    );
    let map = ValueType::Map(Box::new(ValueType::String), Box::new(integer(IntegerType::U8)));
    let fixed = ValueType::FixedList(Box::new(integer(IntegerType::S64)), 3);
    let maps = vec![field("map", map), field("fixed", fixed)];
    assert_eq!(
        functions,
        [
            ("maps".to_owned(), Ok(maps.clone())),
            ("owns".to_owned(), Err(UnsupportedType::Resource)),
            ("borrows".to_owned(), Err(UnsupportedType::Resource)),
        ]
    );
    let signature = format_signature("maps", &maps, None, &NamedTypes::default());
    assert_eq!(signature, "maps: func(map: map<string, u8>, fixed: list<s64, 3>)");
}

#[test]
fn types_that_are_too_deep_or_too_large_are_refused() {
    let deep = |levels: usize| {
        format!(
            r#"(component (import "f" (func (param "p" {}bool{}))))"#,
            "(list ".repeat(levels - 1),
            ")".repeat(levels - 1)
        )
    };
    assert!(read_functions(&deep(TYPE_LEVELS_MAX))[0].1.is_ok());
    assert_eq!(read_functions(&deep(TYPE_LEVELS_MAX + 1))[0].1, Err(UnsupportedType::TooDeep));
    // Each type has the one before it twice, so the last one has 2^14 leaves.
    let doubling: String = (1..14)
        .map(|level| format!("(type $t{level} (tuple $t{} $t{}))", level - 1, level - 1))
        .collect();
    let large = format!(
        r#"(component (type $t0 (tuple bool bool)) {doubling} (import "f" (func (param "p" $t13))))"#
    );
    assert_eq!(read_functions(&large)[0].1, Err(UnsupportedType::TooLarge));
}

#[test]
fn names_count_wherever_they_are_repeated() {
    let record = |bytes: usize| {
        let name = "x".repeat(bytes);
        format!(
            r#"(component (type $own (record (field "{name}" bool)))
                (import "r" (type $r (eq $own)))
                (import "f" (func (param "p" (tuple {})))))"#,
            "$r ".repeat(30)
        )
    };
    assert!(read_functions(&record(2000))[0].1.is_ok());
    assert_eq!(read_functions(&record(3000))[0].1, Err(UnsupportedType::LongNames));
    let mut budget = TypeBudget { parts: 1, text_bytes: 1 };
    let read = TypeReader::new(&mut budget).read_member("pp", &Type::Bool);
    assert_eq!(read, Err(UnsupportedType::NothingLeft));
    let read = TypeReader::new(&mut budget).read_member("p", &Type::Bool);
    assert_eq!(read, Ok(field("p", ValueType::Bool)));
    let read = TypeReader::new(&mut budget).read_type(&Type::Bool);
    assert_eq!(read, Err(UnsupportedType::NothingLeft));
}

#[test]
fn a_signature_is_cut_at_its_last_byte() {
    let name = "x".repeat(999 - "f: func(: bool".len());
    for (more, end) in [("", "bool)"), ("y", "bool…"), ("yy", "boo…")] {
        let parameters = [field(&format!("{name}{more}"), ValueType::Bool)];
        let signature = format_signature("f", &parameters, None, &NamedTypes::default());
        assert!(signature.ends_with(end), "{more:?}: {signature}");
    }
    let parameters = vec![field(&"é".repeat(2000), ValueType::Bool); 2000];
    let signature = format_signature("ff", &parameters, None, &NamedTypes::default());
    assert_eq!(signature.len(), 999 + "…".len(), "a character is not cut in half");
}

#[test]
fn names_leave_the_package_out() {
    for (interface, function, tool) in [
        (None, "look-up", "look-up"),
        (Some("acme:shop/prices@1.2.0"), "look-up", "prices.look-up"),
        (Some("acme:shop/prices"), "get-URL", "prices.get-URL"),
        (Some("inline"), "f", "inline.f"),
    ] {
        assert_eq!(tool_name(interface, function), tool);
    }
}

#[test]
fn documentation_is_found_and_what_is_no_documentation_is_not() {
    let section = |version: u8, text: &str| [&[version], text.as_bytes()].concat();
    let text = r#"{
        "worlds": { "w": {
            "func_exports": { "greet": { "docs": " Greets. " } },
            "interface_exports": { "inline": { "funcs": { "f": "In line." } } } } },
        "interfaces": { "prices": { "funcs": { "look-up": { "docs": "Looks up." } } } } }"#;
    let docs = PackageDocs::from_section(&section(1, text));
    let of = |interface, function| docs.function(interface, function);
    assert_eq!(of(None, "greet"), Some("Greets."));
    assert_eq!(of(Some("acme:shop/prices@1.2.0"), "look-up"), Some("Looks up."));
    assert_eq!(of(Some("inline"), "f"), Some("In line."));
    assert_eq!(of(Some("acme:shop/prices@1.2.0"), "greet"), None);
    let worlds = |other: &str| {
        let text = format!(
            r#"{{"worlds":{{"a":{{"funcs":{{"f":"One."}}}},"b":{{}},"c":{{"funcs":{{"f":"{other}"}}}}}}}}"#
        );
        let docs = PackageDocs::from_section(&section(1, &text));
        docs.function(None, "f").map(str::to_owned)
    };
    assert_eq!(worlds("One.").as_deref(), Some("One."));
    assert_eq!(worlds("Two."), None, "nothing says which world it is");
    let deep = "[".repeat(100_000);
    for bad in [&b""[..], &[1], &[1, 0xff], &section(9, text), &section(1, &deep)] {
        assert_eq!(PackageDocs::from_section(bad).function(None, "greet"), None);
    }
}
