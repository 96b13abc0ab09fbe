//! Components from text.
