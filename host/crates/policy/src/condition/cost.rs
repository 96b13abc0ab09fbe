//! An upper bound on the work of a condition, computed before the condition is evaluated.
//!
//! A policy file may be untrusted and the arguments come from a model. Together they could occupy a
//! decision for hours, with nested loops over a long list, or exhaust the memory, with a string
//! that is doubled again and again. So the maximum number of steps, and the size of everything that
//! the condition builds, are summed up along its expression, using the weights of the actual
//! values.
//!
//! Each operation is assumed to touch all of its operands. A loop evaluates its step once for each
//! element. The elements together weigh no more than the list, and the work of a step grows at most
//! in proportion to its element. So the work of a loop is at most the work of its step for an empty
//! element, times the number of elements, plus the work of its step for all elements in one.

use cel::{
    IdedExpr,
    common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, operators},
};

use super::{
    facts::{ConditionVariables, text_weight},
    patterns::{CompiledPatterns, MATCHES},
};

/// The cost of an expression.
#[derive(Debug, Clone, Copy)]
struct EvaluationCost {
    /// Steps to evaluate it.
    steps: u64,
    /// The weight of its result.
    weight: u64,
    /// The number of elements of its result, if that is a list or a table.
    elements: u64,
}

/// The variable of an enclosing loop.
struct LoopVariable<'s> {
    name: &'s str,
    weight: u64,
    outer: Option<&'s LoopVariable<'s>>,
}

/// The weights of the names in scope.
#[derive(Clone, Copy)]
struct ScopeWeights<'s> {
    variables: &'s ConditionVariables<'s>,
    patterns: &'s CompiledPatterns,
    loop_variable: Option<&'s LoopVariable<'s>>,
}

/// Returns the maximum number of steps of a condition.
pub(super) fn max_evaluation_steps(
    expression: &IdedExpr,
    patterns: &CompiledPatterns,
    variables: &ConditionVariables<'_>,
) -> u64 {
    ScopeWeights { variables, patterns, loop_variable: None }.expression_cost(expression).steps
}

impl EvaluationCost {
    /// The cost of an existing value, which has no more elements than its weight.
    fn from_weight(weight: u64) -> Self {
        Self { steps: 1, weight, elements: weight }
    }

    /// The cost of an operation on several operands whose result has no elements.
    fn scalar_operation(operands: impl IntoIterator<Item = Self>) -> Self {
        let steps = operands.into_iter().flat_map(|operand| [operand.steps, operand.weight]);
        Self { steps: steps.fold(1, u64::saturating_add), weight: 1, elements: 0 }
    }

    /// The cost of an operation whose result contains all of its operands.
    fn combining_operation(operands: &[Self]) -> Self {
        let sum = |part: fn(&Self) -> u64| operands.iter().map(part).fold(0, u64::saturating_add);
        let operation = Self::scalar_operation(operands.iter().copied());
        Self { weight: sum(|operand| operand.weight), elements: sum(|o| o.elements), ..operation }
    }

    /// The cost of a list or table literal.
    fn collection_literal(operands: &[Self]) -> Self {
        let joined = Self::combining_operation(operands);
        Self { weight: joined.weight.saturating_add(1), elements: operands.len() as u64, ..joined }
    }
}

impl<'s> ScopeWeights<'s> {
    fn expression_cost(self, expression: &IdedExpr) -> EvaluationCost {
        match &expression.expr {
            Expr::Literal(LiteralValue::String(text)) => {
                EvaluationCost::from_weight(text_weight(text.inner()))
            }
            Expr::Literal(_) | Expr::Struct(_) | Expr::Unspecified => {
                EvaluationCost::from_weight(1)
            }
            Expr::Ident(name) => EvaluationCost::from_weight(self.name_weight(name)),
            Expr::Select(select) if self.is_args_variable(&select.operand) => {
                let (weight, elements) = self.variables.argument_weight(&select.field);
                EvaluationCost { steps: 2, weight, elements }
            }
            Expr::Select(select) => self.part_cost(&select.operand, None),
            Expr::Call(call) => self.call_cost(call),
            Expr::List(list) => {
                EvaluationCost::collection_literal(&self.expression_costs(&list.elements))
            }
            Expr::Map(map) => {
                let parts = map.entries.iter().flat_map(|entry| match &entry.expr {
                    EntryExpr::MapEntry(entry) => [Some(&entry.key), Some(&entry.value)],
                    EntryExpr::StructField(field) => [Some(&field.value), None],
                });
                EvaluationCost::collection_literal(&self.expression_costs(parts.flatten()))
            }
            Expr::Comprehension(comprehension) => self.comprehension_cost(comprehension),
        }
    }

    fn expression_costs<'e>(
        self,
        expressions: impl IntoIterator<Item = &'e IdedExpr>,
    ) -> Vec<EvaluationCost> {
        expressions.into_iter().map(|expression| self.expression_cost(expression)).collect()
    }

    fn name_weight(self, name: &str) -> u64 {
        self.loop_variable_weight(name).unwrap_or_else(|| self.variables.variable_weight(name))
    }

    fn loop_variable_weight(self, name: &str) -> Option<u64> {
        let mut loops = std::iter::successors(self.loop_variable, |bound| bound.outer);
        loops.find(|bound| bound.name == name).map(|bound| bound.weight)
    }

    fn is_args_variable(self, expression: &IdedExpr) -> bool {
        let is_args = |name: &str| name == "args" && self.loop_variable_weight(name).is_none();
        matches!(&expression.expr, Expr::Ident(name) if is_args(name))
    }

    /// The cost of a part of a value. A part of a variable is borrowed; of a temporary value, the
    /// rest is dropped.
    fn part_cost(self, of: &IdedExpr, index: Option<&IdedExpr>) -> EvaluationCost {
        let index =
            EvaluationCost::scalar_operation(index.map(|index| self.expression_cost(index)));
        let whole = self.expression_cost(of);
        let dropped = if is_variable_path(of) { 0 } else { whole.weight };
        let steps = [whole.steps, index.steps, dropped].into_iter().fold(0, u64::saturating_add);
        EvaluationCost { steps, ..EvaluationCost::from_weight(whole.weight) }
    }

    fn call_cost(self, call: &CallExpr) -> EvaluationCost {
        if let (operators::INDEX, [of, index]) = (call.func_name.as_str(), call.args.as_slice()) {
            return self.part_cost(of, Some(index));
        }
        let operands = self.expression_costs(call.target.as_deref().into_iter().chain(&call.args));
        match (call.func_name.as_str(), operands.as_slice()) {
            (MATCHES, [text, _]) => {
                let pattern = call.args.last().map_or(0, |pattern| self.pattern_steps(pattern));
                let matching = text.weight.saturating_mul(pattern);
                let operation = EvaluationCost::scalar_operation(operands.iter().copied());
                EvaluationCost { steps: operation.steps.saturating_add(matching), ..operation }
            }
            (operators::CONDITIONAL, [condition, either @ ..]) => {
                let joined = EvaluationCost::combining_operation(either);
                EvaluationCost { steps: joined.steps.saturating_add(condition.steps), ..joined }
            }
            (operators::ADD | "string" | "dyn", _) => {
                EvaluationCost::combining_operation(&operands)
            }
            _ => EvaluationCost::scalar_operation(operands),
        }
    }

    fn pattern_steps(self, pattern: &IdedExpr) -> u64 {
        if let Expr::Literal(LiteralValue::String(text)) = &pattern.expr {
            return self.patterns.match_steps(text.inner());
        }
        0
    }

    fn comprehension_cost(self, comprehension: &ComprehensionExpr) -> EvaluationCost {
        let range = self.expression_cost(&comprehension.iter_range);
        let step = |weight| {
            let name = comprehension.iter_var.as_str();
            let bound = LoopVariable { name, weight, outer: self.loop_variable };
            let inside = ScopeWeights { loop_variable: Some(&bound), ..self };
            inside.expression_cost(&comprehension.loop_step)
        };
        let (empty, whole) = (step(0), step(range.weight));
        let times = |each: u64, all: u64| range.elements.saturating_mul(each).saturating_add(all);
        // The evaluator copies each element, and checks the loop's condition for it.
        let own = range.weight.saturating_add(range.elements.saturating_mul(4));
        let inside = times(empty.steps, whole.steps);
        let steps = [range.steps, own, inside].into_iter().fold(1, u64::saturating_add);
        if !matches!(comprehension.accu_init.expr, Expr::List(_)) {
            return EvaluationCost { steps, weight: 1, elements: 0 };
        }
        let weight = times(empty.weight, whole.weight).saturating_add(1);
        EvaluationCost { steps, weight, elements: range.elements }
    }
}

/// Whether an expression names a variable or a part of one.
fn is_variable_path(expression: &IdedExpr) -> bool {
    let expression = &expression.expr;
    if let Expr::Select(select) = expression {
        return is_variable_path(&select.operand);
    }
    let indexed = |call: &CallExpr| {
        call.func_name == operators::INDEX && call.args.first().is_some_and(is_variable_path)
    };
    matches!(expression, Expr::Ident(_)) || matches!(expression, Expr::Call(call) if indexed(call))
}
