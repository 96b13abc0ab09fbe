//! Checks of the names and types in a condition, made when the policy is read.
//!
//! The language has no declarations here, and the content of arguments is not known before a call.
//! So most types are open. But an unknown name, an unknown function, and a result that can never be
//! true or false are mistakes on every call, and such a condition would stop all calls or none.

use cel::{
    IdedExpr,
    common::ast::{
        CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, SelectExpr, operators,
    },
};

use super::{
    ConditionError,
    facts::GRANT_KEYS,
    patterns::{CompiledPatterns, MATCHES},
};
use crate::{
    question::CONTEXT_KEYS,
    source::{nearest_match, quoted},
};

/// Deepest nesting of `all`, `exists`, `map` and similar loops. Deeper ones would exceed the steps
/// of a decision for any list of useful length.
const LOOPS_MAX: usize = 4;

/// The variables of a condition.
const VARIABLES: [&str; 3] = ["args", "context", "grants"];

/// The parser's name for the result that a loop collects.
const LOOP_RESULT_VARIABLE: &str = "@result";

/// The names of types, for `type(args.x) == string`.
const TYPE_NAMES: [&str; 8] =
    ["bool", "int", "uint", "double", "string", "list", "map", "null_type"];

/// Whether a name is that of a type.
pub(crate) fn is_type_name(name: &str) -> bool {
    TYPE_NAMES.contains(&name)
}

/// The type of an expression, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExpressionKind {
    Bool,
    Number,
    Text,
    List,
    Map,
    Null,
    Type,
    /// Any type.
    Any,
}

/// The form of a function call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FunctionArity {
    /// `f(a, b)`
    Global(usize),
    /// `a.f(b)`
    Member(usize),
}

const FUNCTIONS: [(&str, FunctionArity, ExpressionKind); 14] = [
    ("size", FunctionArity::Global(1), ExpressionKind::Number),
    ("size", FunctionArity::Member(0), ExpressionKind::Number),
    ("contains", FunctionArity::Member(1), ExpressionKind::Bool),
    ("startsWith", FunctionArity::Member(1), ExpressionKind::Bool),
    ("endsWith", FunctionArity::Member(1), ExpressionKind::Bool),
    (MATCHES, FunctionArity::Member(1), ExpressionKind::Bool),
    (MATCHES, FunctionArity::Global(2), ExpressionKind::Bool),
    ("int", FunctionArity::Global(1), ExpressionKind::Number),
    ("uint", FunctionArity::Global(1), ExpressionKind::Number),
    ("double", FunctionArity::Global(1), ExpressionKind::Number),
    ("string", FunctionArity::Global(1), ExpressionKind::Text),
    ("bool", FunctionArity::Global(1), ExpressionKind::Bool),
    ("type", FunctionArity::Global(1), ExpressionKind::Type),
    ("dyn", FunctionArity::Global(1), ExpressionKind::Any),
];

/// The functions that the parser turns into loops, for the list of known functions.
const LOOPS: [&str; 6] = ["has", "all", "exists", "exists_one", "map", "filter"];

/// The names in scope at one place of a condition, and the patterns found so far.
struct ConditionScope<'e> {
    /// The variables of the enclosing loops, the innermost last.
    loop_variables: Vec<&'e str>,
    patterns: Vec<String>,
}

/// Checks a condition, and returns its regular expressions, compiled.
pub(super) fn check_types(expression: &IdedExpr) -> Result<CompiledPatterns, ConditionError> {
    let mut scope = ConditionScope { loop_variables: Vec::new(), patterns: Vec::new() };
    let kind = scope.expression_kind(expression)?;
    if !kind.can_be(ExpressionKind::Bool) {
        let flaw = format!("the condition is {}, not true or false", kind.display_text());
        return Err(flaw_with_hint(flaw, "compare it with something, as in size(args.to) > 5"));
    }
    CompiledPatterns::compile(scope.patterns)
}

fn flaw_with_hint(flaw: impl Into<String>, hint: impl Into<String>) -> ConditionError {
    ConditionError::Flaw { flaw: flaw.into(), hint: Some(hint.into()) }
}

/// A flaw without a hint.
fn flaw_without_hint(flaw: impl Into<String>) -> ConditionError {
    ConditionError::Flaw { flaw: flaw.into(), hint: None }
}

impl ExpressionKind {
    /// Whether a value of this kind can be of the other kind.
    fn can_be(self, other: Self) -> bool {
        self == other || self == Self::Any
    }

    fn display_text(self) -> &'static str {
        match self {
            Self::Bool => "true or false",
            Self::Number => "a number",
            Self::Text => "a text",
            Self::List => "a list",
            Self::Map => "a table",
            Self::Null => "null",
            Self::Type => "the name of a type",
            Self::Any => "of any type",
        }
    }
}

impl<'e> ConditionScope<'e> {
    fn expression_kind(
        &mut self,
        expression: &'e IdedExpr,
    ) -> Result<ExpressionKind, ConditionError> {
        match &expression.expr {
            Expr::Literal(literal) => literal_kind(literal),
            Expr::Ident(name) => self.name_kind(name),
            Expr::Select(select) => self.select_kind(select),
            Expr::Call(call) => self.call_kind(call),
            Expr::Comprehension(comprehension) => self.loop_kind(comprehension),
            Expr::List(list) => self.expression_kinds(&list.elements).map(|_| ExpressionKind::List),
            Expr::Map(map) => {
                for entry in &map.entries {
                    // The other kind of entry belongs to messages, which the evaluator does not
                    // support.
                    let EntryExpr::MapEntry(entry) = &entry.expr else {
                        return Err(flaw_without_hint("a table holds a field of a message"));
                    };
                    self.expression_kind(&entry.key)?;
                    self.expression_kind(&entry.value)?;
                }
                Ok(ExpressionKind::Map)
            }
            Expr::Struct(message) => {
                Err(flaw_without_hint(format!("there is no type {}", quoted(&message.type_name))))
            }
            // The evaluator does not support parts that the parser left out either.
            Expr::Unspecified => Err(flaw_without_hint("a part is missing")),
        }
    }

    fn expression_kinds(
        &mut self,
        expressions: &'e [IdedExpr],
    ) -> Result<Vec<ExpressionKind>, ConditionError> {
        expressions.iter().map(|expression| self.expression_kind(expression)).collect()
    }

    fn name_kind(&self, name: &str) -> Result<ExpressionKind, ConditionError> {
        match name {
            _ if name == LOOP_RESULT_VARIABLE || self.loop_variables.contains(&name) => {
                Ok(ExpressionKind::Any)
            }
            _ if VARIABLES.contains(&name) => Ok(ExpressionKind::Map),
            _ if is_type_name(name) => Ok(ExpressionKind::Type),
            _ => {
                let known = self.loop_variables.iter().copied().chain(VARIABLES);
                let hint = match nearest_match(name, known) {
                    Some(known) => format!("did you mean {known}?"),
                    None => format!("the variables are {}", VARIABLES.join(", ")),
                };
                Err(flaw_with_hint(format!("there is no variable {}", quoted(name)), hint))
            }
        }
    }

    fn select_kind(&mut self, select: &'e SelectExpr) -> Result<ExpressionKind, ConditionError> {
        let field = select.field.as_str();
        let kind = match self.known_fields(&select.operand) {
            Some((variable, fields, kind)) => {
                check_known_field(variable, field, fields)?;
                kind
            }
            None => {
                let operand = self.expression_kind(&select.operand)?;
                if !operand.can_be(ExpressionKind::Map) {
                    let words = operand.display_text();
                    let flaw = format!("{} is looked up in what is {words}", quoted(field));
                    return Err(flaw_with_hint(flaw, "only tables have fields"));
                }
                ExpressionKind::Any
            }
        };
        Ok(if select.test { ExpressionKind::Bool } else { kind })
    }

    /// The fields of a variable with a fixed set of fields, and their kind.
    fn known_fields(
        &self,
        operand: &'e IdedExpr,
    ) -> Option<(&'e str, &'static [&'static str], ExpressionKind)> {
        let Expr::Ident(name) = &operand.expr else { return None };
        match name.as_str() {
            name if self.loop_variables.contains(&name) => None,
            // Two of the texts may be missing, and are null then.
            "context" => Some((name, &CONTEXT_KEYS, ExpressionKind::Any)),
            "grants" => Some((name, &GRANT_KEYS, ExpressionKind::List)),
            _ => None,
        }
    }

    fn call_kind(&mut self, call: &'e CallExpr) -> Result<ExpressionKind, ConditionError> {
        // Before the arguments: in a misused loop, they contain names that are not defined.
        let function = if is_operator(&call.func_name) { None } else { Some(function_kind(call)?) };
        if let Some(target) = &call.target {
            self.expression_kind(target)?;
        }
        let kinds = self.expression_kinds(&call.args)?;
        if call.func_name == MATCHES {
            self.patterns.push(literal_pattern(call)?);
        }
        function.map_or_else(|| operator_kind(&call.func_name, &kinds), Ok)
    }

    fn loop_kind(
        &mut self,
        comprehension: &'e ComprehensionExpr,
    ) -> Result<ExpressionKind, ConditionError> {
        let range = self.expression_kind(&comprehension.iter_range)?;
        if !range.can_be(ExpressionKind::List) && !range.can_be(ExpressionKind::Map) {
            let flaw = format!("nothing can be looked for in what is {}", range.display_text());
            return Err(flaw_with_hint(flaw, "only lists and tables hold something"));
        }
        let start = self.expression_kind(&comprehension.accu_init)?;
        self.loop_variables.push(&comprehension.iter_var);
        if self.loop_variables.len() > LOOPS_MAX {
            let flaw = format!("more than {LOOPS_MAX} loops stand in each other");
            return Err(flaw_with_hint(flaw, "write several rules"));
        }
        self.expression_kind(&comprehension.loop_cond)?;
        self.expression_kind(&comprehension.loop_step)?;
        self.loop_variables.pop();
        // A loop that counts ends with a comparison.
        Ok(if start == ExpressionKind::List { ExpressionKind::List } else { ExpressionKind::Bool })
    }
}

fn literal_kind(literal: &LiteralValue) -> Result<ExpressionKind, ConditionError> {
    match literal {
        LiteralValue::Boolean(_) => Ok(ExpressionKind::Bool),
        LiteralValue::Double(_) | LiteralValue::Int(_) | LiteralValue::UInt(_) => {
            Ok(ExpressionKind::Number)
        }
        LiteralValue::String(_) => Ok(ExpressionKind::Text),
        LiteralValue::Null => Ok(ExpressionKind::Null),
        LiteralValue::Bytes(_) => Err(flaw_without_hint("there are no bytes here")),
    }
}

fn check_known_field(variable: &str, field: &str, fields: &[&str]) -> Result<(), ConditionError> {
    if fields.contains(&field) {
        return Ok(());
    }
    let hint = match nearest_match(field, fields.iter().copied()) {
        Some(known) => format!("did you mean {variable}.{known}?"),
        None => format!("{variable} has {}", fields.join(", ")),
    };
    Err(flaw_with_hint(format!("{variable} has no {}", quoted(field)), hint))
}

/// Whether a call is an operator: no function has such a name.
fn is_operator(name: &str) -> bool {
    name.contains(|sign: char| !sign.is_ascii_alphanumeric() && sign != '_')
}

/// The kind of an operator's result.
fn operator_kind(name: &str, kinds: &[ExpressionKind]) -> Result<ExpressionKind, ConditionError> {
    let same = |kinds: &[ExpressionKind]| match kinds {
        [a, b] if a == b => *a,
        _ => ExpressionKind::Any,
    };
    Ok(match name {
        operators::LOGICAL_AND | operators::LOGICAL_OR | operators::LOGICAL_NOT => {
            check_boolean_operands(kinds)?;
            ExpressionKind::Bool
        }
        operators::CONDITIONAL => {
            check_boolean_operands(&kinds[..1])?;
            same(&kinds[1..])
        }
        operators::EQUALS
        | operators::NOT_EQUALS
        | operators::LESS
        | operators::LESS_EQUALS
        | operators::GREATER
        | operators::GREATER_EQUALS
        | operators::IN
        | operators::NOT_STRICTLY_FALSE => ExpressionKind::Bool,
        operators::SUBSTRACT
        | operators::MULTIPLY
        | operators::DIVIDE
        | operators::MODULO
        | operators::NEGATE => ExpressionKind::Number,
        operators::ADD => same(kinds),
        _ => ExpressionKind::Any,
    })
}

fn function_kind(call: &CallExpr) -> Result<ExpressionKind, ConditionError> {
    let name = call.func_name.as_str();
    let form = match call.target {
        Some(_) => FunctionArity::Member(call.args.len()),
        None => FunctionArity::Global(call.args.len()),
    };
    let known = FUNCTIONS.iter().find(|(known, usual, _)| (*known, *usual) == (name, form));
    known.map(|(_, _, kind)| *kind).ok_or_else(|| unknown_function_error(name))
}

/// Checks the operands of `&&`, `||`, `!` and `?`.
fn check_boolean_operands(kinds: &[ExpressionKind]) -> Result<(), ConditionError> {
    match kinds.iter().find(|kind| !kind.can_be(ExpressionKind::Bool)) {
        None => Ok(()),
        Some(kind) => {
            let flaw = format!("{} stands where true or false has to", kind.display_text());
            Err(flaw_with_hint(flaw, "compare it with something, as in args.count > 5"))
        }
    }
}

fn unknown_function_error(name: &str) -> ConditionError {
    let functions = || FUNCTIONS.iter().map(|(known, _, _)| *known).chain(LOOPS);
    // The function exists, but was called with the wrong arguments.
    if functions().any(|known| known == name) {
        let flaw = format!("{} is not called like this", quoted(name));
        return ConditionError::Flaw { flaw, hint: Some(usage_hint(name)) };
    }
    let hint = match nearest_match(name, functions()) {
        Some(known) => format!("did you mean {known}?"),
        None => {
            let mut names: Vec<_> = functions().collect();
            names.dedup();
            format!("the functions are {}", names.join(", "))
        }
    };
    flaw_with_hint(format!("there is no function {}", quoted(name)), hint)
}

fn usage_hint(name: &str) -> String {
    match name {
        "has" => "write has(args.name)".to_owned(),
        "map" | "filter" => format!("write args.list.{name}(item, item.name)"),
        "all" | "exists" | "exists_one" => format!("write args.list.{name}(item, item > 5)"),
        "size" => "write size(args.list)".to_owned(),
        "contains" | "startsWith" | "endsWith" | MATCHES => {
            format!("write args.text.{name}('part')")
        }
        _ => format!("write {name}(args.value)"),
    }
}

fn literal_pattern(call: &CallExpr) -> Result<String, ConditionError> {
    match call.args.last().map(|pattern| &pattern.expr) {
        Some(Expr::Literal(LiteralValue::String(text))) => Ok(text.inner().to_owned()),
        _ => Err(flaw_with_hint("a pattern has to be written out", "write it in quotation marks")),
    }
}
