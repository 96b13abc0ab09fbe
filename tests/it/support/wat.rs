//! Components from text: for what no compiler of a language would produce.
//!
//! A core module is written down here, given the types of a WIT world and made a component, as
//! every tool chain does it.

use std::path::Path;

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// Where the list of tools lies in the module's memory.
const LIST_AT: usize = 1024;

/// Bytes of one `tool-spec`: three strings, three options of one, and the hints.
const SPEC_BYTES: usize = 80;

/// Bytes of a string that may be absent, such as the title.
const OPTION_BYTES: usize = 12;

/// The pieces of a module that exports tools. What a test does not name is as it should be.
pub(crate) struct Module {
    /// Instructions of `list-tools`; they leave the address of a list behind.
    pub(crate) list: String,
    /// Instructions of `call-tool`.
    pub(crate) call: String,
    /// Instructions of the allocator, which the host calls for arguments.
    pub(crate) realloc: String,
    /// Further fields of the module.
    pub(crate) fields: String,
    /// What the module imports, which comes first.
    pub(crate) imports: String,
    /// A package of its own, whose world `w` includes that of the repository.
    pub(crate) wit: String,
    /// The list of tools, in the layout of the canonical ABI.
    pub(crate) memory: Vec<u8>,
}

/// A tool as a module lists it.
pub(crate) struct Spec<'a> {
    pub(crate) name: &'a str,
    pub(crate) description: &'a str,
    pub(crate) parameters: &'a str,
}

impl Spec<'_> {
    /// A tool that nothing is wrong with.
    pub(crate) const GOOD: Spec<'static> =
        Spec { name: "act", description: "Acts.", parameters: r#"{"type":"object"}"# };
}

impl Module {
    /// A module that lists these tools and traps when one is called.
    pub(crate) fn listing(specs: &[Spec<'_>]) -> Self {
        Self {
            list: format!("i32.const {LIST_AT}"),
            call: "unreachable".to_owned(),
            realloc: format!("i32.const {}", LIST_AT - 1024 + 16),
            fields: String::new(),
            imports: String::new(),
            wit: String::new(),
            memory: memory(specs),
        }
    }

    /// The component of the module.
    #[track_caller]
    pub(crate) fn component(&self) -> Vec<u8> {
        let pages = (LIST_AT + self.memory.len()) / 65_536 + 1;
        let bytes: String = self.memory.iter().map(|byte| format!("\\{byte:02x}")).collect();
        let Self { list, call, realloc, fields, imports, wit, .. } = self;
        let text = format!(
            r#"(module
                {imports}
                (memory (export "memory") {pages})
                (data (i32.const {LIST_AT}) "{bytes}")
                (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) {realloc})
                (func (export "sallyport:plugin/tools@0.1.0#list-tools") (result i32) {list})
                (func (export "sallyport:plugin/tools@0.1.0#call-tool") (param i32) (result i32) {call})
                {fields})"#
        );
        let world = if wit.is_empty() { "sallyport:plugin/tool-plugin@0.1.0" } else { "w" };
        of_world(&text, wit, world)
    }
}

/// Instructions that never end.
pub(crate) const LOOP: &str = "(loop br 0) unreachable";

/// Makes a component of a core module. `wit` is a package of its own that may name those of the
/// repository; without one the world is the repository's.
#[track_caller]
pub(crate) fn of_world(text: &str, wit: &str, world: &str) -> Vec<u8> {
    let mut module = wat::parse_str(text).unwrap();
    let mut resolve = Resolve::default();
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../wit"));
    let own = wit.is_empty() || wit.contains("include sallyport:plugin");
    let repository = own.then(|| resolve.push_path(folder).unwrap().0);
    let package = match (repository, wit) {
        (Some(package), "") => package,
        (_, wit) => resolve.push_str("test.wit", wit).unwrap(),
    };
    let world = resolve.select_world(&[package], Some(world)).unwrap();
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    ComponentEncoder::default().module(&module).unwrap().validate(true).encode().unwrap()
}

/// The list, its records and their strings, in the layout of the canonical ABI.
fn memory(specs: &[Spec<'_>]) -> Vec<u8> {
    let records_at = LIST_AT + 8;
    let mut strings_at = records_at + specs.len() * SPEC_BYTES;
    let (mut records, mut strings) = (Vec::new(), Vec::new());
    for spec in specs {
        for (index, text) in [spec.name, spec.description, spec.parameters].iter().enumerate() {
            records.extend(word(strings_at));
            records.extend(word(text.len()));
            strings.extend(text.as_bytes());
            strings_at += text.len();
            if index == 0 {
                records.extend([0; OPTION_BYTES]);
            }
        }
        // No output schema, no hints, nothing extra.
        records.extend([0; SPEC_BYTES - OPTION_BYTES - 24]);
    }
    [word(records_at).to_vec(), word(specs.len()).to_vec(), records, strings].concat()
}

fn word(number: usize) -> [u8; 4] {
    u32::try_from(number).unwrap().to_le_bytes()
}
