// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints the generated part of `docs/reference/isa.md` for `cargo xtask docs`.

use mali_isa::{
    Confidence, Encoding, EvidenceSource, ModifierInfo, Op, OpInfo, Order, ProductEvidence,
    StagingCount, Unit,
};
use std::fmt::Write;

fn render() -> String {
    let mut text = String::new();
    evidence(&mut text);
    products(&mut text);
    let _ = writeln!(text, "## All operations\n");
    let _ = writeln!(
        text,
        "`exact/mask` of each encoding; `<` and the like: only with the selectors of a and b in that order. Sources: lowest bit of the\n\
         selector, and the selectors that are not allowed. Modifiers: position, values from 0 on (`-` reserved, `*` default); without a\n\
         position they are in fields, which the table has.\n"
    );
    for unit in [Unit::Fma, Unit::Add] {
        let name = if unit == Unit::Fma { "FMA" } else { "ADD" };
        let _ = writeln!(
            text,
            "### {name} unit\n\n| operation | does | sources | modifiers | encodings |\n|---|---|---|---|---|"
        );
        for info in Op::ALL
            .iter()
            .map(|op| op.info())
            .filter(|info| info.unit == unit)
        {
            row(&mut text, info);
        }
        text.push('\n');
    }
    text
}

fn evidence(text: &mut String) {
    let _ = writeln!(text, "## Encodings that are not in Mesa's description\n");
    let _ = writeln!(
        text,
        "| operation | evidence | confidence | encodings | does |\n|---|---|---|---|---|"
    );
    for info in Op::ALL.iter().map(|op| op.info()) {
        let source = match info.evidence.source {
            EvidenceSource::Documented => continue,
            EvidenceSource::Silicon => "seen in silicon recordings",
            EvidenceSource::Structure => "structure of its group",
        };
        let confidence = match info.evidence.confidence {
            Confidence::Certain => "certain",
            Confidence::Likely => "likely",
            Confidence::Guess => "guess",
        };
        let (name, does) = (name(info), escape(info.does));
        let _ = writeln!(
            text,
            "| {name} | {source} | {confidence} | {} | {does} |",
            encodings(info)
        );
    }
    text.push('\n');
}

fn products(text: &mut String) {
    let _ = writeln!(
        text,
        "## Which products have an instruction\n\n\
         On the others the model raises the fault of an invalid encoding, and says which instruction it was.\n\n\
         | operations | products | evidence |\n|---|---|---|"
    );
    let mut rows: Vec<(String, &str, Vec<String>)> = Vec::new();
    for info in Op::ALL.iter().map(|op| op.info()) {
        let names: Vec<&str> = info.products.iter().map(|one| one.name()).collect();
        let (names, why) = (names.join(", "), info.product_evidence.name());
        let found = rows
            .iter_mut()
            .find(|(products, reason, _)| *products == names && *reason == why);
        match found {
            Some((_, _, operations)) => operations.push(name(info)),
            None => rows.push((names, why, vec![name(info)])),
        }
    }
    for (products, why, operations) in rows {
        let products = if products.is_empty() {
            "none"
        } else {
            &products
        };
        let operations = if why == ProductEvidence::Description.name() {
            "all others".into()
        } else {
            operations.join(", ")
        };
        let _ = writeln!(text, "| {operations} | {products} | {why} |");
    }
    text.push('\n');
}

fn escape(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;")
}

fn name(info: &OpInfo) -> String {
    format!("`{}{}`", info.unit.mark(), info.name)
}

fn row(text: &mut String, info: &OpInfo) {
    let mut does = escape(info.does);
    if let Some(message) = info.message {
        let _ = write!(does, " Message {}.", message.name());
    }
    if let Some(staging) = info.staging {
        let count = match staging.count {
            StagingCount::Words(n) => n.to_string(),
            StagingCount::Format => "as the format says".into(),
            StagingCount::Descriptor => "as the operation says".into(),
        };
        let access = match (staging.read, staging.write) {
            (true, false) => "read",
            (false, _) => "written",
            (true, true) => "read and written",
        };
        let _ = write!(does, " Staging registers {access}: {count}.");
    }
    for (set, remark) in [
        (info.last, "Last tuple only."),
        (info.wide, "64-bit tuples only."),
        (!info.result, "No result."),
    ] {
        if set {
            let _ = write!(does, " {remark}");
        }
    }
    let sources: Vec<String> = info
        .sources
        .iter()
        .map(|source| {
            let not: String = (0..8)
                .filter(|n| source.allowed >> n & 1 == 0)
                .map(|n| char::from(b'0' + n))
                .collect();
            format!(
                "{}{}{not}",
                source.start,
                if not.is_empty() { "" } else { "!" }
            )
        })
        .collect();
    let mut modifiers: Vec<String> = info.modifiers.iter().map(modifier).collect();
    modifiers.extend(
        info.immediates
            .iter()
            .map(|i| format!("{}@{}:{}", i.name, i.position.start, i.position.size)),
    );
    let _ = writeln!(
        text,
        "| {} | {does} | {} | {} | {} |",
        name(info),
        sources.join(" "),
        modifiers.join("; "),
        encodings(info)
    );
}

fn modifier(info: &ModifierInfo) -> String {
    let mut text = info.modifier.name().to_string();
    if let Some(position) = info.position {
        let _ = write!(text, "@{}:{}", position.start, position.size);
    }
    for (number, option) in info.options.iter().enumerate() {
        text.push(if number == 0 { ' ' } else { ',' });
        match option {
            Some(value) => {
                let name = info.modifier.options()[usize::from(*value)];
                let star = if info.default == Some(*value) {
                    "*"
                } else {
                    ""
                };
                let _ = write!(
                    text,
                    "{star}{}",
                    if name.is_empty() { "none" } else { name }
                );
            }
            None => text.push('-'),
        }
    }
    text
}

fn encodings(info: &OpInfo) -> String {
    let digits = if info.unit == Unit::Fma { 6 } else { 5 };
    let one = |e: &Encoding| {
        let order = match e.order {
            None => "",
            Some(Order::Less) => " &lt;",
            Some(Order::LessOrEqual) => " &lt;=",
            Some(Order::Greater) => " >",
            Some(Order::GreaterOrEqual) => " >=",
        };
        format!("{:0digits$x}/{:0digits$x}{order}", e.exact, e.mask)
    };
    info.encodings
        .iter()
        .map(one)
        .collect::<Vec<_>>()
        .join(", ")
}

fn main() {
    print!("<!-- table: instructions -->\n{}", render());
}
