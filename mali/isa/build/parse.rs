// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the table's text; `table/README.md` has the grammar.

pub(crate) struct Kinds {
    pub(crate) types: Vec<Type>,
    pub(crate) modifiers: Vec<Kind>,
}

pub(crate) struct Type {
    pub(crate) name: String,
    pub(crate) values: Vec<(String, String)>,
}

pub(crate) struct Kind {
    pub(crate) name: String,
    pub(crate) type_name: String,
    pub(crate) flag: String,
    pub(crate) does: String,
}

impl Kinds {
    /// Number of a modifier's option; for a flag "none" is 0 and its own name 1.
    pub(crate) fn value(&self, modifier: &str, option: &str) -> Result<u8, String> {
        let kind = self.modifiers.iter().find(|k| k.name == modifier);
        let kind = kind.ok_or(format!("unknown modifier {modifier}"))?;
        if kind.type_name == "flag" {
            return match option {
                "none" => Ok(0),
                o if o == kind.flag => Ok(1),
                _ => Err(format!(
                    "{modifier} is a flag, {option} is not one of its options"
                )),
            };
        }
        let kind_type = self.types.iter().find(|t| t.name == kind.type_name);
        let values = &kind_type
            .ok_or(format!("unknown type {}", kind.type_name))?
            .values;
        let place = values.iter().position(|(v, _)| v == option);
        place
            .map(|p| p as u8)
            .ok_or(format!("{modifier} cannot be {option}"))
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Bits {
    pub(crate) start: u32,
    pub(crate) size: u32,
}

impl Bits {
    fn mask(self) -> u32 {
        ((1 << self.size) - 1) << self.start
    }
}

#[derive(Default)]
pub(crate) struct Operation {
    pub(crate) fma: bool,
    pub(crate) name: String,
    pub(crate) does: String,
    pub(crate) sources: Vec<(u32, u8)>,
    pub(crate) modifiers: Vec<Modifier>,
    pub(crate) immediates: Vec<(String, Bits)>,
    pub(crate) encodings: Vec<Encoding>,
    pub(crate) message: Option<String>,
    pub(crate) staging: Option<(String, String)>,
    pub(crate) flags: Vec<String>,
    pub(crate) evidence: Option<(String, String)>,
    /// Products that have the operation, if Mesa's compiler says so.
    pub(crate) products: Option<Vec<String>>,
}

pub(crate) struct Modifier {
    pub(crate) name: String,
    pub(crate) position: Option<Bits>,
    pub(crate) options: Vec<Option<u8>>,
    pub(crate) default: Option<u8>,
}

pub(crate) struct Encoding {
    pub(crate) exact: u32,
    pub(crate) mask: u32,
    pub(crate) order: String,
    pub(crate) fixed: Vec<(usize, u8)>,
    pub(crate) fields: Vec<Field>,
}

pub(crate) struct Field {
    pub(crate) position: Bits,
    pub(crate) modifiers: Vec<usize>,
    pub(crate) values: Vec<Option<Vec<u8>>>,
}

fn lines(text: &str) -> impl Iterator<Item = (usize, &str, bool)> {
    text.lines().enumerate().filter_map(|(i, l)| {
        let body = l.split('#').next().unwrap_or("").trim_end();
        (!body.trim().is_empty()).then(|| (i + 1, body.trim(), !body.starts_with(' ')))
    })
}

pub(crate) fn kinds(text: &str) -> Result<Kinds, String> {
    let mut kinds = Kinds {
        types: Vec::new(),
        modifiers: Vec::new(),
    };
    for (number, line, outer) in lines(text) {
        let error = || format!("modifiers.isa:{number}: cannot read {line:?}");
        let (word, rest) = line.split_once(char::is_whitespace).ok_or_else(error)?;
        let rest = rest.trim();
        if !outer {
            let last = kinds.types.last_mut().ok_or_else(error)?;
            last.values.push((word.into(), rest.into()));
        } else if word == "type" {
            kinds.types.push(Type {
                name: rest.into(),
                values: Vec::new(),
            });
        } else if word == "modifier" {
            let (name, rest) = rest.split_once(' ').ok_or_else(error)?;
            let (type_name, mut rest) = rest.trim().split_once(' ').ok_or_else(error)?;
            let mut flag = "";
            if type_name == "flag" {
                (flag, rest) = rest.trim().split_once(' ').ok_or_else(error)?;
            }
            let (name, type_name, flag) = (name.into(), type_name.into(), flag.into());
            kinds.modifiers.push(Kind {
                name,
                type_name,
                flag,
                does: rest.trim().into(),
            });
        } else {
            return Err(error());
        }
    }
    kinds.modifiers.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(kinds)
}

pub(crate) fn operations(text: &str, kinds: &Kinds) -> Result<Vec<Operation>, String> {
    let mut all: Vec<Operation> = Vec::new();
    for (number, line, outer) in lines(text) {
        let place = |e: String| format!("line {number}: {e}");
        if outer {
            let fma = match line.as_bytes().first() {
                Some(b'*') => true,
                Some(b'+') => false,
                _ => return Err(place(format!("{line:?} begins with neither * nor +"))),
            };
            all.push(Operation {
                fma,
                name: line[1..].into(),
                ..Operation::default()
            });
            continue;
        }
        let operation = all
            .last_mut()
            .ok_or_else(|| place("no operation yet".into()))?;
        property(operation, line, kinds).map_err(place)?;
    }
    for operation in &all {
        check(operation)?;
    }
    Ok(all)
}

fn property(operation: &mut Operation, line: &str, kinds: &Kinds) -> Result<(), String> {
    let (word, rest) = line
        .split_once(' ')
        .ok_or(format!("{line:?} has no value"))?;
    let pair = || {
        let (a, b) = rest
            .split_once(' ')
            .ok_or(format!("{word} takes two words"))?;
        Ok::<_, String>((a.to_string(), b.to_string()))
    };
    match word {
        "does" if operation.does.is_empty() => operation.does = rest.into(),
        "does" => operation.does = format!("{} {rest}", operation.does),
        "sources" => {
            for source in rest.split(' ') {
                operation.sources.push(parse_source(source)?);
            }
        }
        "modifier" => {
            let (name, options) = rest.split_once(' ').ok_or("a modifier without options")?;
            let (name, position) = match name.split_once('@') {
                Some((name, bits)) => (name, Some(parse_bits(bits)?)),
                None => (name, None),
            };
            let mut modifier = Modifier {
                name: name.into(),
                position,
                options: Vec::new(),
                default: None,
            };
            for option in options.split(' ') {
                let plain = option.trim_start_matches('*');
                let value = if plain == "-" {
                    None
                } else {
                    Some(kinds.value(name, plain)?)
                };
                if plain != option {
                    modifier.default = value;
                }
                modifier.options.push(value);
            }
            operation.modifiers.push(modifier);
        }
        "immediate" => {
            let (name, bits) = rest
                .split_once('@')
                .ok_or("an immediate without position")?;
            operation.immediates.push((name.into(), parse_bits(bits)?));
        }
        "message" => operation.message = Some(rest.into()),
        "staging" => operation.staging = Some(pair()?),
        "flags" => operation.flags = rest.split(' ').map(String::from).collect(),
        "evidence" => operation.evidence = Some(pair()?),
        "products" => operation.products = Some(parse_products(rest)?),
        "encoding" => operation
            .encodings
            .push(parse_encoding(operation, rest, kinds)?),
        "field" => {
            let field = parse_field(operation, rest, kinds)?;
            operation
                .encodings
                .last_mut()
                .ok_or("a field before its encoding")?
                .fields
                .push(field);
        }
        _ => return Err(format!("unknown property {word:?}")),
    }
    Ok(())
}

/// In the table's order, so that each set has one spelling.
const PRODUCTS: [&str; 6] = ["g71", "g72", "g51", "g31", "g52", "g76"];

fn parse_products(text: &str) -> Result<Vec<String>, String> {
    let mut places = Vec::new();
    for word in text.split(' ') {
        let place = PRODUCTS.iter().position(|name| *name == word);
        places.push(place.ok_or(format!("{word:?} is not a product"))?);
    }
    if !places.is_sorted_by(|a, b| a < b) {
        return Err(format!("{text:?} is not in the order {PRODUCTS:?}"));
    }
    Ok(text.split(' ').map(String::from).collect())
}

fn number(text: &str) -> Result<u32, String> {
    text.parse()
        .map_err(|_| format!("{text:?} is not a number"))
}

fn hex(text: &str) -> Result<u32, String> {
    u32::from_str_radix(text, 16).map_err(|_| format!("{text:?} is not hexadecimal"))
}

fn parse_bits(text: &str) -> Result<Bits, String> {
    let (start, size) = text
        .split_once(':')
        .ok_or(format!("{text:?} is not start:size"))?;
    Ok(Bits {
        start: number(start)?,
        size: number(size)?,
    })
}

/// `a@0`, `b@3!2` (selector 2 not allowed), `b@3=3` (only selector 3).
fn parse_source(text: &str) -> Result<(u32, u8), String> {
    let (_, text) = text
        .split_once('@')
        .ok_or(format!("source {text:?} has no position"))?;
    let digits = |t: &str| {
        t.chars()
            .filter_map(|c| c.to_digit(8))
            .fold(0u8, |m, d| m | 1 << d)
    };
    if let Some((start, not)) = text.split_once('!') {
        return Ok((number(start)?, !digits(not)));
    }
    if let Some((start, only)) = text.split_once('=') {
        return Ok((number(start)?, digits(only)));
    }
    Ok((number(text)?, 0xff))
}

fn index_of(operation: &Operation, name: &str) -> Result<usize, String> {
    let found = operation.modifiers.iter().position(|m| m.name == name);
    found.ok_or(format!("{} has no modifier {name}", operation.name))
}

fn parse_encoding(operation: &Operation, text: &str, kinds: &Kinds) -> Result<Encoding, String> {
    let (text, fixed) = text.split_once(" with ").unwrap_or((text, ""));
    let (text, order) = text.split_once(" when ").unwrap_or((text, ""));
    let (exact, mask) = text.split_once('/').ok_or("an encoding is exact/mask")?;
    let (exact, mask) = (hex(exact)?, hex(mask)?);
    let mut encoding = Encoding {
        exact,
        mask,
        order: order.into(),
        fixed: Vec::new(),
        fields: Vec::new(),
    };
    for part in fixed.split_whitespace() {
        let (name, option) = part
            .split_once('=')
            .ok_or("a fixed modifier is name=option")?;
        encoding
            .fixed
            .push((index_of(operation, name)?, kinds.value(name, option)?));
    }
    Ok(encoding)
}

fn parse_field(operation: &Operation, text: &str, kinds: &Kinds) -> Result<Field, String> {
    let (head, cells) = text.split_once(' ').ok_or("a field without values")?;
    let (names, bits) = head.split_once('@').ok_or("a field without position")?;
    let names: Vec<&str> = names.split(',').collect();
    let modifiers = names
        .iter()
        .map(|n| index_of(operation, n))
        .collect::<Result<Vec<_>, _>>()?;
    let mut values = Vec::new();
    for cell in cells.split(' ') {
        if cell == "-" {
            values.push(None);
            continue;
        }
        let options: Vec<&str> = cell.split(',').collect();
        if options.len() != names.len() {
            return Err(format!("{cell:?} does not name {} modifiers", names.len()));
        }
        let one = names.iter().zip(options).map(|(n, o)| kinds.value(n, o));
        values.push(Some(one.collect::<Result<Vec<_>, _>>()?));
    }
    Ok(Field {
        position: parse_bits(bits)?,
        modifiers,
        values,
    })
}

/// Every bit is exactly one of: fixed, source, modifier, immediate, field.
fn check(operation: &Operation) -> Result<(), String> {
    let word: u32 = if operation.fma { 0x7f_ffff } else { 0xf_ffff };
    if operation.encodings.is_empty() {
        return Err(format!("{} has no encoding", operation.name));
    }
    for encoding in &operation.encodings {
        let at = format!(
            "{} {:x}/{:x}",
            operation.name, encoding.exact, encoding.mask
        );
        if encoding.exact & !encoding.mask != 0 || encoding.mask & !word != 0 {
            return Err(format!("{at}: bits outside the mask"));
        }
        let mut parts: Vec<u32> = operation.immediates.iter().map(|(_, b)| b.mask()).collect();
        parts.extend(
            operation
                .modifiers
                .iter()
                .filter_map(|m| m.position)
                .map(Bits::mask),
        );
        parts.extend(encoding.fields.iter().map(|f| f.position.mask()));
        let mut seen = encoding.mask;
        for part in parts {
            if seen & part != 0 {
                return Err(format!("{at}: bits {:x} have two meanings", seen & part));
            }
            seen |= part;
        }
        for (start, _) in &operation.sources {
            seen |= 7 << start; // may lie in the fixed bits: a source with one possible selector
        }
        if seen != word {
            return Err(format!("{at}: bits {:x} have no meaning", word & !seen));
        }
        for index in 0..operation.modifiers.len() {
            let fixed = encoding.fixed.iter().filter(|(i, _)| *i == index).count();
            let fields = encoding
                .fields
                .iter()
                .filter(|f| f.modifiers.contains(&index))
                .count();
            let plain = usize::from(operation.modifiers[index].position.is_some());
            if fixed + fields + plain != 1 {
                let name = &operation.modifiers[index].name;
                return Err(format!(
                    "{at}: modifier {name} has {} meanings",
                    fixed + fields + plain
                ));
            }
        }
    }
    Ok(())
}
