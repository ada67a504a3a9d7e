// SPDX-License-Identifier: MIT OR Apache-2.0
//! Resolves type names of a program's source, such as `net_t`.
//!
//! Typedefs of names are followed, as far as conditions on macros say which holds. Under an unknown condition, a
//! typedef counts only if nothing else gives the name another meaning.

use std::collections::{BTreeMap, BTreeSet};

pub(crate) const MAX_SOURCE_BYTES: usize = 1 << 22;
const MAX_MEANING_BYTES: usize = 256;
const MAX_STEPS: usize = 8;
const MAX_DEPTH: usize = 64;

const CONST: &str = "const ";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Yes,
    No,
    Maybe,
}

impl Known {
    fn of(yes: bool) -> Self {
        if yes { Self::Yes } else { Self::No }
    }

    fn not(self) -> Self {
        match self {
            Self::Yes => Self::No,
            Self::No => Self::Yes,
            Self::Maybe => Self::Maybe,
        }
    }

    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::No, _) | (_, Self::No) => Self::No,
            (Self::Yes, Self::Yes) => Self::Yes,
            _ => Self::Maybe,
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Types {
    meanings: BTreeMap<String, BTreeSet<String>>,
}

#[derive(Default)]
struct Macros(BTreeMap<String, Known>);

impl Macros {
    fn of(options: &str) -> Self {
        let mut words = options.split_whitespace();
        let mut found = Self::default();
        while let Some(word) = words.next() {
            let Some(definition) = word.strip_prefix("-D") else {
                continue;
            };
            let definition = match definition {
                "" => words.next().unwrap_or_default(),
                definition => definition,
            };
            let name = definition.split(['=', '(']).next().unwrap_or_default();
            found.0.insert(name.to_owned(), Known::Yes);
        }
        found
    }

    fn is_defined(&self, name: &str) -> Known {
        match self.0.get(name) {
            Some(known) => *known,
            // Names that the compiler itself defines are unknown.
            None if name.starts_with("__") || name.starts_with("cl_") => Known::Maybe,
            None => Known::No,
        }
    }

    /// `defined(NAME)`, `!defined NAME`, `0` and `1`.
    fn holds(&self, condition: &str) -> Known {
        let condition = condition.trim();
        if let Some(rest) = condition.strip_prefix('!') {
            return self.holds(rest).not();
        }
        let name = condition.strip_prefix("defined").map(str::trim);
        let name = name.map(|name| {
            let inner = name.strip_prefix('(').and_then(|it| it.strip_suffix(')'));
            inner.unwrap_or(name).trim()
        });
        match (condition, name) {
            ("0", _) => Known::No,
            ("1", _) => Known::Yes,
            (_, Some(name)) if is_name(name) => self.is_defined(name),
            _ => Known::Maybe,
        }
    }
}

pub(crate) fn is_built_in(type_name: &str) -> bool {
    const SCALARS: [&str; 13] = [
        "", "void", "bool", "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong",
        "float", "double",
    ];
    const OTHERS: [&str; 4] = ["half", "sampler_t", "event_t", "unsigned"];
    let name = type_name.strip_prefix(CONST).unwrap_or(type_name);
    let name = name.trim_end_matches(['*', ' ']);
    let scalar = name.trim_end_matches(|c: char| c.is_ascii_digit());
    SCALARS.contains(&scalar) || OTHERS.contains(&scalar) || name.starts_with("image")
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Whether the present branch counts, and whether one did already.
struct Condition {
    here: Known,
    before: Known,
}

impl Types {
    pub(crate) fn of(source: &str, options: &str) -> Self {
        let mut macros = Macros::of(options);
        let mut conditions: Vec<Condition> = Vec::new();
        let mut types = Self::default();
        let mut statement = String::new();
        for line in plain(source).lines() {
            let line = line.trim();
            let Some(directive) = line.strip_prefix('#').map(str::trim) else {
                let here = conditions
                    .iter()
                    .fold(Known::Yes, |all, it| all.and(it.here));
                if here != Known::No {
                    types.read(line, &mut statement);
                }
                continue;
            };
            let (word, rest) = directive
                .split_once(|c: char| c.is_whitespace() || c == '(' || c == '!')
                .map_or((directive, ""), |(word, _)| {
                    (word, directive[word.len()..].trim())
                });
            let first = rest.split(|c: char| !is_name(c.encode_utf8(&mut [0; 4])));
            let first = first.into_iter().next().unwrap_or_default();
            let condition = match word {
                "if" => Some(macros.holds(rest)),
                "ifdef" => Some(macros.is_defined(first)),
                "ifndef" => Some(macros.is_defined(first).not()),
                _ => None,
            };
            if let Some(here) = condition {
                if conditions.len() == MAX_DEPTH {
                    return Self::default();
                }
                conditions.push(Condition { here, before: here });
                continue;
            }
            match (word, conditions.last_mut()) {
                ("else" | "elif", Some(condition)) => {
                    let holds = match word {
                        "else" => Known::Yes,
                        _ => macros.holds(rest),
                    };
                    condition.here = condition.before.not().and(holds);
                    condition.before = condition.before.not().and(holds.not()).not();
                }
                ("endif", Some(_)) => drop(conditions.pop()),
                ("define" | "undef", _) => {
                    let here = conditions
                        .iter()
                        .fold(Known::Yes, |all, it| all.and(it.here));
                    let known = match here {
                        Known::Yes => Known::of(word == "define"),
                        Known::Maybe => Known::Maybe,
                        Known::No => continue,
                    };
                    macros.0.insert(first.to_owned(), known);
                }
                _ => {}
            }
        }
        types
    }

    /// Unfinished statements stay in `statement`.
    fn read(&mut self, line: &str, statement: &mut String) {
        for piece in line.split_inclusive([';', '{', '}']) {
            statement.push_str(piece);
            statement.push(' ');
            let Some(ended) = piece
                .chars()
                .last()
                .filter(|c| matches!(c, ';' | '{' | '}'))
            else {
                continue;
            };
            let text = std::mem::take(statement);
            let words: Vec<&str> = text
                .trim()
                .trim_end_matches(';')
                .split_whitespace()
                .collect();
            let [typedef, meaning @ .., name] = words.as_slice() else {
                continue;
            };
            if *typedef == "typedef" && ended == ';' && !meaning.is_empty() && is_name(name) {
                let meaning = meaning.join(" ");
                // A longer text is no name, and would be kept for each argument.
                if meaning.len() > MAX_MEANING_BYTES {
                    continue;
                }
                let meanings = self.meanings.entry((*name).to_owned()).or_default();
                meanings.insert(meaning);
            }
        }
    }

    /// Such as `half*` for `net_t*`; unchanged if uncertain.
    pub(crate) fn resolve(&self, type_name: &str) -> String {
        let bare = type_name.strip_prefix(CONST);
        let mut text = bare.unwrap_or(type_name).to_owned();
        for _ in 0..MAX_STEPS {
            let end = text.find(|c: char| !is_name(c.encode_utf8(&mut [0; 4])));
            let (name, rest) = text.split_at(end.unwrap_or(text.len()));
            let meanings = self
                .meanings
                .get(name)
                .map(|all| all.iter().collect::<Vec<_>>());
            match meanings.as_deref() {
                Some([meaning]) => text = format!("{meaning}{rest}"),
                _ => break,
            }
        }
        match bare {
            Some(_) => format!("{CONST}{text}"),
            None => text,
        }
    }
}

fn plain(source: &str) -> String {
    let source = source.replace("\\\r\n", " ").replace("\\\n", " ");
    let mut out = String::with_capacity(source.len());
    let mut rest = source.as_str();
    while let Some(at) = rest.find('/') {
        let (before, comment) = rest.split_at(at);
        out.push_str(before);
        let end = match comment.as_bytes().get(1) {
            Some(b'/') => comment.find('\n').unwrap_or(comment.len()),
            Some(b'*') => {
                out.push(' ');
                comment
                    .get(2..)
                    .and_then(|inner| inner.find("*/"))
                    .map_or(comment.len(), |at| at + 4)
            }
            _ => {
                out.push('/');
                1
            }
        };
        rest = comment.get(end..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const NET: &str = "#ifdef USE_HALF\n\
        typedef half net_t; // 16 bits\n\
        #define load(p) vload_half(p)\n\
        #else\n\
        typedef float net_t;\n\
        #endif\n\
        typedef /* four */ net_t\n pixel_t;\n\
        kernel void f(global net_t *a) { }\n";

    #[test]
    fn typedefs_are_followed_under_the_conditions_of_a_build() {
        let half = Types::of(NET, "-cl-mad-enable -DUSE_HALF -DN=3");
        assert_eq!(half.resolve("net_t*"), "half*");
        assert_eq!(half.resolve("const pixel_t*"), "const half*");
        assert_eq!(half.resolve("float4*"), "float4*");
        let float = Types::of(NET, "-D OTHER");
        assert_eq!(float.resolve("net_t*"), "float*");
        let own = Types::of(&format!("#define USE_HALF 1\n{NET}"), "");
        assert_eq!(own.resolve("net_t*"), "half*");
        let forms = "#if !defined(A)\ntypedef int t;\n#elif defined(B)\ntypedef uint t;\n#else\ntypedef short t;\n#endif";
        for (options, expected) in [("", "int"), ("-DA -DB", "uint"), ("-DA=1", "short")] {
            assert_eq!(
                Types::of(forms, options).resolve("t"),
                expected,
                "{options}"
            );
        }
    }

    #[test]
    fn types_of_the_language_need_no_source() {
        for name in ["float4*", "half *", "sampler_t", "image2d_t", "uint", ""] {
            assert!(is_built_in(name), "{name}");
        }
        assert!(!is_built_in("net_t*") && !is_built_in("real"));
    }

    #[test]
    fn a_meaning_that_is_no_name_is_not_kept() {
        let others = "other, ".repeat(1000);
        let types = Types::of(&format!("typedef int {others} t; typedef half u;"), "");
        assert_eq!(
            (types.resolve("t*"), types.resolve("u*")),
            ("t*".into(), "half*".into())
        );
    }

    #[test]
    fn what_is_not_certain_stays_as_it_is() {
        let unknown = NET.replace("#ifdef USE_HALF", "#if VERSION > 3");
        assert_eq!(Types::of(&unknown, "").resolve("net_t*"), "net_t*");
        let of_compiler = NET.replace("USE_HALF", "cl_khr_fp16");
        assert_eq!(Types::of(&of_compiler, "").resolve("net_t*"), "net_t*");
        let alike = unknown.replace("typedef float net_t", "typedef half net_t");
        assert_eq!(Types::of(&alike, "").resolve("net_t*"), "half*");
        let circle = "typedef a b; typedef b a;";
        assert!(["a", "b"].contains(&Types::of(circle, "").resolve("a").as_str()));
        let structure = "typedef struct { int typedef_; } s; typedef struct s t;";
        assert_eq!(Types::of(structure, "").resolve("s*"), "s*");
        for source in [
            "#",
            "#if",
            "#endif\n#else",
            "typedef",
            "typedef;",
            "/*",
            "/",
            "#define",
            "\\",
        ] {
            assert_eq!(Types::of(source, "-D").resolve("t"), "t", "{source}");
        }
        let deep = "#if 1\n".repeat(100) + "typedef int t;";
        assert_eq!(Types::of(&deep, "").resolve("t"), "t");
    }
}
