//! Expanding a function to a tool.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{
    Attribute, Error, Expr, ExprLit, FnArg, Ident, ItemFn, Lit, Meta, Result, ReturnType,
    Signature, Type, TypeReference, spanned::Spanned,
};

use crate::attributes::Attributes;

/// Returns the unchanged function, with a type of the same name that is the tool.
///
/// Types and functions have separate namespaces in Rust, so both can be called `get_time`.
pub(crate) fn expand(attributes: &Attributes, function: &ItemFn) -> Result<TokenStream> {
    let signature = &function.sig;
    check_qualifiers(signature)?;
    let doc = doc(&function.attrs);
    if doc.trim().is_empty() {
        return Err(Error::new(
            signature.ident.span(),
            format!(
                "the tool `{0}` has no description: write a doc comment (`/// …`) above it that \
                 tells a model what it does and when to use it",
                signature.ident
            ),
        ));
    }
    let inputs = Inputs::of(signature)?;
    let implementation = implementation(attributes, signature, &inputs, &doc)?;
    let (visibility, ident) = (&function.vis, &signature.ident);
    Ok(quote! {
        #function

        #[doc(hidden)]
        #[allow(non_camel_case_types, reason = "the tool is called as its function is")]
        #visibility enum #ident {}

        #implementation
    })
}

fn implementation(
    attributes: &Attributes,
    signature: &Signature,
    inputs: &Inputs<'_>,
    doc: &str,
) -> Result<TokenStream> {
    let ident = &signature.ident;
    let name = attributes.name(ident);
    let (title, hints) = (attributes.title(), attributes.hints());
    let returns = returns(&signature.output)?;
    let arguments = inputs.arguments_type();
    let check = inputs.check();
    let call = inputs.call(ident);
    let settling = quote! {
        #[allow(unused_imports, reason = "one of them fits, by the type")]
        use ::sallyport_sdk::__private::{
            FailsInKind as _, FailsInSilence as _, FailsInWords as _, NeverFails as _,
        };
    };
    let kind = quote! { (&&&&::sallyport_sdk::__private::Returned::<#returns>::TYPE).kind() };
    Ok(quote! {
        impl ::sallyport_sdk::Tool for #ident {
            const NAME: &'static str = #name;

            fn spec() -> ::sallyport_sdk::ToolSpec {
                #[allow(unused_imports, reason = "one of the two answers, by the type")]
                use ::sallyport_sdk::__private::{Described as _, Undescribed as _};
                #settling
                #check
                let returns =
                    ::sallyport_sdk::__private::returns(|returned: #returns| #kind.settle(returned));
                ::sallyport_sdk::ToolSpec {
                    name: Self::NAME,
                    title: #title,
                    description: ::sallyport_sdk::__private::prose(#doc),
                    parameters: ::sallyport_sdk::__private::parameters::<#arguments>(),
                    output: (&returns).output(),
                    hints: #hints,
                }
            }

            fn call(
                context: &::sallyport_sdk::CallContext,
                arguments: &str,
            ) -> ::core::result::Result<::sallyport_sdk::Output, ::sallyport_sdk::ToolError> {
                #settling
                let _ = context;
                let arguments = ::sallyport_sdk::__private::parse::<#arguments>(arguments)?;
                ::sallyport_sdk::ToolReturn::into_output(#kind.settle(#call))
            }
        }
    })
}

/// The parameters of the function.
struct Inputs<'a> {
    arguments: Option<&'a Type>,
    context: bool,
}

impl<'a> Inputs<'a> {
    fn of(signature: &'a Signature) -> Result<Self> {
        let mut types = signature.inputs.iter().map(|input| match input {
            FnArg::Typed(typed) => Ok(&*typed.ty),
            FnArg::Receiver(this) => Err(Error::new(this.span(), "a tool is not a method")),
        });
        let first = types.next().transpose()?;
        let second = types.next().transpose()?;
        if let Some(third) = types.next().transpose()? {
            return Err(too_many(third));
        }
        match (first, second) {
            (Some(Type::Reference(borrowed)), _) if !may_be_context(borrowed) => {
                Err(Error::new(borrowed.span(), BORROWED))
            }
            (Some(Type::Reference(_)), Some(second)) => Err(too_many(second)),
            (Some(Type::Reference(_)), None) => Ok(Self { arguments: None, context: true }),
            (Some(owned), None) | (_, Some(owned)) if is_context(owned) => {
                Err(Error::new(owned.span(), "the context is borrowed: take it as `&CallContext`"))
            }
            (arguments, Some(Type::Reference(_))) => Ok(Self { arguments, context: true }),
            (_, Some(second)) => Err(too_many(second)),
            (arguments, None) => Ok(Self { arguments, context: false }),
        }
    }

    fn arguments_type(&self) -> TokenStream {
        match self.arguments {
            Some(ty) => quote! { #ty },
            None => quote! { ::sallyport_sdk::__private::NoArguments },
        }
    }

    /// Rejects arguments that are not a struct, with an error at the parameter in the author's
    /// code.
    fn check(&self) -> TokenStream {
        let Some(ty) = self.arguments else { return TokenStream::new() };
        quote_spanned! { ty.span() =>
            {
                #[allow(unused_imports, reason = "one of the two, by the type")]
                use ::sallyport_sdk::__private::{TakesNoObject as _, TakesObject as _};
                (&&::sallyport_sdk::__private::Takes::<#ty>::TYPE).check();
            }
        }
    }

    fn call(&self, function: &Ident) -> TokenStream {
        match (self.arguments, self.context) {
            (Some(_), true) => quote! { #function(arguments, context) },
            (Some(_), false) => quote! { #function(arguments) },
            (None, true) => quote! {{ let _ = arguments; #function(context) }},
            (None, false) => quote! {{ let _ = arguments; #function() }},
        }
    }
}

/// The message for borrowed arguments. A reference is taken as one to the context.
const BORROWED: &str = "a tool owns its arguments: put this into a struct that derives \
                        `Deserialize` and `JsonSchema`, with owned types such as `String`";

/// Whether a reference may be to the context. Strings, slices and numbers are not.
fn may_be_context(reference: &TypeReference) -> bool {
    let Type::Path(path) = &*reference.elem else { return false };
    let Some(last) = path.path.segments.last() else { return false };
    let name = last.ident.to_string();
    name.starts_with(char::is_uppercase) && last.arguments.is_none() && name != "String"
}

/// Whether a type is the context itself.
fn is_context(ty: &Type) -> bool {
    let Type::Path(path) = ty else { return false };
    path.path.segments.last().is_some_and(|last| last.ident == "CallContext")
}

fn too_many(at: &Type) -> Error {
    Error::new(
        at.span(),
        "a tool takes one struct of arguments, then perhaps `&CallContext`; put further arguments \
         into the struct",
    )
}

fn check_qualifiers(signature: &Signature) -> Result<()> {
    if let Some(keyword) = &signature.asyncness {
        return Err(Error::new(keyword.span(), "a tool is not `async`: it may simply block"));
    }
    if !signature.generics.params.is_empty() {
        return Err(Error::new(
            signature.generics.span(),
            "a tool has no type or lifetime parameters: its schema belongs to one type",
        ));
    }
    Ok(())
}

fn returns(output: &ReturnType) -> Result<TokenStream> {
    match output {
        ReturnType::Default => Ok(quote! { () }),
        ReturnType::Type(_, ty) if matches!(**ty, Type::ImplTrait(_)) => {
            Err(Error::new(ty.span(), "name the type that the tool returns"))
        }
        ReturnType::Type(_, ty) => Ok(quote! { #ty }),
    }
}

/// Joins the lines of the doc comment; the SDK forms paragraphs.
fn doc(attributes: &[Attribute]) -> String {
    let lines: Vec<_> = attributes.iter().filter_map(doc_line).collect();
    lines.join("\n")
}

fn doc_line(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(meta) = &attribute.meta else { return None };
    match &meta.value {
        Expr::Lit(ExprLit { lit: Lit::Str(line), .. }) if meta.path.is_ident("doc") => {
            Some(line.value())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(attributes: &str, function: &str) -> Result<TokenStream> {
        expand(&syn::parse_str(attributes)?, &syn::parse_str(function)?)
    }

    #[track_caller]
    fn check(attributes: &str, function: &str, want: &str) {
        let expanded = tool(attributes, function).unwrap().to_string().replace([' ', '\n'], "");
        assert!(expanded.contains(want), "{want} is not in {expanded}");
    }

    #[track_caller]
    fn check_error(attributes: &str, function: &str, want: &str) {
        let error = tool(attributes, function).unwrap_err().to_string();
        assert!(error.contains(want), "{error:?} lacks {want:?}");
    }

    #[test]
    fn a_tool_is_made_of_name_doc_types_and_hints() {
        let plain = "/// Does it.\nfn act() {}";
        check("", plain, "enumact{}");
        check("", plain, "NAME:&'staticstr=\"act\"");
        check("", plain, "parameters::<::sallyport_sdk::__private::NoArguments>()");
        check("", plain, "read_only:::core::option::Option::None");
        check("read_only", plain, "read_only:::core::option::Option::Some(true)");
        check("destructive = false,", plain, "destructive:::core::option::Option::Some(false)");
        check("name = \"law:act.2\"", plain, "NAME:&'staticstr=\"law:act.2\"");
        check("title = \"Act now\"", plain, "title:::core::option::Option::Some(\"Actnow\")");
        check("", plain, "title:::core::option::Option::None");
        check("", "/// Does it.\nfn r#match() {}", "NAME:&'staticstr=\"match\"");
        check("", "/// Does it.\npub(crate) fn act() {}", "pub(crate)enumact{}");
        check("", "/// One\n/// two.\nfn act(a: Args) {}", "prose(\"One\\ntwo.\")");
        check("", "/// Does it.\nfn act(a: Args) {}", "settle(act(arguments))");
        check("", "/// Does it.\nfn act(a: Args, c: &CallContext) {}", "act(arguments,context)");
        check("", "/// Does it.\nfn act(c: &CallContext) {}", "act(context)");
        let fallible = "/// Does it.\nfn act() -> Result<T, ToolError> {}";
        check("", fallible, "Returned::<Result<T,ToolError>>::TYPE");
    }

    #[test]
    fn what_is_wrong_is_said() {
        let plain = "/// Does it.\nfn act() {}";
        check_error("", "fn act() {}", "the tool `act` has no description: write a doc comment");
        check_error("", "///\nfn act() {}", "has no description");
        check_error("", "#[inline]\nfn act() {}", "has no description");
        check_error("", "/// Does it.\nfn act(a: A, b: B) {}", "into the struct");
        check_error("", "/// Does it.\nfn act(c: &CallContext, a: A) {}", "into the struct");
        check_error("", "/// Does it.\nfn act(a: A, c: &C, d: D) {}", "into the struct");
        check_error("", "/// Does it.\nfn act(a: &str) {}", "a tool owns its arguments");
        check_error("", "/// Does it.\nfn act(a: &String, b: u8) {}", "a tool owns its arguments");
        check_error("", "/// Does it.\nfn act(a: &[u8]) {}", "a tool owns its arguments");
        check_error("", "/// Does it.\nfn act(a: &Vec<u8>) {}", "a tool owns its arguments");
        check_error("", "/// Does it.\nfn act(c: CallContext) {}", "as `&CallContext`");
        check_error("", "/// Does it.\nfn act(a: A, c: CallContext) {}", "as `&CallContext`");
        check_error("read_only, destructive", plain, "remove one");
        check_error("", "/// Does it.\nfn act(&self) {}", "not a method");
        check_error("", "/// Does it.\nasync fn act() {}", "may simply block");
        check_error("", "/// Does it.\nfn act<T>(a: T) {}", "no type or lifetime parameters");
        check_error("", "/// Does it.\nfn act() -> impl Serialize {}", "name the type");
        check_error("readonly", plain, "`readonly` means nothing here; there are `read_only`");
        check_error("read_only, read_only", plain, "`read_only` is given twice");
        check_error("name = \"a\", name = \"b\"", plain, "`name` is given twice");
        check_error("title = \"a\", title = \"b\"", plain, "`title` is given twice");
        check_error("read_only = 1", plain, "expected boolean literal");
        check_error("name = \"do it\"", plain, "is not a name of a tool");
        check_error("name = \"\"", plain, "is not a name of a tool");
        check_error("name = \"-x\"", plain, "is not a name of a tool");
    }
}
