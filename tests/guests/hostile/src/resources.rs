//! Things of the host that a guest can ask for without end.

use std::hint::black_box;

use sallyport_sdk::prelude::*;
use wasip2::{clocks::monotonic_clock::subscribe_duration, http::types::Fields, random::random};

use crate::Amount;

/// Asks for n random bytes at once.
#[tool]
pub(crate) fn random_bytes(args: Amount) -> usize {
    random::get_random_bytes(args.n).len()
}

/// Takes n pollables and gives none back.
#[tool]
pub(crate) fn leaks_pollables(args: Amount) -> u64 {
    for _ in 0..args.n {
        std::mem::forget(black_box(subscribe_duration(u64::MAX)));
    }
    args.n
}

/// Takes n sets of headers and gives none back.
#[tool]
pub(crate) fn leaks_headers(args: Amount) -> u64 {
    for _ in 0..args.n {
        std::mem::forget(black_box(Fields::new()));
    }
    args.n
}

/// Sets one header of n bytes.
#[tool]
pub(crate) fn huge_header(args: Amount) -> Result<u64, ToolError> {
    let value = vec![b'v'; usize::try_from(args.n).unwrap_or(usize::MAX)];
    let set = Fields::new().append("x", &value);
    set.map(|()| args.n).map_err(|error| ToolError::Failed(format!("{error:?}")))
}

/// Fills one set of headers with n of them.
#[tool]
pub(crate) fn many_headers(args: Amount) -> Result<u64, ToolError> {
    let fields = Fields::new();
    for i in 0..args.n {
        fields
            .append(&format!("x-{i}"), &[b'v'; 1000])
            .map_err(|error| ToolError::Failed(format!("header {i}: {error:?}")))?;
    }
    Ok(args.n)
}
