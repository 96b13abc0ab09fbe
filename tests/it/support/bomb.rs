//! Components that are small to write down and dear to compile, or to understand. Each exports what
//! a plugin does, by its name, because what does not is refused before it is compiled.

/// The name of what a plugin with tools exports.
const TOOLS: &str = "sallyport:plugin/tools@0.1.0";

/// One that holds its processor for many seconds: each branch meets all that the former left
/// behind.
pub(crate) fn if_chain(length: usize) -> Vec<u8> {
    let one = "local.get 0 (if (then local.get 0 i32.const 1 i32.add local.set 0)) ";
    function(&format!("{} local.get 0", one.repeat(length)))
}

/// One that takes a block into a block, and so on.
pub(crate) fn nested_ifs(depth: usize) -> Vec<u8> {
    let (begin, end) = ("local.get 0 if ".repeat(depth), "end ".repeat(depth));
    function(&format!("{begin}{end} local.get 0"))
}

/// One whose every number depends on the last.
pub(crate) fn multiplications(length: usize) -> Vec<u8> {
    function(&format!("local.get 0 {}", "local.get 0 i32.mul ".repeat(length)))
}

/// One that does nothing, in many functions. It fills the memory.
pub(crate) fn functions(count: usize) -> Vec<u8> {
    module(&"(func (result i32) i32.const 1)".repeat(count))
}

/// One with so much data in one piece.
pub(crate) fn data(bytes: usize) -> Vec<u8> {
    module(&format!("(memory 1000) (data (i32.const 0) \"{}\")", "a".repeat(bytes)))
}

/// One with many pieces of data.
pub(crate) fn segments(count: usize) -> Vec<u8> {
    module(&format!("(memory 1) {}", "(data (i32.const 0) \"a\")".repeat(count)))
}

/// One with a long table.
pub(crate) fn elements(count: usize) -> Vec<u8> {
    let names = "$f ".repeat(count);
    module(&format!("(table {count} funcref) (func $f) (elem (i32.const 0) func {names})"))
}

/// One that wants very many functions.
pub(crate) fn imports(count: usize) -> Vec<u8> {
    let imports = (0..count).map(|n| format!("(import \"i{n}\" (func))"));
    component(&imports.collect::<String>())
}

/// One whose module offers very many functions.
pub(crate) fn exports(count: usize) -> Vec<u8> {
    let exports = (0..count).map(|n| format!("(export \"f{n}\" (func $f))"));
    module(&format!("(func $f) {}", exports.collect::<String>()))
}

/// One of many modules.
pub(crate) fn modules(count: usize) -> Vec<u8> {
    component(&"(core module)".repeat(count))
}

/// One whose types double in size with every line.
pub(crate) fn doubling_types(count: usize) -> Vec<u8> {
    types(count, |last| format!("(tuple {last} {last})"))
}

/// One whose types hold one another.
pub(crate) fn nested_lists(depth: usize) -> Vec<u8> {
    types(depth, |last| format!("(list {last})"))
}

/// A component in a component, and so on. No text can say this: its own parser would refuse.
pub(crate) fn nested_components(depth: usize) -> Vec<u8> {
    const PREAMBLE: &[u8] = b"\0asm\x0d\0\x01\0";
    const COMPONENT_SECTION: u8 = 4;
    // Built from the innermost outwards, back to front.
    let mut reversed: Vec<u8> = PREAMBLE.iter().rev().copied().collect();
    for _ in 0..depth {
        let length = leb128(reversed.len());
        reversed.extend(length.iter().rev());
        reversed.push(COMPONENT_SECTION);
        reversed.extend(PREAMBLE.iter().rev());
    }
    reversed.reverse();
    exporting(reversed)
}

/// A type of an instance in a type of an instance, and so on.
pub(crate) fn nested_instance_types(depth: usize) -> Vec<u8> {
    const INSTANCE_OF_ONE_TYPE: &[u8] = &[0x42, 0x01, 0x01];
    const BOOL: u8 = 0x7f;
    const TYPE_SECTION: u8 = 7;
    let mut ty = INSTANCE_OF_ONE_TYPE.repeat(depth);
    ty.push(BOOL);
    let mut bytes = b"\0asm\x0d\0\x01\0".to_vec();
    bytes.push(TYPE_SECTION);
    bytes.extend(leb128(ty.len() + 1));
    bytes.push(1);
    bytes.extend(ty);
    exporting(bytes)
}

/// The same component with the export of a plugin, which holds nothing.
fn exporting(mut component: Vec<u8>) -> Vec<u8> {
    const INSTANCE_SECTION: u8 = 5;
    const EXPORT_SECTION: u8 = 11;
    component.extend([INSTANCE_SECTION, 3, 1, 1, 0]);
    let mut export = vec![1, 0, u8::try_from(TOOLS.len()).unwrap()];
    export.extend(TOOLS.as_bytes());
    export.extend([5, 0, 0]);
    component.push(EXPORT_SECTION);
    component.extend(leb128(export.len()));
    component.extend(export);
    component
}

fn leb128(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

fn types(count: usize, next: impl Fn(&str) -> String) -> Vec<u8> {
    let mut fields = "(type $t0 (list u8))".to_owned();
    for n in 1..count {
        fields += &format!("(type $t{n} {})", next(&format!("$t{}", n - 1)));
    }
    component(&fields)
}

fn function(body: &str) -> Vec<u8> {
    module(&format!("(func (export \"f\") (param i32) (result i32) {body})"))
}

fn module(fields: &str) -> Vec<u8> {
    component(&format!("(core module {fields})"))
}

fn component(fields: &str) -> Vec<u8> {
    exporting(wat::parse_str(format!("(component {fields})")).unwrap())
}
