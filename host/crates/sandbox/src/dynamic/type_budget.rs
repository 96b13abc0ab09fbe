//! Bounds on what the host copies of the types of a component.
//!
//! A type is a graph in the component and a tree here, and whatever refers to a type repeats its
//! names. So a small file can describe types that would fill the memory.

/// What may still be copied.
#[derive(Debug, Clone)]
pub(crate) struct TypeBudget {
    /// Types, cases of variants, and names of enums and flags.
    pub(crate) parts: usize,
    /// Bytes of names and of documentation.
    pub(crate) text_bytes: usize,
}

impl TypeBudget {
    /// For the types of one function. Real functions have dozens of parts, and a schema may have
    /// 64 KiB.
    pub(crate) const OF_FUNCTION: Self = Self { parts: 2000, text_bytes: 64 * 1024 };

    /// For the types of all functions and all named types of a component. The schemas of as many
    /// take 60 MiB, and 256 functions with a hundred parts each use two thirds.
    pub(crate) const OF_COMPONENT: Self = Self { parts: 40_000, text_bytes: 2 * 1024 * 1024 };

    /// Takes parts, or returns `false` if fewer are left.
    pub(crate) fn take_parts(&mut self, parts: usize) -> bool {
        take(&mut self.parts, parts)
    }

    /// Takes text, or returns `false` if less is left.
    pub(crate) fn take_text(&mut self, bytes: usize) -> bool {
        take(&mut self.text_bytes, bytes)
    }
}

fn take(left: &mut usize, wanted: usize) -> bool {
    let rest = left.checked_sub(wanted);
    *left = rest.unwrap_or(*left);
    rest.is_some()
}
