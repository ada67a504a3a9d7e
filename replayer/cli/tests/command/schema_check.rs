// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares JSON strictly with a schema of `docs/reference/schemas`.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use serde_json::Value;

pub(crate) fn schema(name: &str) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/schemas");
    let path = folder.join(format!("{name}.json"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

pub(crate) fn assert_fits(name: &str, text: &str) {
    let value: Value = serde_json::from_str(text).unwrap();
    let schema = schema(name);
    check(&value, &schema, &schema, "").unwrap_or_else(|error| panic!("{name}: {error}"));
}

/// Words that say nothing about a value, or that others are checked with.
const NOTES: [&str; 7] = [
    "$schema",
    "$defs",
    "title",
    "description",
    "format",
    "default",
    "items",
];

/// Unknown words of the schema, and members that it lacks, are errors.
pub(crate) fn check(value: &Value, schema: &Value, root: &Value, at: &str) -> Result<(), String> {
    let Value::Object(words) = schema else {
        return Err(format!("{at}: the schema says {schema}"));
    };
    let wrong = |what: &str| Err(format!("{at}: {what}: {value}"));
    for (word, demand) in words {
        match word.as_str() {
            "$ref" => {
                let name = demand.as_str().unwrap().strip_prefix("#/$defs/").unwrap();
                check(value, &root["$defs"][name], root, at)?;
            }
            "type" => {
                let kinds = demand.as_array().cloned();
                let kinds = kinds.unwrap_or_else(|| vec![demand.clone()]);
                if !kinds.iter().any(|kind| is(value, kind.as_str().unwrap())) {
                    return wrong(&format!("is no {demand}"));
                }
            }
            "anyOf" | "oneOf" => {
                let fitting = demand.as_array().unwrap().iter();
                let fitting = fitting.map(|one| check(value, one, root, at));
                let all: Vec<_> = fitting.collect();
                let count = all.iter().filter(|one| one.is_ok()).count();
                if count == 0 || (word == "oneOf" && count > 1) {
                    return Err(format!("{at}: {count} of {word} fit: {all:?}"));
                }
            }
            "const" if value != demand => return wrong(&format!("is not {demand}")),
            "enum" if !demand.as_array().unwrap().contains(value) => {
                return wrong(&format!("is none of {demand}"));
            }
            "const" | "enum" => {}
            "minimum"
                if value
                    .as_f64()
                    .is_some_and(|it| it < demand.as_f64().unwrap()) =>
            {
                return wrong("is too small");
            }
            "maximum"
                if value
                    .as_f64()
                    .is_some_and(|it| it > demand.as_f64().unwrap()) =>
            {
                return wrong("is too large");
            }
            "minItems" | "maxItems" => {
                let count = value.as_array().map_or(0, Vec::len) as u64;
                let bound = demand.as_u64().unwrap();
                if value.is_array() && ((word == "minItems") == (count < bound)) && count != bound {
                    return wrong(word);
                }
            }
            "minimum" | "maximum" => {}
            "required" => {
                for name in demand.as_array().unwrap() {
                    if value.is_object() && value.get(name.as_str().unwrap()).is_none() {
                        return wrong(&format!("lacks {name}"));
                    }
                }
            }
            "properties" | "additionalProperties" | "prefixItems" => {}
            note if NOTES.contains(&note) => {}
            other => {
                return Err(format!(
                    "{at}: the schema has {other}, which is not checked"
                ));
            }
        }
    }
    if let Value::Array(items) = value {
        let first = schema["prefixItems"].as_array().cloned();
        let first = first.unwrap_or_default();
        for (index, item) in items.iter().enumerate() {
            let at = format!("{at}/{index}");
            match first.get(index).or(schema.get("items")) {
                Some(form) => check(item, form, root, &at)?,
                None if words.contains_key("type") => return Err(format!("{at}: has no schema")),
                None => {}
            }
        }
    }
    let is_object = words.contains_key("properties") || words.contains_key("additionalProperties");
    if let (Value::Object(members), true) = (value, is_object) {
        for (name, member) in members {
            let at = format!("{at}/{name}");
            let form = schema["properties"].get(name);
            match form.or(schema.get("additionalProperties")) {
                Some(Value::Bool(true)) => {}
                Some(form) => check(member, form, root, &at)?,
                None => return Err(format!("{at}: the schema does not name it")),
            }
        }
    }
    Ok(())
}

fn is(value: &Value, kind: &str) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("the type {other}"),
    }
}
