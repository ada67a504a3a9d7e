// SPDX-License-Identifier: MIT OR Apache-2.0
//! PTX texts. Source: PTX ISA, chapters 5 and 11.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::image::tally::{Allowance, Held, shown};
use crate::image::{Contents, ImageError, Kernel, Parameter, Variable};

pub(crate) fn contents(text: &[u8], allowance: &mut Allowance) -> Result<Contents, ImageError> {
    let end = text
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(text.len());
    let text = std::str::from_utf8(&text[..end]).map_err(|_| ImageError::Text)?;
    let text = without_comments(text);
    let mut contents = Contents::default();
    let mut held = Held::new(allowance);
    let mut declared = HashSet::new();
    let mut rest = text.as_ref();
    while let Some((head, stop, tail)) = statement(rest) {
        held.allowance.entry(0)?;
        if let Some((_, entry)) = head.split_once(".entry") {
            let name = name(entry);
            held.name(name.as_bytes())?;
            let is_declaration = stop == ';';
            if held.has(name) && (is_declaration || declared.remove(name)) {
                // The first one counts.
            } else {
                let kernel = kernel(entry, &mut held)?;
                held.kernel(&kernel)?;
                if is_declaration {
                    declared.insert(name.to_owned());
                }
                contents.kernels.push(kernel);
            }
        } else if let Some(variable) = variable(head) {
            held.name(variable.name.as_bytes())?;
            held.variable()?;
            contents.variables.push(variable);
        }
        rest = if stop == '{' && !head.contains('=') {
            after_block(tail)
        } else {
            tail
        };
    }
    contents.variables.sort();
    contents.variables.dedup();
    Ok(contents)
}

fn without_comments(text: &str) -> Cow<'_, str> {
    if !text.contains('/') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('/') {
        let (before, comment) = rest.split_at(start);
        out.push_str(before);
        rest = if comment.starts_with("//") {
            comment.find('\n').map_or("", |end| &comment[end..])
        } else if let Some(body) = comment.strip_prefix("/*") {
            out.push(' ');
            body.find("*/").map_or("", |end| &body[end + 2..])
        } else {
            out.push('/');
            &comment[1..]
        };
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Splits at the next `;`, `{` or `}`: text, sign, rest. One-line directives end there too.
fn statement(text: &str) -> Option<(&str, char, &str)> {
    let text = text.trim_start();
    let one_line = [".version", ".target", ".address_size", ".file", ".loc"];
    if one_line.iter().any(|directive| text.starts_with(directive)) {
        let end = text.find('\n').unwrap_or(text.len());
        return Some((&text[..end], '\n', &text[end..]));
    }
    let end = text.find([';', '{', '}'])?;
    let stop = char::from(*text.as_bytes().get(end)?);
    Some((&text[..end], stop, &text[end + 1..]))
}

fn after_block(text: &str) -> &str {
    let mut depth = 1usize;
    for (at, character) in text.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &text[at + 1..];
        }
    }
    ""
}

fn name_end(entry: &str) -> usize {
    entry.find(['(', '.']).unwrap_or(entry.len())
}

fn name(entry: &str) -> &str {
    entry[..name_end(entry)].trim()
}

fn kernel(entry: &str, held: &mut Held<'_>) -> Result<Kernel, ImageError> {
    let name_end = name_end(entry);
    let mut kernel = Kernel {
        name: name(entry).to_owned(),
        ..Kernel::default()
    };
    let mut directives = &entry[name_end..];
    if let Some(list) = directives.strip_prefix('(') {
        let end = list.find(')').unwrap_or(list.len());
        kernel.parameters = parameters(&list[..end], held)?;
        directives = &list[end..];
    }
    kernel.most_threads = three(directives, ".maxntid")?;
    kernel.required_threads = three(directives, ".reqntid")?;
    Ok(kernel)
}

fn three(text: &str, directive: &str) -> Result<Option<[u32; 3]>, ImageError> {
    let Some((_, after)) = text.split_once(directive) else {
        return Ok(None);
    };
    let list = after.split('.').next().unwrap_or("");
    let mut numbers = [1; 3];
    for (index, word) in list.split(',').enumerate() {
        let damaged = || ImageError::Declaration(directive.to_owned());
        let number = word.trim().parse().map_err(|_| damaged())?;
        *numbers.get_mut(index).ok_or_else(damaged)? = number;
    }
    Ok(Some(numbers))
}

fn parameters(list: &str, held: &mut Held<'_>) -> Result<Vec<Parameter>, ImageError> {
    let mut parameters = Vec::new();
    let mut end = 0usize;
    for declaration in list
        .split(',')
        .map(str::trim)
        .filter(|text| !text.is_empty())
    {
        let damaged = || ImageError::Declaration(shown(declaration));
        let element = element_size(declaration).ok_or_else(damaged)?;
        let count = match declaration.split_once('[') {
            Some((_, count)) => count
                .split(']')
                .next()
                .and_then(|count| count.trim().parse().ok())
                .ok_or_else(damaged)?,
            None => 1usize,
        };
        let size = element.checked_mul(count).ok_or_else(damaged)?;
        let mut words = declaration.split_whitespace();
        let mut align = element;
        while let Some(word) = words.next() {
            // `.ptr .align N` is about the target.
            if word == ".ptr" {
                break;
            }
            if word == ".align" {
                align = words
                    .next()
                    .and_then(|align| align.parse().ok())
                    .ok_or_else(damaged)?;
            }
        }
        if !align.is_power_of_two() {
            return Err(damaged());
        }
        let offset = end.checked_next_multiple_of(align).ok_or_else(damaged)?;
        end = offset.checked_add(size).ok_or_else(damaged)?;
        held.parameter(parameters.len())?;
        parameters.push(Parameter { offset, size });
    }
    Ok(parameters)
}

/// Bytes of the first type: `.u32` has 4.
fn element_size(declaration: &str) -> Option<usize> {
    declaration.split_whitespace().find_map(|word| {
        let kind = word.strip_prefix('.')?;
        let digits = kind.trim_start_matches(|c: char| c.is_ascii_alphabetic());
        if digits.len() == kind.len() {
            return None;
        }
        match digits {
            "8" => Some(1),
            "16" => Some(2),
            "32" => Some(4),
            "64" => Some(8),
            "128" => Some(16),
            _ => None,
        }
    })
}

fn variable(statement: &str) -> Option<Variable> {
    let head = statement.split('=').next()?.trim();
    if !head.starts_with('.') {
        return None;
    }
    let mut words = head.split_whitespace();
    let global = words
        .clone()
        .any(|word| word == ".global" || word == ".const");
    if !global || words.any(|word| word == ".extern") {
        return None;
    }
    let before_bracket = head.split('[').next()?;
    let name = before_bracket.split_whitespace().next_back()?;
    if name.starts_with('.') {
        return None;
    }
    let count = match head.split_once('[') {
        Some((_, count)) => count
            .split(']')
            .next()
            .and_then(|count| count.trim().parse::<u64>().ok()),
        None => Some(1),
    };
    let size = count
        .zip(element_size(head))
        .and_then(|(count, size)| count.checked_mul(size as u64));
    Some(Variable {
        name: name.to_owned(),
        size,
    })
}
