//! Puts the meaning of an author's names into a parsed condition.
//!
//! `total_recipients > 50` compares a number among the arguments, which is counted before the
//! condition is evaluated. What remains is an ordinary condition, so the types, the cost and the
//! evaluation are those of every other condition.

use cel::{
    IdedExpr,
    common::ast::{CallExpr, EntryExpr, Expr, SelectExpr},
};

use super::type_check::is_type_name;
use crate::argument_names::{ArgumentNames, NameMeaning, NameMeaningError, count_key};

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
        NameMeaning::Argument(path) => select_path(&path),
        NameMeaning::Count(path) => call("int", [select_path(&[count_key(&path)])]),
    }))
}

/// `args.a.b`
fn select_path(path: &[String]) -> IdedExpr {
    let root = expression(Expr::Ident("args".to_owned()));
    path.iter().fold(root, |operand, field| {
        let select = SelectExpr { operand: Box::new(operand), field: field.clone(), test: false };
        expression(Expr::Select(select))
    })
}

fn call<const N: usize>(name: &str, args: [IdedExpr; N]) -> IdedExpr {
    let call = CallExpr { func_name: name.to_owned(), target: None, args: args.into() };
    expression(Expr::Call(call))
}

/// The identity of an expression only leads to its place in the text, which these do not have.
fn expression(expr: Expr) -> IdedExpr {
    IdedExpr { id: 0, expr }
}
