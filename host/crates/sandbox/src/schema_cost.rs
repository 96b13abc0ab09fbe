//! The cost limit of a schema. It is checked before the schema is compiled, because neither
//! compiling it nor checking a value against it can be interrupted.
//!
//! A short text can describe a large amount of work: definitions that each refer to the next one
//! twice double with every step, and a pattern can need megabytes of automaton. So a schema is
//! walked as a tree, with its references followed, and must stay small. A recursion may return to
//! one place of the value in one way only; otherwise the work would double with every level of the
//! value.

use std::collections::BTreeSet;

use serde_json::Value;

/// Most nodes of a schema with its references followed. Real schemas have hundreds.
const NODES_MAX: usize = 10_000;

/// Most patterns of a schema. Each one needs an automaton of its own.
const PATTERNS_MAX: usize = 64;

/// Most levels of a place in the value, at 64 bytes per level.
const LEVELS_MAX: usize = 100;

/// A walk through a schema.
struct SchemaWalk<'s> {
    root: &'s Value,
    nodes: usize,
    patterns: usize,
}

/// Returns an error if the schema is too expensive.
pub(crate) fn check_schema_cost(schema: &Value) -> Result<(), String> {
    let mut walk = SchemaWalk { root: schema, nodes: 0, patterns: 0 };
    walk.visit_node(schema, &mut Vec::new(), &mut BTreeSet::new(), "")
}

impl<'s> SchemaWalk<'s> {
    /// Visits a node. `open` contains the references that are being followed, `returns` the places
    /// to which a recursion has returned, and `place` is where the node applies in the value.
    fn visit_node(
        &mut self,
        node: &'s Value,
        open: &mut Vec<&'s str>,
        returns: &mut BTreeSet<String>,
        place: &str,
    ) -> Result<(), String> {
        self.nodes += 1;
        if self.nodes > NODES_MAX || place.len() > LEVELS_MAX * 64 {
            return Err(format!("it comes to more than {NODES_MAX} parts with its references"));
        }
        match node {
            Value::Array(items) => {
                items.iter().try_for_each(|item| self.visit_node(item, open, returns, place))
            }
            Value::Object(map) => map.iter().try_for_each(|(key, value)| match (&**key, value) {
                ("$ref" | "$dynamicRef", Value::String(target)) => {
                    self.follow_reference(target, open, returns, place)
                }
                // Definitions count where they are referred to.
                ("$defs" | "definitions", _) => Ok(()),
                _ => self.visit_keyword(key, value, open, returns, place),
            }),
            _ => Ok(()),
        }
    }

    fn visit_keyword(
        &mut self,
        key: &str,
        value: &'s Value,
        open: &mut Vec<&'s str>,
        returns: &mut BTreeSet<String>,
        place: &str,
    ) -> Result<(), String> {
        self.count_patterns(key, value)?;
        match (key, value) {
            ("properties", Value::Object(map)) => map.iter().try_for_each(|(name, value)| {
                let name: String = name.chars().take(32).collect();
                self.visit_node(value, open, returns, &format!("{place}/{name}"))
            }),
            ("items" | "prefixItems" | "additionalProperties" | "patternProperties", _) => {
                self.visit_node(value, open, returns, &format!("{place}/*"))
            }
            _ => self.visit_node(value, open, returns, place),
        }
    }

    fn count_patterns(&mut self, key: &str, value: &Value) -> Result<(), String> {
        self.patterns += match (key, value) {
            ("pattern", Value::String(_)) => 1,
            ("patternProperties", Value::Object(map)) => map.len(),
            _ => 0,
        };
        if self.patterns > PATTERNS_MAX {
            return Err(format!("it has more than {PATTERNS_MAX} patterns"));
        }
        Ok(())
    }

    fn follow_reference(
        &mut self,
        target: &'s str,
        open: &mut Vec<&'s str>,
        returns: &mut BTreeSet<String>,
        place: &str,
    ) -> Result<(), String> {
        if open.contains(&target) || target == "#" {
            return match returns.insert(format!("{target} {place}")) {
                true => Ok(()),
                false => Err(format!("{target} recurs to one place of the value by several ways")),
            };
        }
        // A reference to another document is refused when the schema is compiled.
        let Some(pointer) = target.strip_prefix('#') else { return Ok(()) };
        let Some(node) = self.root.pointer(pointer) else { return Ok(()) };
        open.push(target);
        let visited = self.visit_node(node, open, &mut BTreeSet::new(), "");
        open.pop();
        visited
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn real_schemas_pass() {
        let node = json!({ "type": "object", "properties": {
            "left": { "anyOf": [{ "$ref": "#/$defs/Node" }, { "type": "null" }] },
            "right": { "$ref": "#/$defs/Node" },
            "more": { "type": "array", "items": { "$ref": "#/$defs/Node" } },
        }});
        let tree = json!({ "$ref": "#/$defs/Node", "$defs": { "Node": node } });
        for schema in [tree, json!({ "type": "object" }), json!(true)] {
            assert_eq!(check_schema_cost(&schema), Ok(()));
        }
    }

    #[test]
    fn small_texts_of_huge_work_are_refused() {
        let step = |n: u32| json!({ "allOf": [{ "$ref": format!("#/$defs/d{n}") }, { "$ref": format!("#/$defs/d{n}") }] });
        let defs: serde_json::Map<String, Value> =
            (0..40).map(|n| (format!("d{n}"), step(n + 1))).collect();
        let doubling = json!({ "$ref": "#/$defs/d0", "$defs": defs });
        let twice = json!({ "$ref": "#/$defs/N", "$defs": { "N": { "properties": {
            "a": { "allOf": [{ "$ref": "#/$defs/N" }, { "$ref": "#/$defs/N" }] } } } } });
        let in_itself =
            json!({ "properties": { "a": { "anyOf": [{ "$ref": "#" }, { "$ref": "#" }] } } });
        let patterns: Vec<Value> =
            (0..100).map(|n| json!({ "pattern": format!("a{n}") })).collect();
        for bad in [doubling, twice, in_itself, json!({ "anyOf": patterns })] {
            assert!(check_schema_cost(&bad).is_err(), "{bad}");
        }
    }
}
