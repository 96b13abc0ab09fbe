//! The options between the parentheses of `#[tool(…)]`.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{
    Error, Ident, LitBool, LitStr, Result, Token,
    ext::IdentExt,
    parse::{Parse, ParseStream},
};

/// Longest name of a tool, in bytes; the host refuses longer ones.
const NAME_BYTES_MAX: usize = 128;

/// The hints about a tool, in the order of the SDK's `Hints`.
const HINTS: [&str; 4] = ["read_only", "destructive", "idempotent", "open_world"];

/// The parsed and checked options.
#[derive(Default)]
pub(crate) struct Attributes {
    name: Option<LitStr>,
    title: Option<LitStr>,
    hints: Vec<(Ident, LitBool)>,
}

impl Attributes {
    /// Returns the name of the tool.
    pub(crate) fn name(&self, function: &Ident) -> String {
        match &self.name {
            Some(name) => name.value(),
            None => function.unraw().to_string(),
        }
    }

    /// Returns the expression for the title.
    pub(crate) fn title(&self) -> TokenStream {
        match &self.title {
            Some(title) => quote! { ::core::option::Option::Some(#title) },
            None => quote! { ::core::option::Option::None },
        }
    }

    /// Returns the expression for the SDK's `Hints`.
    pub(crate) fn hints(&self) -> TokenStream {
        let given = self.hints.iter().map(|(hint, value)| {
            quote! { #hint: ::core::option::Option::Some(#value) }
        });
        // No `..default()`: it would be a needless update when all four are given.
        let absent =
            HINTS.iter().filter(|hint| !self.hints.iter().any(|(given, _)| given == *hint));
        let absent = absent.map(|hint| {
            let hint = Ident::new(hint, proc_macro2::Span::call_site());
            quote! { #hint: ::core::option::Option::None }
        });
        let fields = given.chain(absent).map(ToTokens::into_token_stream);
        quote! { ::sallyport_sdk::Hints { #(#fields),* } }
    }

    /// A tool that changes nothing destroys nothing.
    fn check_contradiction(&self) -> Result<()> {
        let given =
            |hint: &str| self.hints.iter().find(|(key, value)| key == hint && value.value());
        match (given("read_only"), given("destructive")) {
            (Some(_), Some((destructive, _))) => Err(Error::new(
                destructive.span(),
                "a tool cannot be both `read_only` and `destructive`; remove one",
            )),
            _ => Ok(()),
        }
    }

    fn insert(&mut self, key: Ident, input: ParseStream<'_>) -> Result<()> {
        if key == "name" {
            if self.name.is_some() {
                return Err(Error::new(key.span(), "`name` is given twice; remove one"));
            }
            input.parse::<Token![=]>()?;
            self.name = Some(checked_name(input.parse()?)?);
            return Ok(());
        }
        if key == "title" {
            if self.title.is_some() {
                return Err(Error::new(key.span(), "`title` is given twice; remove one"));
            }
            input.parse::<Token![=]>()?;
            self.title = Some(input.parse()?);
            return Ok(());
        }
        if !HINTS.iter().any(|hint| key == hint) {
            return Err(unknown(&key));
        }
        if self.hints.iter().any(|(known, _)| *known == key) {
            return Err(Error::new(key.span(), format!("`{key}` is given twice; remove one")));
        }
        let value = if input.parse::<Option<Token![=]>>()?.is_some() {
            input.parse()?
        } else {
            LitBool::new(true, key.span())
        };
        self.hints.push((key, value));
        Ok(())
    }
}

impl Parse for Attributes {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut attributes = Self::default();
        while !input.is_empty() {
            let key = input.call(Ident::parse_any)?;
            attributes.insert(key, input)?;
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        attributes.check_contradiction()?;
        Ok(attributes)
    }
}

fn unknown(key: &Ident) -> Error {
    let known = HINTS.map(|hint| format!("`{hint}`")).join(", ");
    Error::new(
        key.span(),
        format!("`{key}` means nothing here; there are {known}, `name` and `title`"),
    )
}

fn checked_name(name: LitStr) -> Result<LitStr> {
    let text = name.value();
    let head = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let rest = |b: u8| head(b) || matches!(b, b'-' | b'.' | b':');
    let fits = text.bytes().next().is_some_and(head)
        && text.len() <= NAME_BYTES_MAX
        && text.bytes().all(rest);
    if fits {
        return Ok(name);
    }
    Err(Error::new(
        name.span(),
        format!(
            "{text:?} is not a name of a tool: use up to {NAME_BYTES_MAX} letters, digits, '_', '-', \
             '.' and ':', starting with a letter, a digit or '_'"
        ),
    ))
}
