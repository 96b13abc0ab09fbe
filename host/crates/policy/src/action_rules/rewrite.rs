//! Puts the meaning of an author's names into a parsed condition.
//!
//! `total_recipients > 50` becomes what `size(args.recipients.to) > 50` is, with a test whether the
//! list is there. What remains is an ordinary condition, so the types, the cost and the evaluation
//! are those of every other condition.

use cel::{
    IdedExpr,
    common::ast::{CallExpr, EntryExpr, Expr, LiteralValue, SelectExpr, operators},
    common::types::CelInt,
};

use super::names::{ArgumentNames, ArgumentPath, NameMeaning, NameMeaningError};
use crate::condition::is_type_name;

/// The names that conditions have anyway.
const GIVEN_NAMES: [&str; 3] = ["args", "context", "grants"];

/// Replaces the names in an expression. `bound` are the variables of the loops around it.
pub(crate) fn replace_names(
    expression: &mut IdedExpr,
    names: &ArgumentNames,
    bound: &[String],
) -> Result<(), NameMeaningError> {
    let replace = |inner: &mut IdedExpr| replace_names(inner, names, bound);
    match &mut expression.expr {
        Expr::Ident(name) => {
            if let Some(replacement) = replacement(name, names, bound)? {
                *expression = replacement;
            }
            Ok(())
        }
        Expr::Select(select) => replace(&mut select.operand),
        Expr::Call(call) => {
            call.target.iter_mut().try_for_each(|target| replace(target))?;
            call.args.iter_mut().try_for_each(replace)
        }
        Expr::List(list) => list.elements.iter_mut().try_for_each(replace),
        Expr::Map(map) => map.entries.iter_mut().try_for_each(|entry| match &mut entry.expr {
            EntryExpr::MapEntry(entry) => {
                replace(&mut entry.key)?;
                replace(&mut entry.value)
            }
            EntryExpr::StructField(field) => replace(&mut field.value),
        }),
        Expr::Comprehension(inner) => {
            replace(&mut inner.iter_range)?;
            replace(&mut inner.accu_init)?;
            let own = [inner.iter_var.clone(), inner.accu_var.clone()];
            let bound = [bound, &own, inner.iter_var2.as_slice()].concat();
            let parts = [&mut inner.loop_cond, &mut inner.loop_step, &mut inner.result];
            parts.into_iter().try_for_each(|part| replace_names(part, names, &bound))
        }
        Expr::Literal(_) | Expr::Struct(_) | Expr::Unspecified => Ok(()),
    }
}

fn replacement(
    name: &str,
    names: &ArgumentNames,
    bound: &[String],
) -> Result<Option<IdedExpr>, NameMeaningError> {
    let is_type = is_type_name(name);
    if GIVEN_NAMES.contains(&name) || is_type || bound.iter().any(|own| own == name) {
        return Ok(None);
    }
    Ok(Some(match names.meaning(name)? {
        NameMeaning::Argument(path) => select_path(&path, false),
        NameMeaning::Count(lists) => {
            let sizes = lists.iter().map(size_or_zero);
            let sum = sizes.reduce(|a, b| call(operators::ADD, [a, b]));
            sum.unwrap_or_else(zero)
        }
    }))
}

/// `has(args.a) && has(args.a.b) ? size(args.a.b) : 0`
fn size_or_zero(path: &ArgumentPath) -> IdedExpr {
    let tests = (1..=path.len()).map(|length| select_path(&path[..length], true));
    let is_there = tests.reduce(|a, b| call(operators::LOGICAL_AND, [a, b]));
    let size = call("size", [select_path(path, false)]);
    match is_there {
        Some(is_there) => call(operators::CONDITIONAL, [is_there, size, zero()]),
        None => size,
    }
}

/// `args.a.b`, or the test whether it is there.
fn select_path(path: &[String], test: bool) -> IdedExpr {
    let root = expression(Expr::Ident("args".to_owned()));
    let last = path.len().saturating_sub(1);
    path.iter().enumerate().fold(root, |operand, (index, field)| {
        let test = test && index == last;
        let select = SelectExpr { operand: Box::new(operand), field: field.clone(), test };
        expression(Expr::Select(select))
    })
}

fn call<const N: usize>(name: &str, args: [IdedExpr; N]) -> IdedExpr {
    let call = CallExpr { func_name: name.to_owned(), target: None, args: args.into() };
    expression(Expr::Call(call))
}

fn zero() -> IdedExpr {
    expression(Expr::Literal(LiteralValue::Int(CelInt::from(0))))
}

/// The identity of an expression only leads to its place in the text, which these do not have.
fn expression(expr: Expr) -> IdedExpr {
    IdedExpr { id: 0, expr }
}
