// SPDX-License-Identifier: MIT OR Apache-2.0
//! Words of comments for readers of the code.

use syn::{
    Attribute, Expr, ExprLit, ItemEnum, ItemStruct, Lit, Meta,
    visit::{self, Visit},
};

use super::words;

/// Their documentation is help or a schema.
const PRINTED: [&str; 5] = ["Args", "JsonSchema", "Parser", "Subcommand", "ValueEnum"];

/// Without licence lines and what programs print.
pub(super) fn comment_words(source: &str) -> usize {
    let lines = source.lines().map(str::trim_start);
    let comments = lines.filter(|line| line.starts_with("//") && !line.starts_with("// SPDX"));
    let all: usize = comments
        .map(|line| words(line.trim_start_matches(['/', '!'])))
        .sum();
    let mut printed = Printed::default();
    if let Ok(file) = syn::parse_file(source) {
        printed.visit_file(&file);
    }
    all.saturating_sub(printed.words)
}

#[derive(Default)]
struct Printed {
    inside: bool,
    words: usize,
}

impl Printed {
    fn item(&mut self, attributes: &[Attribute], visit: impl FnOnce(&mut Self)) {
        let before = self.inside;
        self.inside |= attributes.iter().any(derives);
        visit(self);
        self.inside = before;
    }
}

impl<'a> Visit<'a> for Printed {
    fn visit_item_struct(&mut self, item: &'a ItemStruct) {
        self.item(&item.attrs, |all| visit::visit_item_struct(all, item));
    }

    fn visit_item_enum(&mut self, item: &'a ItemEnum) {
        self.item(&item.attrs, |all| visit::visit_item_enum(all, item));
    }

    fn visit_attribute(&mut self, attribute: &'a Attribute) {
        if let Some(text) = documentation(attribute).filter(|_| self.inside) {
            self.words += words(&text);
        }
    }
}

/// Also where a feature decides: `cfg_attr(feature = "schema", derive(JsonSchema))`.
fn derives(attribute: &Attribute) -> bool {
    let Meta::List(list) = &attribute.meta else {
        return false;
    };
    let text = list.tokens.to_string();
    let mut names = text.split(|letter: char| !letter.is_alphanumeric());
    ["derive", "cfg_attr"]
        .iter()
        .any(|name| list.path.is_ident(name))
        && names.any(|name| PRINTED.contains(&name))
}

fn documentation(attribute: &Attribute) -> Option<String> {
    match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(ExprLit {
                lit: Lit::Str(text),
                ..
            }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::comment_words;

    #[test]
    fn comments_count_without_marks_licence_and_help() {
        let source = "// SPDX-License-Identifier: MIT\n//! One two.\n\n/// Three.\nfn four() {\n    // Five - six.\n}\n";
        assert_eq!(comment_words(source), 5);
        let help = "/// Help of it.\n#[derive(Clone, clap::Args)]\nstruct A {\n    /// Help.\n    // No help.\n    a: u8,\n}\n";
        assert_eq!(comment_words(help), 2);
        let schema = help.replace(
            "derive(Clone, clap::Args)",
            "cfg_attr(a, derive(b::JsonSchema))",
        );
        assert_eq!(comment_words(&schema), 2);
        let none = "/// A type.\n#[derive(Clone)]\nstruct A {\n    /// A field.\n    a: u8,\n}\n";
        assert_eq!(comment_words(none), 4);
    }
}
