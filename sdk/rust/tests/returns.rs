//! What a tool returns, as the macro reads its type: an error is a failure, whatever it is made of.

use std::{error::Error, io};

use sallyport_sdk::{http::HttpError, prelude::*};

type Aliased<T> = Result<T, String>;

/// A pair.
#[derive(Serialize, JsonSchema)]
pub struct Pair {
    /// The left one.
    left: u8,
}

/// Fails with a text.
#[tool]
fn text() -> Result<u8, String> {
    Err("no luck".to_owned())
}

/// Fails with a text behind another name.
#[tool]
fn aliased() -> Aliased<Output<Pair>> {
    Err("no luck".to_owned())
}

/// Fails with a fixed text.
#[tool]
fn fixed() -> Result<(), &'static str> {
    Err("no luck")
}

/// Fails with any error.
#[tool]
fn boxed() -> Result<Pair, Box<dyn Error>> {
    Err("no luck".into())
}

/// Fails with an error of the standard library.
#[tool]
fn standard() -> Result<Value, io::Error> {
    Err(io::Error::other("no luck"))
}

/// Fails with an error that knows its kind.
#[tool]
fn kinded() -> Result<u8, HttpError> {
    Err(HttpError::Status { status: 503 })
}

/// Fails in the words of the contract.
#[tool]
fn contract() -> Result<u8, ToolError> {
    Err(ToolError::Unavailable("no luck".to_owned()))
}

/// Succeeds.
#[tool]
fn works() -> Result<Pair, String> {
    Ok(Pair { left: 7 })
}

/// Gives plain data.
#[tool]
fn plain() -> Option<u8> {
    None
}

fn call<T: Tool>() -> Result<Value, ToolError> {
    T::call(&CallContext::default(), "{}").map(|output| output.data)
}

#[test]
fn an_err_of_any_type_fails_the_call() {
    let failed = Err(ToolError::Failed("no luck".to_owned()));
    assert_eq!(call::<text>(), failed);
    assert_eq!(call::<aliased>(), failed);
    assert_eq!(call::<fixed>(), failed);
    assert_eq!(call::<boxed>(), failed);
    assert_eq!(call::<standard>(), failed);
    assert_eq!(call::<kinded>().unwrap_err().kind(), "unavailable");
    assert_eq!(call::<contract>().unwrap_err().kind(), "unavailable");
    assert_eq!(call::<works>(), Ok(json!({ "left": 7 })));
    assert_eq!(call::<plain>(), Ok(Value::Null));
}

#[test]
fn the_schema_is_that_of_the_data_and_not_of_the_result() {
    for spec in [works::spec(), boxed::spec(), aliased::spec()] {
        assert_eq!(spec.output.unwrap()["properties"]["left"]["type"], "integer", "{}", spec.name);
    }
    for spec in [text::spec(), fixed::spec(), standard::spec(), plain::spec()] {
        assert_eq!(spec.output, None, "{}", spec.name);
    }
}
