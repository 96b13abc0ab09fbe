//! What an instance remembers from one call to the next.
//!
//! A plugin runs in a fresh instance for every call, unless its manifest says
//! `instance = "session"`: then one instance serves a session until it has been idle for a while,
//! and what is in its memory stays. It is gone when the instance ends, whatever the reason; what
//! has to last belongs in [`state`](mod@crate::state).

use std::{
    any::{Any, TypeId},
    cell::RefCell,
    collections::HashMap,
    rc::Rc,
};

thread_local! {
    static KEPT: RefCell<HashMap<TypeId, Rc<dyn Any>>> = RefCell::default();
}

/// Works on the one value of a type that this instance keeps. It begins as the type's default.
///
/// A listener or a UI that is exported as a type is that same value, so a function beside it can
/// look into it.
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
/// When `work` itself asks for the value of the same type.
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
