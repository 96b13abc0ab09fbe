//! The futures of traits that are used as trait objects.

use std::{future::Future, pin::Pin};

/// A boxed future, which makes a trait usable as a trait object.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
