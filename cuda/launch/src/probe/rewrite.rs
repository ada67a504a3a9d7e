// SPDX-License-Identifier: MIT OR Apache-2.0
//! The text with calls of probes.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::access::{self, Access, Found, Kind, Space};
use super::registers::Registers;
use super::scan::{Statement, Statements, What, without_comments};
use super::{ProbeError, module};

/// Sites that a text may have.
pub const MAX_SITES: usize = 1 << 16;
/// In bytes: names of functions and files, which sites repeat.
const MAX_NAMES: usize = 128 << 20;
const SHOWN_CHARS: usize = 120;

/// What is called, and where.
#[derive(Clone, Copy, Debug, Default)]
pub struct Calls<'a> {
    /// `gpureplay_global`, `gpureplay_shared`, `gpureplay_generic` before accesses: address, site, bytes.
    pub accesses: bool,
    /// `gpureplay_block` at basic blocks: site.
    pub blocks: bool,
    /// `gpureplay_race` before shared accesses: address, site, bytes, kind, barriers of block and warp so far.
    pub races: bool,
    /// The user's function, called at all of these: address, site, bytes, kind (0 load, 1 store, 2 atomic, 3 block).
    pub own: Option<&'a str>,
}

/// Place where probes are called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// None at a basic block.
    pub access: Option<(Kind, Space)>,
    /// Bytes of one thread.
    pub bytes: u32,
    /// Its function.
    pub function: String,
    /// Its instruction.
    pub instruction: String,
    /// PTX line, from 1.
    pub line: usize,
    /// Source, if known.
    pub source: Option<(String, u32)>,
}

/// A text with probes.
#[derive(Clone, Debug)]
pub struct Instrumented {
    /// To compile.
    pub text: String,
    /// By number.
    pub sites: Vec<Site>,
    /// Unfollowed accesses, with counts.
    pub left_out: BTreeMap<String, usize>,
    /// Why races may be wrong.
    pub unordered: Option<&'static str>,
}

/// Adds calls to a kernel's text; `probes` has the called functions.
///
/// # Errors
/// No text, or unfit for probes.
pub fn instrument(
    text: &[u8],
    kernel: &str,
    calls: &Calls<'_>,
    probes: &str,
) -> Result<Instrumented, ProbeError> {
    let end = text.iter().position(|byte| *byte == 0);
    let text = &text[..end.unwrap_or(text.len())];
    let text = std::str::from_utf8(text).map_err(|_| ProbeError::Text)?;
    if text.contains("gpureplay_") {
        return Err(ProbeError::Name);
    }
    let text = without_comments(text);
    let module = module::of(&text)?;
    if !module
        .functions
        .iter()
        .any(|one| one.is_entry && one.name == kernel)
    {
        return Err(ProbeError::NoKernel(kernel.to_owned()));
    }
    let mut rewriter = Rewriter {
        text: &text,
        calls,
        files: &module.files,
        out: String::with_capacity(text.len() * 2),
        copied: 0,
        line: (0, 1),
        source: None,
        sites: Vec::new(),
        names: 0,
        left_out: BTreeMap::new(),
        unordered: None,
    };
    rewriter.copy_to(module.head);
    rewriter.out.push('\n');
    rewriter.out.push_str(probes);
    rewriter.out.push('\n');
    for function in &module.functions {
        if !function.is_entry || function.name == kernel {
            rewriter.function(function)?;
        }
    }
    rewriter.copy_to(text.len());
    Ok(Instrumented {
        text: rewriter.out,
        sites: rewriter.sites,
        left_out: rewriter.left_out,
        unordered: rewriter.unordered,
    })
}

struct Rewriter<'a> {
    text: &'a str,
    calls: &'a Calls<'a>,
    files: &'a BTreeMap<u32, &'a str>,
    out: String,
    copied: usize,
    line: (usize, usize),
    source: Option<(u32, u32)>,
    sites: Vec<Site>,
    names: usize,
    left_out: BTreeMap<String, usize>,
    unordered: Option<&'static str>,
}

impl<'a> Rewriter<'a> {
    fn copy_to(&mut self, end: usize) {
        self.out
            .push_str(self.text.get(self.copied..end).unwrap_or_default());
        self.copied = end;
    }

    fn line_of(&mut self, at: usize) -> usize {
        let between = self.text.get(self.line.0..at).unwrap_or_default();
        self.line.1 += between.bytes().filter(|byte| *byte == b'\n').count();
        self.line.0 = at;
        self.line.1
    }

    fn function(&mut self, function: &module::Function<'a>) -> Result<(), ProbeError> {
        let (statements, is_ended) = body(self.text, function.body);
        if !is_ended {
            return Err(ProbeError::Unended);
        }
        let carries = carries(&statements);
        let mut registers = Registers::default();
        let races = self.calls.races && function.is_entry;
        let mut begins = true;
        self.source = None;
        for (statement, carries) in statements.iter().zip(carries) {
            match statement.what {
                What::Open => {
                    registers.open();
                    if races && statement.start == function.body {
                        self.copy_to(statement.end);
                        self.out.push_str(COUNTERS);
                    }
                }
                What::Close => registers.close(),
                What::Label => begins = true,
                // 0 means no line.
                What::Loc(words) => {
                    self.source = location(words)
                        .filter(|(_, line)| *line > 0)
                        .or(self.source)
                }
                What::Directive(text) => registers.declare(text),
                What::Instruction(text) => {
                    self.copy_to(statement.start);
                    if begins && self.calls.blocks && !carries {
                        self.block(statement, function.name, text)?;
                        begins = false;
                    }
                    let (predicate, plain) = access::predicate(text);
                    begins |= predicate.is_some() && access::name(plain).starts_with("bra");
                    match access::access(plain) {
                        Found::Access(_) if carries => {
                            self.leave_out("an access between additions with carry")
                        }
                        Found::Access(found) => self.access(
                            statement,
                            function,
                            (predicate, plain),
                            &found,
                            &registers,
                        )?,
                        Found::LeftOut(name) => self.leave_out(name),
                        Found::Nothing if races => self.count_barrier(statement, predicate, plain),
                        Found::Nothing => {}
                    }
                }
            }
        }
        Ok(())
    }

    fn leave_out(&mut self, what: &str) {
        *self.left_out.entry(what.to_owned()).or_default() += 1;
    }

    fn site(
        &mut self,
        at: usize,
        access: Option<(Kind, Space)>,
        bytes: u32,
        function: &str,
        text: &str,
    ) -> Result<usize, ProbeError> {
        if self.sites.len() >= MAX_SITES {
            return Err(ProbeError::TooMany);
        }
        let line = self.line_of(at);
        let source = self
            .source
            .and_then(|(file, line)| Some((*self.files.get(&file)?, line)));
        self.names += function.len() + source.map_or(0, |(file, _)| file.len());
        if self.names > MAX_NAMES {
            return Err(ProbeError::Names);
        }
        let instruction: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        self.sites.push(Site {
            access,
            bytes,
            function: function.to_owned(),
            instruction: instruction.chars().take(SHOWN_CHARS).collect(),
            line,
            source: source.map(|(file, line)| (file.to_owned(), line)),
        });
        Ok(self.sites.len() - 1)
    }

    fn block(
        &mut self,
        statement: &Statement<'_>,
        function: &str,
        text: &str,
    ) -> Result<(), ProbeError> {
        let site = self.site(statement.start, None, 0, function, text)?;
        self.call("gpureplay_block", &[&site]);
        if let Some(own) = self.calls.own {
            self.call(own, &[&0, &site, &0, &3]);
        }
        Ok(())
    }

    fn call(&mut self, name: &str, arguments: &[&dyn std::fmt::Display]) {
        let list: Vec<String> = arguments.iter().map(|one| one.to_string()).collect();
        let _ = writeln!(self.out, "call {name}, ({});", list.join(", "));
    }

    fn access(
        &mut self,
        statement: &Statement<'_>,
        function: &module::Function<'_>,
        (predicate, plain): (Option<&str>, &str),
        found: &Access<'_>,
        registers: &Registers<'_>,
    ) -> Result<(), ProbeError> {
        let Access {
            kind,
            space,
            bytes,
            base,
            offset,
        } = *found;
        let is_wanted = self.calls.accesses
            || self.calls.own.is_some()
            || self.calls.races && space != Space::Global;
        if !is_wanted {
            return Ok(());
        }
        let Some(address) = address(found, registers) else {
            self.leave_out("an address that is not understood");
            return Ok(());
        };
        let site = self.site(
            statement.start,
            Some((kind, space)),
            bytes,
            function.name,
            plain,
        )?;
        if let Some(predicate) = predicate {
            let (sign, name) = match predicate.strip_prefix('!') {
                Some(name) => ("", name),
                None => ("!", predicate),
            };
            let _ = writeln!(self.out, "@{sign}{name} bra $gpureplay_{site};");
        }
        let _ = writeln!(
            self.out,
            "{{\n.reg .b64 %gpureplay_a;\n.reg .b32 %gpureplay_b;\n{address}"
        );
        debug_assert!(!base.is_empty() && !offset.is_empty());
        if self.calls.accesses {
            let (name, register) = match space {
                Space::Global => ("gpureplay_global", "%gpureplay_a"),
                Space::Shared => ("gpureplay_shared", "%gpureplay_b"),
                Space::Generic => ("gpureplay_generic", "%gpureplay_a"),
            };
            self.call(name, &[&register, &site, &bytes]);
        }
        if self.calls.races && space != Space::Global {
            if function.is_entry {
                let (name, register) = match space {
                    Space::Generic => ("gpureplay_race_generic", "%gpureplay_a"),
                    _ => ("gpureplay_race", "%gpureplay_b"),
                };
                self.call(
                    name,
                    &[
                        &register,
                        &site,
                        &bytes,
                        &kind.number(),
                        &"%gpureplay_barriers",
                        &"%gpureplay_warp",
                    ],
                );
            } else {
                self.unordered = Some("a function of the kernel reaches shared memory");
            }
        }
        if let Some(own) = self.calls.own {
            self.call(own, &[&"%gpureplay_a", &site, &bytes, &kind.number()]);
        }
        self.out.push_str("}\n");
        if predicate.is_some() {
            let _ = writeln!(self.out, "$gpureplay_{site}:");
        }
        Ok(())
    }

    fn count_barrier(&mut self, statement: &Statement<'_>, predicate: Option<&str>, plain: &str) {
        let name = access::name(plain);
        let counter = if name.starts_with("bar.warp.sync") {
            "%gpureplay_warp"
        } else if name.starts_with("bar.") || name.starts_with("barrier.") {
            let is_of_all = ["sync", "red"]
                .iter()
                .any(|what| name.split('.').any(|word| word == *what));
            let operands = plain[name.len()..].split(',').count();
            let is_of_all =
                is_of_all && !name.contains("cluster") && (operands == 1 || name.contains(".red"));
            if !is_of_all {
                self.unordered = Some("a barrier is of some threads of the block only");
            }
            "%gpureplay_barriers"
        } else {
            return;
        };
        self.copy_to(statement.end);
        let predicate = predicate
            .map(|predicate| format!("@{predicate} "))
            .unwrap_or_default();
        let _ = writeln!(self.out, "\n{predicate}add.u32 {counter}, {counter}, 1;");
    }
}

/// Barriers that a thread has passed: of its block, of its warp.
const COUNTERS: &str = "
.reg .b32 %gpureplay_barriers, %gpureplay_warp;
mov.u32 %gpureplay_barriers, 0;
mov.u32 %gpureplay_warp, 0;
";

fn body(text: &str, start: usize) -> (Vec<Statement<'_>>, bool) {
    let mut depth = 0usize;
    let mut all = Vec::new();
    for statement in Statements::new(text, start) {
        all.push(statement);
        match statement.what {
            What::Open => depth += 1,
            What::Close => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return (all, true);
                }
            }
            _ => {}
        }
    }
    (all, false)
}

/// Whether a carry is alive at each statement; a call would lose it.
fn carries(statements: &[Statement<'_>]) -> Vec<bool> {
    let mut is_alive = false;
    let mut all: Vec<bool> = statements
        .iter()
        .rev()
        .map(|statement| {
            let What::Instruction(text) = statement.what else {
                is_alive &= !matches!(statement.what, What::Label);
                return is_alive;
            };
            let name = access::name(access::predicate(text).1);
            if ["addc", "subc", "madc"]
                .iter()
                .any(|one| name.starts_with(one))
            {
                is_alive = true;
            } else if name.split('.').any(|word| word == "cc") || name.starts_with("bra") {
                is_alive = false;
            }
            is_alive
        })
        .collect();
    all.reverse();
    all
}

fn location(words: &str) -> Option<(u32, u32)> {
    let mut words = words
        .split([' ', '\t', ','])
        .filter(|word| !word.is_empty());
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

/// PTX that puts an address into `%gpureplay_a`, for shared memory also into `%gpureplay_b`.
fn address(access: &Access<'_>, registers: &Registers<'_>) -> Option<String> {
    let Access {
        space,
        base,
        offset,
        ..
    } = *access;
    let digits = offset.strip_prefix('-').unwrap_or(offset);
    let is_number = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()),
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%');
    if !is_number(digits) || base.is_empty() || !base.chars().all(is_name) {
        return None;
    }
    let load = match (space, registers.bits(base)) {
        (Space::Shared, Some(32)) => format!("mov.b32 %gpureplay_b, {base};"),
        (Space::Shared, Some(64)) => format!("cvt.u32.u64 %gpureplay_b, {base};"),
        (Space::Shared, None) if base.starts_with('%') => return None,
        (Space::Shared, None) => format!("mov.u32 %gpureplay_b, {base};"),
        (_, Some(64)) => format!("mov.b64 %gpureplay_a, {base};"),
        (_, Some(32)) => format!("cvt.u64.u32 %gpureplay_a, {base};"),
        (Space::Global, None) if !base.starts_with('%') => format!("mov.u64 %gpureplay_a, {base};"),
        _ => return None,
    };
    Some(match space {
        Space::Shared => format!(
            "{load}\nadd.s32 %gpureplay_b, %gpureplay_b, {offset};\ncvt.u64.u32 %gpureplay_a, %gpureplay_b;"
        ),
        _ => format!("{load}\nadd.s64 %gpureplay_a, %gpureplay_a, {offset};"),
    })
}
