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
    patterns::{MATCHES, Patterns},
};
use crate::{
    question::CONTEXT_KEYS,
    source::{nearest, quoted},
};

/// Deepest nesting of `all`, `exists`, `map` and similar loops. Deeper ones would exceed the steps
/// of a decision for any list of useful length.
const LOOPS_MAX: usize = 4;

/// The variables of a condition.
const VARIABLES: [&str; 3] = ["args", "context", "grants"];

/// The parser's name for the result that a loop collects.
const COLLECTED: &str = "@result";

/// The names of types, for `type(args.x) == string`.
const TYPE_NAMES: [&str; 8] =
    ["bool", "int", "uint", "double", "string", "list", "map", "null_type"];

/// The type of an expression, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Bool,
    Number,
    Text,
    List,
    Map,
    Null,
    Type,
    /// Any type.
    Open,
}

/// The form of a function call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// `f(a, b)`
    Global(usize),
    /// `a.f(b)`
    Member(usize),
}

const FUNCTIONS: [(&str, Form, Kind); 14] = [
    ("size", Form::Global(1), Kind::Number),
    ("size", Form::Member(0), Kind::Number),
    ("contains", Form::Member(1), Kind::Bool),
    ("startsWith", Form::Member(1), Kind::Bool),
    ("endsWith", Form::Member(1), Kind::Bool),
    (MATCHES, Form::Member(1), Kind::Bool),
    (MATCHES, Form::Global(2), Kind::Bool),
    ("int", Form::Global(1), Kind::Number),
    ("uint", Form::Global(1), Kind::Number),
    ("double", Form::Global(1), Kind::Number),
    ("string", Form::Global(1), Kind::Text),
    ("bool", Form::Global(1), Kind::Bool),
    ("type", Form::Global(1), Kind::Type),
    ("dyn", Form::Global(1), Kind::Open),
];

/// The functions that the parser turns into loops, for the list of known functions.
const LOOPS: [&str; 6] = ["has", "all", "exists", "exists_one", "map", "filter"];

/// The names in scope at one place of a condition, and the patterns found so far.
struct Scope<'e> {
    /// The variables of the enclosing loops, the innermost last.
    bound: Vec<&'e str>,
    patterns: Vec<String>,
}

/// Checks a condition, and returns its regular expressions, compiled.
pub(super) fn check(expression: &IdedExpr) -> Result<Patterns, ConditionError> {
    let mut scope = Scope { bound: Vec::new(), patterns: Vec::new() };
    let kind = scope.kind(expression)?;
    if !kind.may_be(Kind::Bool) {
        let flaw = format!("the condition is {}, not true or false", kind.words());
        return Err(flawed(flaw, "compare it with something, as in size(args.to) > 5"));
    }
    Patterns::compile(scope.patterns)
}

fn flawed(flaw: impl Into<String>, hint: impl Into<String>) -> ConditionError {
    ConditionError::Flaw { flaw: flaw.into(), hint: Some(hint.into()) }
}

/// A flaw without a hint.
fn plain(flaw: impl Into<String>) -> ConditionError {
    ConditionError::Flaw { flaw: flaw.into(), hint: None }
}

impl Kind {
    /// Whether a value of this kind can be of the other kind.
    fn may_be(self, other: Self) -> bool {
        self == other || self == Self::Open
    }

    fn words(self) -> &'static str {
        match self {
            Self::Bool => "true or false",
            Self::Number => "a number",
            Self::Text => "a text",
            Self::List => "a list",
            Self::Map => "a table",
            Self::Null => "null",
            Self::Type => "the name of a type",
            Self::Open => "of any type",
        }
    }
}

impl<'e> Scope<'e> {
    fn kind(&mut self, expression: &'e IdedExpr) -> Result<Kind, ConditionError> {
        match &expression.expr {
            Expr::Literal(literal) => literal_kind(literal),
            Expr::Ident(name) => self.name_kind(name),
            Expr::Select(select) => self.select_kind(select),
            Expr::Call(call) => self.call_kind(call),
            Expr::Comprehension(comprehension) => self.loop_kind(comprehension),
            Expr::List(list) => self.all(&list.elements).map(|_| Kind::List),
            Expr::Map(map) => {
                for entry in &map.entries {
                    // The other kind of entry belongs to messages, which the evaluator does not
                    // support.
                    let EntryExpr::MapEntry(entry) = &entry.expr else {
                        return Err(plain("a table holds a field of a message"));
                    };
                    self.kind(&entry.key)?;
                    self.kind(&entry.value)?;
                }
                Ok(Kind::Map)
            }
            Expr::Struct(message) => {
                Err(plain(format!("there is no type {}", quoted(&message.type_name))))
            }
            // The evaluator does not support parts that the parser left out either.
            Expr::Unspecified => Err(plain("a part is missing")),
        }
    }

    fn all(&mut self, expressions: &'e [IdedExpr]) -> Result<Vec<Kind>, ConditionError> {
        expressions.iter().map(|expression| self.kind(expression)).collect()
    }

    fn name_kind(&self, name: &str) -> Result<Kind, ConditionError> {
        match name {
            _ if name == COLLECTED || self.bound.contains(&name) => Ok(Kind::Open),
            _ if VARIABLES.contains(&name) => Ok(Kind::Map),
            _ if TYPE_NAMES.contains(&name) => Ok(Kind::Type),
            _ => {
                let known = self.bound.iter().copied().chain(VARIABLES);
                let hint = match nearest(name, known) {
                    Some(known) => format!("did you mean {known}?"),
                    None => format!("the variables are {}", VARIABLES.join(", ")),
                };
                Err(flawed(format!("there is no variable {}", quoted(name)), hint))
            }
        }
    }

    fn select_kind(&mut self, select: &'e SelectExpr) -> Result<Kind, ConditionError> {
        let field = select.field.as_str();
        let kind = match self.known_fields(&select.operand) {
            Some((variable, fields, kind)) => {
                known_field(variable, field, fields)?;
                kind
            }
            None => {
                let operand = self.kind(&select.operand)?;
                if !operand.may_be(Kind::Map) {
                    let words = operand.words();
                    let flaw = format!("{} is looked up in what is {words}", quoted(field));
                    return Err(flawed(flaw, "only tables have fields"));
                }
                Kind::Open
            }
        };
        Ok(if select.test { Kind::Bool } else { kind })
    }

    /// The fields of a variable with a fixed set of fields, and their kind.
    fn known_fields(
        &self,
        operand: &'e IdedExpr,
    ) -> Option<(&'e str, &'static [&'static str], Kind)> {
        let Expr::Ident(name) = &operand.expr else { return None };
        match name.as_str() {
            name if self.bound.contains(&name) => None,
            // Two of the texts may be missing, and are null then.
            "context" => Some((name, &CONTEXT_KEYS, Kind::Open)),
            "grants" => Some((name, &GRANT_KEYS, Kind::List)),
            _ => None,
        }
    }

    fn call_kind(&mut self, call: &'e CallExpr) -> Result<Kind, ConditionError> {
        // Before the arguments: in a misused loop, they contain names that are not defined.
        let function = if is_operator(&call.func_name) { None } else { Some(function_kind(call)?) };
        if let Some(target) = &call.target {
            self.kind(target)?;
        }
        let kinds = self.all(&call.args)?;
        if call.func_name == MATCHES {
            self.patterns.push(pattern_of(call)?);
        }
        function.map_or_else(|| operator_kind(&call.func_name, &kinds), Ok)
    }

    fn loop_kind(&mut self, comprehension: &'e ComprehensionExpr) -> Result<Kind, ConditionError> {
        let range = self.kind(&comprehension.iter_range)?;
        if !range.may_be(Kind::List) && !range.may_be(Kind::Map) {
            let flaw = format!("nothing can be looked for in what is {}", range.words());
            return Err(flawed(flaw, "only lists and tables hold something"));
        }
        let start = self.kind(&comprehension.accu_init)?;
        self.bound.push(&comprehension.iter_var);
        if self.bound.len() > LOOPS_MAX {
            let flaw = format!("more than {LOOPS_MAX} loops stand in each other");
            return Err(flawed(flaw, "write several rules"));
        }
        self.kind(&comprehension.loop_cond)?;
        self.kind(&comprehension.loop_step)?;
        self.bound.pop();
        // A loop that counts ends with a comparison.
        Ok(if start == Kind::List { Kind::List } else { Kind::Bool })
    }
}

fn literal_kind(literal: &LiteralValue) -> Result<Kind, ConditionError> {
    match literal {
        LiteralValue::Boolean(_) => Ok(Kind::Bool),
        LiteralValue::Double(_) | LiteralValue::Int(_) | LiteralValue::UInt(_) => Ok(Kind::Number),
        LiteralValue::String(_) => Ok(Kind::Text),
        LiteralValue::Null => Ok(Kind::Null),
        LiteralValue::Bytes(_) => Err(plain("there are no bytes here")),
    }
}

fn known_field(variable: &str, field: &str, fields: &[&str]) -> Result<(), ConditionError> {
    if fields.contains(&field) {
        return Ok(());
    }
    let hint = match nearest(field, fields.iter().copied()) {
        Some(known) => format!("did you mean {variable}.{known}?"),
        None => format!("{variable} has {}", fields.join(", ")),
    };
    Err(flawed(format!("{variable} has no {}", quoted(field)), hint))
}

/// Whether a call is an operator: no function has such a name.
fn is_operator(name: &str) -> bool {
    name.contains(|sign: char| !sign.is_ascii_alphanumeric() && sign != '_')
}

/// The kind of an operator's result.
fn operator_kind(name: &str, kinds: &[Kind]) -> Result<Kind, ConditionError> {
    let same = |kinds: &[Kind]| match kinds {
        [a, b] if a == b => *a,
        _ => Kind::Open,
    };
    Ok(match name {
        operators::LOGICAL_AND | operators::LOGICAL_OR | operators::LOGICAL_NOT => {
            truths(kinds)?;
            Kind::Bool
        }
        operators::CONDITIONAL => {
            truths(&kinds[..1])?;
            same(&kinds[1..])
        }
        operators::EQUALS
        | operators::NOT_EQUALS
        | operators::LESS
        | operators::LESS_EQUALS
        | operators::GREATER
        | operators::GREATER_EQUALS
        | operators::IN
        | operators::NOT_STRICTLY_FALSE => Kind::Bool,
        operators::SUBSTRACT
        | operators::MULTIPLY
        | operators::DIVIDE
        | operators::MODULO
        | operators::NEGATE => Kind::Number,
        operators::ADD => same(kinds),
        _ => Kind::Open,
    })
}

fn function_kind(call: &CallExpr) -> Result<Kind, ConditionError> {
    let name = call.func_name.as_str();
    let form = match call.target {
        Some(_) => Form::Member(call.args.len()),
        None => Form::Global(call.args.len()),
    };
    let known = FUNCTIONS.iter().find(|(known, usual, _)| (*known, *usual) == (name, form));
    known.map(|(_, _, kind)| *kind).ok_or_else(|| no_function(name))
}

/// Checks the operands of `&&`, `||`, `!` and `?`.
fn truths(kinds: &[Kind]) -> Result<(), ConditionError> {
    match kinds.iter().find(|kind| !kind.may_be(Kind::Bool)) {
        None => Ok(()),
        Some(kind) => {
            let flaw = format!("{} stands where true or false has to", kind.words());
            Err(flawed(flaw, "compare it with something, as in args.count > 5"))
        }
    }
}

fn no_function(name: &str) -> ConditionError {
    let functions = || FUNCTIONS.iter().map(|(known, _, _)| *known).chain(LOOPS);
    // The function exists, but was called with the wrong arguments.
    if functions().any(|known| known == name) {
        let flaw = format!("{} is not called like this", quoted(name));
        return ConditionError::Flaw { flaw, hint: Some(usage(name)) };
    }
    let hint = match nearest(name, functions()) {
        Some(known) => format!("did you mean {known}?"),
        None => {
            let mut names: Vec<_> = functions().collect();
            names.dedup();
            format!("the functions are {}", names.join(", "))
        }
    };
    flawed(format!("there is no function {}", quoted(name)), hint)
}

fn usage(name: &str) -> String {
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

fn pattern_of(call: &CallExpr) -> Result<String, ConditionError> {
    match call.args.last().map(|pattern| &pattern.expr) {
        Some(Expr::Literal(LiteralValue::String(text))) => Ok(text.inner().to_owned()),
        _ => Err(flawed("a pattern has to be written out", "write it in quotation marks")),
    }
}
