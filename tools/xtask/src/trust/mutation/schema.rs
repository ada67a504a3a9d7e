// SPDX-License-Identifier: MIT OR Apache-2.0
//! A source file with many changes behind switches.

use std::{collections::BTreeMap, ops::Range};

use proc_macro2::LineColumn;
use syn::{
    Arm, BinOp, Expr, UnOp,
    spanned::Spanned,
    visit::{self, Visit},
};

use super::change::{Change, Genre};

const IS_ON: &str = "::gpureplay_format::mutation::on";

/// Where a change lies in the text that [`instrument`] made.
pub(super) struct Place {
    pub(super) number: u32,
    pub(super) range: Range<usize>,
}

enum Piece {
    Operator {
        left: Range<usize>,
        right: Range<usize>,
    },
    /// An arm's guard, or the place where it has none.
    Guard,
    Body,
}

struct Node<'a> {
    range: Range<usize>,
    piece: Piece,
    changes: Vec<&'a Change>,
}

pub(super) struct Instrumented {
    pub(super) text: String,
    pub(super) places: Vec<Place>,
    /// A switch cannot make them.
    pub(super) lost: Vec<u32>,
    /// The compiler evaluates them: a switch may be too late.
    pub(super) constants: Vec<u32>,
}

pub(super) fn instrument(text: &str, changes: &[&Change]) -> syn::Result<Instrumented> {
    let file = syn::parse_file(text)?;
    let mut finder = Finder {
        lines: Lines::of(text),
        wanted: BTreeMap::new(),
        nodes: Vec::new(),
        constants: Vec::new(),
    };
    for change in changes {
        let start = finder.lines.offset(change.span.start());
        finder.wanted.entry(start).or_default().push(change);
    }
    for (&start, changes) in &finder.wanted {
        let bodies: Vec<_> = of(changes, Genre::FnValue).collect();
        if !bodies.is_empty() {
            finder.nodes.push(Node {
                range: start..start,
                piece: Piece::Body,
                changes: bodies,
            });
        }
    }
    finder.visit_file(&file);
    let constants = (finder.wanted.iter())
        .filter(|(at, _)| finder.constants.iter().any(|range| range.contains(at)))
        .flat_map(|(_, changes)| changes.iter().map(|change| change.number))
        .collect();
    let mut nodes = finder.nodes;
    // Outer pieces first.
    nodes.sort_by_key(|node| (node.range.start, std::cmp::Reverse(node.range.end)));
    // A body's switches come first.
    nodes.sort_by_key(|node| (node.range.start, !matches!(node.piece, Piece::Body)));
    let mut writer = Writer {
        text,
        made: String::with_capacity(text.len() * 4),
        places: Vec::new(),
    };
    writer.write(0..text.len(), &nodes);
    let found: std::collections::BTreeSet<u32> =
        writer.places.iter().map(|place| place.number).collect();
    let lost = changes
        .iter()
        .map(|change| change.number)
        .filter(|number| !found.contains(number))
        .collect();
    Ok(Instrumented {
        text: writer.made,
        places: writer.places,
        lost,
        constants,
    })
}

fn of<'a>(changes: &[&'a Change], genre: Genre) -> impl Iterator<Item = &'a Change> {
    changes
        .iter()
        .copied()
        .filter(move |change| change.genre == genre)
}

struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    fn of(text: &'t str) -> Self {
        let ends = text.match_indices('\n').map(|(at, _)| at + 1);
        Self {
            text,
            starts: std::iter::once(0).chain(ends).collect(),
        }
    }

    /// Lines from 1, columns from 0, in characters.
    fn offset(&self, place: LineColumn) -> usize {
        let start = self
            .starts
            .get(place.line.saturating_sub(1))
            .copied()
            .unwrap_or(self.text.len());
        let line = self.text.get(start..).unwrap_or_default();
        let within = line.char_indices().nth(place.column);
        start + within.map_or(line.len(), |(at, _)| at)
    }

    fn range(&self, spanned: &impl Spanned) -> Range<usize> {
        let span = spanned.span();
        self.offset(span.start())..self.offset(span.end())
    }
}

struct Finder<'a, 't> {
    lines: Lines<'t>,
    wanted: BTreeMap<usize, Vec<&'a Change>>,
    nodes: Vec<Node<'a>>,
    constants: Vec<Range<usize>>,
}

impl<'a> Finder<'a, '_> {
    fn changes(&self, start: usize, genre: Genre) -> Vec<&'a Change> {
        let found = self.wanted.get(&start).map(|all| of(all, genre).collect());
        found.unwrap_or_default()
    }

    fn add(&mut self, range: Range<usize>, piece: Piece, changes: Vec<&'a Change>) {
        if !changes.is_empty() {
            self.nodes.push(Node {
                range,
                piece,
                changes,
            });
        }
    }
}

impl<'ast> Visit<'ast> for Finder<'_, '_> {
    fn visit_item_static(&mut self, item: &'ast syn::ItemStatic) {
        self.constants.push(self.lines.range(item));
        visit::visit_item_static(self, item);
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        self.constants.push(self.lines.range(item));
        visit::visit_item_const(self, item);
    }

    fn visit_impl_item_const(&mut self, item: &'ast syn::ImplItemConst) {
        self.constants.push(self.lines.range(item));
        visit::visit_impl_item_const(self, item);
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if item.sig.constness.is_some() {
            self.constants.push(self.lines.range(item));
        }
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if item.sig.constness.is_some() {
            self.constants.push(self.lines.range(item));
        }
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_expr_binary(&mut self, binary: &'ast syn::ExprBinary) {
        // With `let … && …` no other operator is possible.
        if !(matches!(binary.op, BinOp::And(_))
            && (has_let(&binary.left) || has_let(&binary.right)))
        {
            let operator = self.lines.range(&binary.op).start;
            let changes = self.changes(operator, Genre::BinaryOperator);
            let piece = Piece::Operator {
                left: self.lines.range(&*binary.left),
                right: self.lines.range(&*binary.right),
            };
            self.add(self.lines.range(binary), piece, changes);
        }
        visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_unary(&mut self, unary: &'ast syn::ExprUnary) {
        if matches!(unary.op, UnOp::Not(_) | UnOp::Neg(_)) {
            let range = self.lines.range(unary);
            let changes = self.changes(range.start, Genre::UnaryOperator);
            let piece = Piece::Operator {
                left: range.start..range.start,
                right: self.lines.range(&*unary.expr),
            };
            self.add(range, piece, changes);
        }
        visit::visit_expr_unary(self, unary);
    }

    fn visit_arm(&mut self, arm: &'ast Arm) {
        let start = self.lines.range(arm).start;
        let mut changes = self.changes(start, Genre::MatchArm);
        let range = match &arm.guard {
            Some((_, guard)) => self.lines.range(&**guard),
            None => {
                let end = self.lines.range(&arm.pat).end;
                end..end
            }
        };
        if arm.guard.is_some() {
            changes.extend(self.changes(range.start, Genre::MatchArmGuard));
        }
        self.add(range, Piece::Guard, changes);
        visit::visit_arm(self, arm);
    }
}

fn has_let(expression: &Expr) -> bool {
    match expression {
        Expr::Let(_) => true,
        Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

struct Writer<'t> {
    text: &'t str,
    made: String,
    places: Vec<Place>,
}

impl Writer<'_> {
    fn copy(&mut self, range: Range<usize>) {
        self.made.push_str(self.text.get(range).unwrap_or_default());
    }

    fn changed(&mut self, number: u32, write: impl FnOnce(&mut Self)) {
        let start = self.made.len();
        write(self);
        self.places.push(Place {
            number,
            range: start..self.made.len(),
        });
    }

    fn write(&mut self, range: Range<usize>, nodes: &[Node<'_>]) {
        let mut at = range.start;
        let mut rest = nodes;
        while let Some((node, after)) = rest.split_first() {
            self.copy(at..node.range.start);
            let inside = match node.range.is_empty() {
                true => 0,
                false => after.partition_point(|inner| inner.range.start < node.range.end),
            };
            let (inside, outside) = after.split_at(inside);
            self.node(node, inside);
            at = node.range.end;
            rest = outside;
        }
        self.copy(at..range.end);
    }

    fn node(&mut self, node: &Node<'_>, inside: &[Node<'_>]) {
        match &node.piece {
            Piece::Body => {
                for change in &node.changes {
                    self.made
                        .push_str(&format!("if {IS_ON}({}) {{ ", change.number));
                    self.changed(change.number, |writer| {
                        writer
                            .made
                            .push_str(&format!("return {};", change.replacement));
                    });
                    self.made.push_str(" } ");
                }
            }
            Piece::Operator { left, right } => {
                self.made.push('(');
                for change in &node.changes {
                    self.made
                        .push_str(&format!("if {IS_ON}({}) {{ ", change.number));
                    self.changed(change.number, |writer| {
                        for (operand, between) in [(left, &*change.replacement), (right, "")] {
                            if !operand.is_empty() {
                                writer.made.push('(');
                                writer.copy(operand.clone());
                                writer.made.push(')');
                            }
                            writer.made.push_str(between);
                        }
                    });
                    self.made.push_str(" } else ");
                }
                self.made.push_str("{ ");
                self.write(node.range.clone(), inside);
                self.made.push_str(" })");
            }
            Piece::Guard => {
                if node.range.is_empty() {
                    self.made.push_str(" if true");
                } else {
                    self.made.push('(');
                    self.write(node.range.clone(), inside);
                    self.made.push(')');
                }
                let always = |change: &Change| {
                    change.genre == Genre::MatchArmGuard && change.replacement == "true"
                };
                let (ored, anded): (Vec<&Change>, Vec<&Change>) =
                    node.changes.iter().partition(|change| always(change));
                for change in anded.into_iter().chain(ored) {
                    let always = always(change);
                    self.changed(change.number, |writer| {
                        writer.made.push_str(&match always {
                            true => format!(" | {IS_ON}({})", change.number),
                            false => format!(" & !{IS_ON}({})", change.number),
                        });
                    });
                }
                if node.range.is_empty() {
                    self.made.push(' ');
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trust::mutation::change::{Position, Span};

    fn change(number: u32, genre: Genre, replacement: &str, line: usize, column: usize) -> Change {
        Change {
            number,
            name: String::new(),
            package: String::new(),
            file: String::new(),
            genre,
            replacement: replacement.to_owned(),
            span: Span {
                start: Position { line, column },
            },
        }
    }

    fn made(text: &str, changes: &[Change]) -> (String, Vec<u32>) {
        let all: Vec<&Change> = changes.iter().collect();
        let made = instrument(text, &all).unwrap();
        (made.text.replace(IS_ON, "on"), made.lost)
    }

    #[test]
    fn changes_of_one_expression_lie_behind_switches() {
        let text = "fn f(a: u8, b: u8) -> bool {\n    !(a + 1 < b)\n}\n";
        let changes = [
            change(1, Genre::FnValue, "true", 2, 5),
            change(2, Genre::UnaryOperator, "", 2, 5),
            change(3, Genre::BinaryOperator, "<=", 2, 13),
            change(4, Genre::BinaryOperator, "==", 2, 13),
            change(5, Genre::BinaryOperator, "-", 2, 9),
            change(6, Genre::BinaryOperator, "-", 2, 10),
        ];
        let (made, lost) = made(text, &changes);
        assert_eq!(
            made,
            "fn f(a: u8, b: u8) -> bool {\n    if on(1) { return true; } (if on(2) { ((a + 1 < b)) } else { \
             !((if on(3) { (a + 1)<=(b) } else if on(4) { (a + 1)==(b) } else { \
             (if on(5) { (a)-(1) } else { a + 1 }) < b })) })\n}\n"
        );
        assert_eq!(lost, [6], "no operator is there");
        syn::parse_file(&made).unwrap();
    }

    #[test]
    fn what_the_compiler_evaluates_is_known() {
        let text = "static A: u8 = 1 | 2;\nconst fn f() -> u8 {\n    1 | 2\n}\nfn g() -> u8 {\n    1 | 2\n}\n";
        let changes = [
            change(1, Genre::BinaryOperator, "&", 1, 18),
            change(2, Genre::BinaryOperator, "&", 3, 7),
            change(3, Genre::FnValue, "0", 3, 5),
            change(4, Genre::BinaryOperator, "&", 6, 7),
        ];
        let all: Vec<&Change> = changes.iter().collect();
        let mut constants = instrument(text, &all).unwrap().constants;
        constants.sort_unstable();
        assert_eq!(constants, [1, 2, 3]);
    }

    #[test]
    fn arms_and_guards_get_switches_and_chains_with_let_none() {
        let text = "fn f(a: Option<u8>) -> u8 {\n    if let Some(x) = a && x > 3 {\n        return 1;\n    }\n    \
                    match a {\n        Some(0) => 2,\n        Some(x) if x < 9 => 3,\n        _ => 4,\n    }\n}\n";
        let changes = [
            change(1, Genre::BinaryOperator, "||", 2, 24),
            change(2, Genre::BinaryOperator, "<", 2, 29),
            change(3, Genre::MatchArm, "", 6, 9),
            change(4, Genre::MatchArmGuard, "true", 7, 20),
            change(5, Genre::MatchArmGuard, "false", 7, 20),
            change(6, Genre::MatchArm, "", 7, 9),
        ];
        let (made, lost) = made(text, &changes);
        assert_eq!(lost, [1]);
        assert!(
            made.contains("&& (if on(2) { (x)<(3) } else { x > 3 }) {"),
            "{made}"
        );
        assert!(made.contains("Some(0) if true & !on(3)  => 2"), "{made}");
        assert!(
            made.contains("if (x < 9) & !on(6) & !on(5) | on(4) => 3"),
            "{made}"
        );
        syn::parse_file(&made).unwrap();
    }
}
