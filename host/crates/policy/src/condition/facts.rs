//! The facts that conditions see: the variables `args`, `context` and `grants`.
//!
//! They are converted for the evaluator once for all conditions of a decision, and not at all if no
//! rule has a condition. Strings are borrowed, so large arguments are not copied.

use std::{
    cell::{Cell, OnceCell},
    collections::{BTreeSet, HashMap},
    sync::{Arc, LazyLock},
};

use cel::{
    Env,
    common::{
        types::{
            CelBool, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull, CelString, CelUInt,
        },
        value::{CowVal, Val},
    },
    context::VariableResolver,
};
use serde_json::{Number, Value};

use super::EvaluationError;
use crate::{
    capability::Capability,
    grant::Grant,
    question::{CONTEXT_KEYS, CallFacts},
};

/// Most steps that the conditions of one decision may take together: about half a second on a slow
/// machine, and hundreds of times more than a condition over a long list needs.
const WORK_STEPS_MAX: u64 = 4 << 20;

/// Deepest arguments that are examined, the same as the parser of calls accepts.
const DEPTH_MAX: usize = 128;

/// Bytes of text that weigh as much as one value.
const TEXT_BYTES_PER_STEP: usize = 64;

/// The names of the keys of `grants`.
pub(super) const GRANT_KEYS: [&str; 5] = ["net", "fs", "env", "secrets", "capabilities"];

type BoxedValue<'v> = Box<dyn Val + 'v>;

/// The facts of one decision, and the steps that its conditions may still take.
pub(crate) struct ConditionFacts<'a> {
    call_facts: CallFacts<'a>,
    grant: &'a Grant,
    variables: OnceCell<ConditionVariables<'a>>,
    work_left: Cell<u64>,
}

/// The variables in the evaluator's form.
pub(super) struct ConditionVariables<'a> {
    args: BoxedValue<'a>,
    context: BoxedValue<'a>,
    grants: BoxedValue<'a>,
    weights: VariableWeights<'a>,
}

/// The weights of the variables.
struct VariableWeights<'a> {
    args: u64,
    /// The weight of each argument, and its number of elements.
    per_argument: HashMap<&'a str, (u64, u64)>,
    context: u64,
    grants: u64,
}

impl<'a> ConditionFacts<'a> {
    pub(crate) fn new(call_facts: CallFacts<'a>, grant: &'a Grant) -> Self {
        let work_left = Cell::new(WORK_STEPS_MAX);
        Self { call_facts, grant, variables: OnceCell::new(), work_left }
    }

    pub(crate) fn call_facts(&self) -> &CallFacts<'a> {
        &self.call_facts
    }

    pub(super) fn variables(&self) -> Result<&ConditionVariables<'a>, EvaluationError> {
        if let Some(variables) = self.variables.get() {
            return Ok(variables);
        }
        if value_weight(self.call_facts.arguments, 0) > WORK_STEPS_MAX {
            return Err(EvaluationError::TooMuchWork);
        }
        Ok(self.variables.get_or_init(|| ConditionVariables::new(&self.call_facts, self.grant)))
    }

    /// Subtracts steps from the remaining ones.
    pub(super) fn spend_steps(&self, steps: u64) -> Result<(), EvaluationError> {
        let left = self.work_left.get().checked_sub(steps).ok_or(EvaluationError::TooMuchWork)?;
        self.work_left.set(left);
        Ok(())
    }
}

impl<'a> ConditionVariables<'a> {
    fn new(call: &CallFacts<'a>, grant: &'a Grant) -> Self {
        let context = CONTEXT_KEYS.map(|key| (key, call.context_text(key)));
        let texts = context.iter().filter_map(|(_, text)| *text);
        let weight_of_context = texts.map(text_weight).sum::<u64>() + 2 * CONTEXT_KEYS.len() as u64;
        let (grants, weight_of_grants) = cel_grants(grant);
        Self {
            args: to_cel_value(call.arguments),
            context: cel_map(
                context.map(|(key, text)| (key, text.map_or_else(cel_null, cel_borrowed_text))),
            ),
            grants,
            weights: VariableWeights {
                args: value_weight(call.arguments, 0),
                per_argument: field_weights(call.arguments),
                context: weight_of_context,
                grants: weight_of_grants,
            },
        }
    }

    /// The weight of a variable.
    pub(super) fn variable_weight(&self, name: &str) -> u64 {
        match name {
            "args" => self.weights.args,
            "context" => self.weights.context,
            "grants" => self.weights.grants,
            _ => 0,
        }
    }

    /// The weight of one argument, and its number of elements.
    pub(super) fn argument_weight(&self, name: &str) -> (u64, u64) {
        self.weights.per_argument.get(name).copied().unwrap_or((1, 0))
    }
}

impl VariableResolver for ConditionVariables<'_> {
    fn resolve<'b>(&'b self, variable: &str) -> Option<CowVal<'b, 'b>> {
        match variable {
            "args" => Some(CowVal::Borrowed(&*self.args)),
            "context" => Some(CowVal::Borrowed(&*self.context)),
            "grants" => Some(CowVal::Borrowed(&*self.grants)),
            _ => None,
        }
    }
}

/// The environment of all conditions, with the standard functions.
pub(super) fn condition_environment() -> Arc<Env> {
    static CEL_ENVIRONMENT: LazyLock<Arc<Env>> =
        LazyLock::new(|| Arc::new(Env::default().with_optional_support(false).with_stdlib()));
    Arc::clone(&CEL_ENVIRONMENT)
}

/// The weight of a value: one for itself, plus the weights of its elements; a string weighs by its
/// length.
fn value_weight(value: &Value, depth: usize) -> u64 {
    if depth > DEPTH_MAX {
        return u64::MAX;
    }
    let inner = |value| value_weight(value, depth + 1);
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
        Value::String(text) => text_weight(text),
        Value::Array(items) => items.iter().map(inner).fold(1, u64::saturating_add),
        Value::Object(fields) => {
            let pairs =
                fields.iter().map(|(key, value)| text_weight(key).saturating_add(inner(value)));
            pairs.fold(1, u64::saturating_add)
        }
    }
}

fn field_weights(arguments: &Value) -> HashMap<&str, (u64, u64)> {
    let fields = arguments.as_object().into_iter().flatten();
    fields
        .map(|(name, value)| (name.as_str(), (value_weight(value, 1), element_count(value))))
        .collect()
}

fn element_count(value: &Value) -> u64 {
    match value {
        Value::Array(items) => items.len() as u64,
        Value::Object(fields) => fields.len() as u64,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

pub(super) fn text_weight(text: &str) -> u64 {
    1 + (text.len() / TEXT_BYTES_PER_STEP) as u64
}

fn to_cel_value(json: &Value) -> BoxedValue<'_> {
    match json {
        Value::Null => cel_null(),
        Value::Bool(truth) => Box::new(CelBool::from(*truth)),
        Value::Number(number) => to_cel_number(number),
        Value::String(text) => cel_borrowed_text(text),
        Value::Array(items) => cel_list(items.iter().map(to_cel_value)),
        Value::Object(fields) => {
            cel_map(fields.iter().map(|(key, field)| (key.as_str(), to_cel_value(field))))
        }
    }
}

/// Whole numbers become integers, so that a condition can compute `args.count + 1`.
fn to_cel_number(number: &Number) -> BoxedValue<'static> {
    match (number.as_i64(), number.as_u64()) {
        (Some(whole), _) => Box::new(CelInt::from(whole)),
        (None, Some(large)) => Box::new(CelUInt::from(large)),
        (None, None) => Box::new(CelDouble::from(number.as_f64().unwrap_or(f64::NAN))),
    }
}

fn cel_null<'v>() -> BoxedValue<'v> {
    Box::new(CelNull)
}

fn cel_borrowed_text(text: &str) -> BoxedValue<'_> {
    Box::new(CelString::from(text))
}

fn cel_owned_text(text: String) -> BoxedValue<'static> {
    Box::new(CelString::from(text))
}

fn cel_list<'v>(items: impl Iterator<Item = BoxedValue<'v>>) -> BoxedValue<'v> {
    Box::new(CelList::from(items.collect::<Vec<_>>()))
}

fn cel_map<'v>(fields: impl IntoIterator<Item = (&'v str, BoxedValue<'v>)>) -> BoxedValue<'v> {
    let fields = fields.into_iter().map(|(key, value)| (CelMapKey::from(key), value));
    Box::new(CelMap::from(fields.collect::<HashMap<_, _>>()))
}

/// The plugin's grants, and their weight.
fn cel_grants(grant: &Grant) -> (BoxedValue<'_>, u64) {
    // Several pairs of request and entry often give the same pattern.
    let net: BTreeSet<String> =
        grant.net().permitted_patterns().map(|pattern| pattern.to_string()).collect();
    let secrets = grant.secrets().iter().map(|secret| secret.name.as_str());
    let secrets: Vec<&str> = secrets.collect();
    let held = Capability::ALL.into_iter().filter(|of| grant.has_capability_by_operator(*of));
    let capabilities: Vec<&str> = held.map(Capability::as_str).collect();
    let names = grant.env().len() + secrets.len() + capabilities.len();
    let entries = net.len() + 5 * grant.fs().len() + names;
    let fs = grant.fs().iter().map(|mount| {
        cel_map([
            ("mount", cel_borrowed_text(&mount.guest)),
            ("access", cel_borrowed_text(mount.access.as_str())),
        ])
    });
    let held = [
        cel_list(net.into_iter().map(cel_owned_text)),
        cel_list(fs),
        cel_list(grant.env().iter().map(|name| cel_borrowed_text(name))),
        cel_list(secrets.into_iter().map(cel_borrowed_text)),
        cel_list(capabilities.into_iter().map(cel_borrowed_text)),
    ];
    let weight = (GRANT_KEYS.len() + 1) * 2 + 4 * entries;
    (cel_map(GRANT_KEYS.into_iter().zip(held)), weight as u64)
}
