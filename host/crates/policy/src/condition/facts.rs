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

use super::Failure;
use crate::{
    capability::Capability,
    grant::Grant,
    question::{CONTEXT_KEYS, Situation},
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

type Boxed<'v> = Box<dyn Val + 'v>;

/// The facts of one decision, and the steps that its conditions may still take.
pub(crate) struct Facts<'a> {
    situation: Situation<'a>,
    grant: &'a Grant,
    variables: OnceCell<Variables<'a>>,
    work_left: Cell<u64>,
}

/// The variables in the evaluator's form.
pub(super) struct Variables<'a> {
    args: Boxed<'a>,
    context: Boxed<'a>,
    grants: Boxed<'a>,
    weights: Weights<'a>,
}

/// The weights of the variables.
struct Weights<'a> {
    args: u64,
    /// The weight of each argument, and its number of elements.
    fields: HashMap<&'a str, (u64, u64)>,
    context: u64,
    grants: u64,
}

impl<'a> Facts<'a> {
    pub(crate) fn new(situation: Situation<'a>, grant: &'a Grant) -> Self {
        let work_left = Cell::new(WORK_STEPS_MAX);
        Self { situation, grant, variables: OnceCell::new(), work_left }
    }

    pub(crate) fn situation(&self) -> &Situation<'a> {
        &self.situation
    }

    pub(super) fn variables(&self) -> Result<&Variables<'a>, Failure> {
        if let Some(variables) = self.variables.get() {
            return Ok(variables);
        }
        if weight(self.situation.arguments, 0) > WORK_STEPS_MAX {
            return Err(Failure::TooMuch);
        }
        Ok(self.variables.get_or_init(|| Variables::new(&self.situation, self.grant)))
    }

    /// Subtracts steps from the remaining ones.
    pub(super) fn spend(&self, steps: u64) -> Result<(), Failure> {
        let left = self.work_left.get().checked_sub(steps).ok_or(Failure::TooMuch)?;
        self.work_left.set(left);
        Ok(())
    }
}

impl<'a> Variables<'a> {
    fn new(situation: &Situation<'a>, grant: &'a Grant) -> Self {
        let context = CONTEXT_KEYS.map(|key| (key, situation.context_text(key)));
        let texts = context.iter().filter_map(|(_, text)| *text);
        let weight_of_context = texts.map(text_weight).sum::<u64>() + 2 * CONTEXT_KEYS.len() as u64;
        let (grants, weight_of_grants) = grants(grant);
        Self {
            args: value(situation.arguments),
            context: map(context.map(|(key, text)| (key, text.map_or_else(null, borrowed)))),
            grants,
            weights: Weights {
                args: weight(situation.arguments, 0),
                fields: field_weights(situation.arguments),
                context: weight_of_context,
                grants: weight_of_grants,
            },
        }
    }

    /// The weight of a variable.
    pub(super) fn weight(&self, name: &str) -> u64 {
        match name {
            "args" => self.weights.args,
            "context" => self.weights.context,
            "grants" => self.weights.grants,
            _ => 0,
        }
    }

    /// The weight of one argument, and its number of elements.
    pub(super) fn argument_weight(&self, name: &str) -> (u64, u64) {
        self.weights.fields.get(name).copied().unwrap_or((1, 0))
    }
}

impl VariableResolver for Variables<'_> {
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
pub(super) fn environment() -> Arc<Env> {
    static STANDARD: LazyLock<Arc<Env>> =
        LazyLock::new(|| Arc::new(Env::default().with_optional_support(false).with_stdlib()));
    Arc::clone(&STANDARD)
}

/// The weight of a value: one for itself, plus the weights of its elements; a string weighs by its
/// length.
fn weight(value: &Value, depth: usize) -> u64 {
    if depth > DEPTH_MAX {
        return u64::MAX;
    }
    let inner = |value| weight(value, depth + 1);
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
    fields.map(|(name, value)| (name.as_str(), (weight(value, 1), elements(value)))).collect()
}

fn elements(value: &Value) -> u64 {
    match value {
        Value::Array(items) => items.len() as u64,
        Value::Object(fields) => fields.len() as u64,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

pub(super) fn text_weight(text: &str) -> u64 {
    1 + (text.len() / TEXT_BYTES_PER_STEP) as u64
}

fn value(json: &Value) -> Boxed<'_> {
    match json {
        Value::Null => null(),
        Value::Bool(truth) => Box::new(CelBool::from(*truth)),
        Value::Number(number) => numeric(number),
        Value::String(text) => borrowed(text),
        Value::Array(items) => list(items.iter().map(value)),
        Value::Object(fields) => {
            map(fields.iter().map(|(key, field)| (key.as_str(), value(field))))
        }
    }
}

/// Whole numbers become integers, so that a condition can compute `args.count + 1`.
fn numeric(number: &Number) -> Boxed<'static> {
    match (number.as_i64(), number.as_u64()) {
        (Some(whole), _) => Box::new(CelInt::from(whole)),
        (None, Some(large)) => Box::new(CelUInt::from(large)),
        (None, None) => Box::new(CelDouble::from(number.as_f64().unwrap_or(f64::NAN))),
    }
}

fn null<'v>() -> Boxed<'v> {
    Box::new(CelNull)
}

fn borrowed(text: &str) -> Boxed<'_> {
    Box::new(CelString::from(text))
}

fn owned(text: String) -> Boxed<'static> {
    Box::new(CelString::from(text))
}

fn list<'v>(items: impl Iterator<Item = Boxed<'v>>) -> Boxed<'v> {
    Box::new(CelList::from(items.collect::<Vec<_>>()))
}

fn map<'v>(fields: impl IntoIterator<Item = (&'v str, Boxed<'v>)>) -> Boxed<'v> {
    let fields = fields.into_iter().map(|(key, value)| (CelMapKey::from(key), value));
    Box::new(CelMap::from(fields.collect::<HashMap<_, _>>()))
}

/// The plugin's grants, and their weight.
fn grants(grant: &Grant) -> (Boxed<'_>, u64) {
    // Several pairs of request and entry often give the same pattern.
    let net: BTreeSet<String> = grant.net().patterns().map(|pattern| pattern.to_string()).collect();
    let secrets = grant.secrets().iter().map(|secret| secret.name.as_str());
    let secrets: Vec<&str> = secrets.collect();
    let held = Capability::ALL.into_iter().filter(|of| grant.holds_by_its_operator(*of));
    let capabilities: Vec<&str> = held.map(Capability::word).collect();
    let names = grant.env().len() + secrets.len() + capabilities.len();
    let entries = net.len() + 5 * grant.fs().len() + names;
    let fs = grant.fs().iter().map(|mount| {
        map([("mount", borrowed(&mount.guest)), ("access", borrowed(mount.access.word()))])
    });
    let held = [
        list(net.into_iter().map(owned)),
        list(fs),
        list(grant.env().iter().map(|name| borrowed(name))),
        list(secrets.into_iter().map(borrowed)),
        list(capabilities.into_iter().map(borrowed)),
    ];
    let weight = (GRANT_KEYS.len() + 1) * 2 + 4 * entries;
    (map(GRANT_KEYS.into_iter().zip(held)), weight as u64)
}
