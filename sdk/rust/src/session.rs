//! Values that an instance keeps from one call to the next.
//!
//! A plugin runs in a fresh instance for every call, unless its manifest sets `instance =
//! "session"`. Then one instance serves a session until it has been idle for a while, and keeps its
//! memory. The memory is lost when the instance ends, for any reason. Store data that has to last
//! in [`state`](mod@crate::state).

use std::{
    any::{Any, TypeId},
    cell::RefCell,
    collections::HashMap,
    rc::Rc,
};

thread_local! {
    static KEPT: RefCell<HashMap<TypeId, Rc<dyn Any>>> = RefCell::default();
}

/// Passes the instance's value of a type to `work`. The value starts as the type's default.
///
/// A listener or a UI that is exported as a type is that same value, so a tool of the same plugin
/// can access it.
///
/// ```
/// use sallyport_sdk::{prelude::*, session};
///
/// #[derive(Default)]
/// struct Calls(u32);
///
/// /// Counts how often it was called in this session.
/// #[tool]
/// fn count() -> u32 {
///     session::with(|calls: &mut Calls| {
///         calls.0 += 1;
///         calls.0
///     })
/// }
///
/// assert_eq!((count(), count()), (1, 2));
/// ```
///
/// # Panics
///
/// `work` asks for the value of the same type, or the type's `Default` calls this function.
pub fn with<T: Default + 'static, R>(work: impl FnOnce(&mut T) -> R) -> R {
    let kept = KEPT.with_borrow_mut(|kept| {
        kept.entry(TypeId::of::<T>()).or_insert_with(|| Rc::new(RefCell::new(T::default()))).clone()
    });
    let value = kept.downcast::<RefCell<T>>().expect("every value is kept under its own type");
    work(&mut value.borrow_mut())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_has_its_own_value() {
        with(|text: &mut String| text.push('a'));
        with(|number: &mut u8| *number += 7);
        with(|text: &mut String| text.push('b'));
        assert_eq!(with(|text: &mut String| text.clone()), "ab");
        let seen = with(|number: &mut u8| with(|text: &mut String| (text.len(), *number)));
        assert_eq!(seen, (2, 7));
    }
}
