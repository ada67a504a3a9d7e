// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes the table as Rust source.

use crate::parse::{Bits, Encoding, Kinds, Operation};
use std::fmt::Write;

/// `FADD.f32` becomes `FaddF32`, `clamp_0_1` becomes `Clamp01`.
fn camel(name: &str) -> String {
    let mut text = String::new();
    for part in name.split(['.', '_']) {
        let mut letters = part.chars();
        if let Some(first) = letters.next() {
            text.push(first.to_ascii_uppercase());
            text.extend(letters.map(|c| c.to_ascii_lowercase()));
        }
    }
    text
}

fn unit(operation: &Operation) -> &'static str {
    if operation.fma { "Fma" } else { "Add" }
}

fn bits(b: Bits) -> String {
    format!("BitField {{ start: {}, size: {} }}", b.start, b.size)
}

pub(crate) fn names(kinds: &Kinds, operations: &[Operation]) -> String {
    let mut t = String::new();
    types(&mut t, kinds);
    modifiers(&mut t, kinds);
    mnemonics(&mut t, operations);
    ops(&mut t, operations);
    t
}

pub(crate) fn table(operations: &[Operation]) -> String {
    let mut t = String::new();
    let _ = writeln!(
        t,
        "pub(crate) static OPS: [OpInfo; {}] = [",
        operations.len()
    );
    for operation in operations {
        one(&mut t, operation);
    }
    t.push_str("];\n");
    index(&mut t, "FMA_INDEX", operations, true);
    index(&mut t, "ADD_INDEX", operations, false);
    t
}

fn types(t: &mut String, kinds: &Kinds) {
    for kind in &kinds.types {
        let name = &kind.name;
        let _ = writeln!(t, "/// Values of the modifiers of type {name}.");
        let _ = writeln!(
            t,
            "#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]\n#[repr(u8)]"
        );
        let _ = writeln!(t, "pub enum {name} {{");
        for (value, does) in &kind.values {
            let _ = writeln!(t, "    /// `{value}`: {does}.\n    {},", camel(value));
        }
        let _ = writeln!(
            t,
            "}}\nimpl {name} {{\n    /// Every value, in the order of their numbers."
        );
        let _ = writeln!(t, "    pub const ALL: [{name}; {}] = [", kind.values.len());
        for (value, _) in &kind.values {
            let _ = writeln!(t, "        {name}::{},", camel(value));
        }
        let _ = writeln!(
            t,
            "    ];\n    /// The names of all values, as disassembly spells them."
        );
        let _ = writeln!(
            t,
            "    pub const NAMES: [&'static str; {}] = [",
            kind.values.len()
        );
        for (value, _) in &kind.values {
            let _ = writeln!(t, "        \"{value}\",");
        }
        let _ = writeln!(t, "    ];\n    /// The name, as disassembly spells it.");
        let _ = writeln!(
            t,
            "    pub const fn name(self) -> &'static str {{ Self::NAMES[self as usize] }}\n}}\n"
        );
    }
}

fn modifiers(t: &mut String, kinds: &Kinds) {
    t.push_str(
        "/// What a modifier says. Which ones an operation has is in [`OpInfo::modifiers`](crate::OpInfo::modifiers).\n",
    );
    t.push_str("#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]\n#[repr(u8)]\npub enum Modifier {\n");
    for kind in &kinds.modifiers {
        let _ = writeln!(
            t,
            "    /// {} ({}).\n    {},",
            kind.does,
            kind.type_name,
            camel(&kind.name)
        );
    }
    t.push_str("}\nimpl Modifier {\n    /// The modifier's name in the table.\n    pub const fn name(self) -> &'static str {\n        match self {\n");
    for kind in &kinds.modifiers {
        let _ = writeln!(
            t,
            "            Modifier::{} => \"{}\",",
            camel(&kind.name),
            kind.name
        );
    }
    t.push_str("        }\n    }\n    /// The names of its values, by number. A flag has \"\" and its name.\n");
    t.push_str(
        "    pub const fn options(self) -> &'static [&'static str] {\n        match self {\n",
    );
    for kind in &kinds.modifiers {
        let name = camel(&kind.name);
        if kind.type_name == "flag" {
            let _ = writeln!(
                t,
                "            Modifier::{name} => &[\"\", \"{}\"],",
                kind.flag
            );
        } else {
            let _ = writeln!(
                t,
                "            Modifier::{name} => &{}::NAMES,",
                kind.type_name
            );
        }
    }
    t.push_str("        }\n    }\n}\n\n");
}

pub(crate) fn accessors(kinds: &Kinds) -> String {
    let mut text = String::from(
        "/// One method per modifier: its value, or the first value of its type where the operation does not have it.\nimpl Instruction {\n",
    );
    let t = &mut text;
    for kind in &kinds.modifiers {
        let (name, variant) = (&kind.name, camel(&kind.name));
        let _ = writeln!(t, "    /// {}.", kind.does);
        if kind.type_name == "flag" {
            let _ = writeln!(
                t,
                "    pub fn {name}(&self) -> bool {{ self.modifier(names::Modifier::{variant}) == Some(1) }}"
            );
        } else {
            let kind_type = format!("names::{}", kind.type_name);
            let _ = writeln!(
                t,
                "    pub fn {name}(&self) -> {kind_type} {{\n        let value = self.modifier(names::Modifier::{variant}).unwrap_or(0);"
            );
            let _ = writeln!(
                t,
                "        {kind_type}::ALL.get(usize::from(value)).copied().unwrap_or({kind_type}::ALL[0])\n    }}"
            );
        }
    }
    t.push_str("}\n");
    text
}

fn mnemonics(t: &mut String, operations: &[Operation]) {
    let mut names: Vec<&str> = operations.iter().map(|o| o.name.as_str()).collect();
    names.sort();
    names.dedup();
    t.push_str(
        "/// What an operation computes, whichever unit executes it.\n#[allow(missing_docs)]\n",
    );
    t.push_str("#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]\n#[repr(u16)]\npub enum Mnemonic {\n");
    for name in &names {
        let _ = writeln!(t, "    #[doc = \"`{name}`\"]\n    {},", camel(name));
    }
    t.push_str("}\nimpl Mnemonic {\n    /// Every mnemonic, sorted by name.\n");
    let _ = writeln!(t, "    pub const ALL: [Mnemonic; {}] = [", names.len());
    for name in &names {
        let _ = writeln!(t, "        Mnemonic::{},", camel(name));
    }
    t.push_str("    ];\n}\n\n");
}

fn ops(t: &mut String, operations: &[Operation]) {
    t.push_str("/// An operation of one unit: the unit and the mnemonic together.\n");
    t.push_str("#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]\n#[repr(u16)]\npub enum Op {\n");
    for o in operations {
        let mark = if o.fma { '*' } else { '+' };
        let _ = writeln!(
            t,
            "    #[doc = {:?}]",
            format!("`{mark}{}`: {}", o.name, o.does)
        );
        let _ = writeln!(t, "    {}{},", unit(o), camel(&o.name));
    }
    t.push_str("}\nimpl Op {\n    /// Every operation: the FMA unit's, then the ADD unit's, each sorted by name.\n");
    let _ = writeln!(t, "    pub const ALL: [Op; {}] = [", operations.len());
    for o in operations {
        let _ = writeln!(t, "        Op::{}{},", unit(o), camel(&o.name));
    }
    t.push_str("    ];\n}\n\n");
}

fn one(t: &mut String, o: &Operation) {
    let name = camel(&o.name);
    let (first, family) =
        o.evidence
            .as_ref()
            .map_or(("Documented", "Certain"), |(kind, confidence)| {
                let source = if kind == "silicon" {
                    "Silicon"
                } else {
                    "Structure"
                };
                let confidence = match confidence.as_str() {
                    "certain" => "Certain",
                    "likely" => "Likely",
                    _ => "Guess",
                };
                (source, confidence)
            });
    let (products, why) = products(o);
    let flag = |f: &str| o.flags.iter().any(|x| x == f);
    let _ = writeln!(
        t,
        "    OpInfo {{ op: Op::{u}{name}, mnemonic: Mnemonic::{name}, unit: Unit::{u}, name: {:?}, does: {:?},",
        o.name,
        o.does,
        u = unit(o)
    );
    t.push_str("        sources: &[");
    for (start, allowed) in &o.sources {
        let _ = write!(
            t,
            "SourceInfo {{ start: {start}, allowed: {allowed:#04x} }}, "
        );
    }
    t.push_str("],\n        modifiers: &[");
    for m in &o.modifiers {
        let position = m
            .position
            .map_or("None".into(), |b| format!("Some({})", bits(b)));
        let _ = write!(
            t,
            "ModifierInfo {{ modifier: Modifier::{}, position: {position}, options: &{:?}, default: {:?} }}, ",
            camel(&m.name),
            m.options,
            m.default
        );
    }
    t.push_str("],\n        immediates: &[");
    for (name, b) in &o.immediates {
        let _ = write!(
            t,
            "ImmediateInfo {{ name: {name:?}, position: {} }}, ",
            bits(*b)
        );
    }
    t.push_str("],\n        encodings: &[");
    for e in &o.encodings {
        encoding(t, e);
    }
    let message = o
        .message
        .as_ref()
        .map_or("None".into(), |m| format!("Some(Message::{})", camel(m)));
    let staging = o.staging.as_ref().map_or("None".into(), |(access, count)| {
        let count = match count.as_str() {
            "count" => "StagingCount::Descriptor".to_string(),
            "format" => "StagingCount::Format".to_string(),
            n => format!("StagingCount::Words({n})"),
        };
        let access = access.replace('-', "_");
        format!(
            "Some(Staging {{ read: {}, write: {}, count: {count} }})",
            access != "write",
            access != "read"
        )
    });
    let _ = writeln!(
        t,
        "],\n        message: {message}, staging: {staging}, last: {}, result: {}, table: {}, unused: {}, wide: {}, evidence: Evidence {{ source: EvidenceSource::{first}, confidence: Confidence::{family} }}, products: {products}, product_evidence: ProductEvidence::{why} }},",
        flag("last"),
        !flag("no-result"),
        flag("table"),
        flag("unused"),
        flag("wide")
    );
}

fn products(o: &Operation) -> (String, &'static str) {
    let set = |names: &[&str]| {
        let names: Vec<String> = names
            .iter()
            .map(|name| format!("Product::{}", name.to_uppercase()))
            .collect();
        format!("Products::of(&[{}])", names.join(", "))
    };
    let kind = o.evidence.as_ref().map(|(kind, _)| kind.as_str());
    match (&o.products, kind) {
        (Some(products), _) => {
            let names: Vec<&str> = products.iter().map(String::as_str).collect();
            (set(&names), "Compiler")
        }
        (None, None) => ("Products::of(&Product::ALL)".into(), "Description"),
        (None, Some("silicon")) => (set(&["g71", "g72"]), "Silicon"),
        (None, Some(_)) => (set(&[]), "Nothing"),
    }
}

fn encoding(t: &mut String, e: &Encoding) {
    let order = match e.order.as_str() {
        "a<b" => "Some(Order::Less)",
        "a<=b" => "Some(Order::LessOrEqual)",
        "a>b" => "Some(Order::Greater)",
        "a>=b" => "Some(Order::GreaterOrEqual)",
        "" => "None",
        other => panic!("unknown order {other:?}"),
    };
    let _ = write!(
        t,
        "\n            Encoding {{ exact: {:#x}, mask: {:#x}, order: {order}, fixed: &[",
        e.exact, e.mask
    );
    for (index, value) in &e.fixed {
        let _ = write!(t, "({index}, {value}), ");
    }
    t.push_str("], fields: &[");
    for f in &e.fields {
        let _ = write!(
            t,
            "Field {{ position: {}, modifiers: &{:?}, values: &[",
            bits(f.position),
            f.modifiers
        );
        for v in &f.values {
            match v {
                Some(list) => {
                    let _ = write!(t, "Some(&{list:?}), ");
                }
                None => t.push_str("None, "),
            }
        }
        t.push_str("] }, ");
    }
    t.push_str("] },");
}

/// Writes encodings by the top eight bits of the word, the most specific first: a decoder looks at few.
fn index(t: &mut String, name: &str, operations: &[Operation], fma: bool) {
    let shift = if fma { 15 } else { 12 };
    let _ = writeln!(t, "pub(crate) static {name}: [&[(u16, u8)]; 256] = [");
    for top in 0..256u32 {
        let mut found = Vec::new();
        for (number, operation) in operations.iter().enumerate().filter(|(_, o)| o.fma == fma) {
            for (place, encoding) in operation.encodings.iter().enumerate() {
                if (encoding.mask >> shift) & (top ^ (encoding.exact >> shift)) == 0 {
                    found.push((encoding.mask.count_ones(), encoding.mask, number, place));
                }
            }
        }
        found.sort_by_key(|&(ones, mask, number, place)| {
            (u32::MAX - ones, u32::MAX - mask, number, place)
        });
        t.push_str("    &[");
        for (_, _, number, place) in found {
            let _ = write!(t, "({number}, {place}), ");
        }
        t.push_str("],\n");
    }
    t.push_str("];\n");
}
