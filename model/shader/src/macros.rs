// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shorthands of the translation to micro-operations.
//!
//! A modifier known at translation costs nothing at run time with a loop of its own. Frequent values get one; the
//! others share a loop that takes the modifier as a number.

/// `map!(translator, destination, [sources], |values| result)`: on rows, in a loop of its own.
#[macro_export]
macro_rules! map {
    ($t:expr, $d:expr, [$a:expr], |$x:pat_param| $body:expr) => {{
        let (d, sources) = ($d, [$a]);
        let run = $crate::operations::loops::one(
            #[inline(always)]
            |_, $x| $body,
        );
        $t.rows(run, d, sources, 0);
    }};
    ($t:expr, $d:expr, [$a:expr, $b:expr], |$x:pat_param, $y:pat_param| $body:expr) => {{
        let (d, sources) = ($d, [$a, $b]);
        let run = $crate::operations::loops::two(
            #[inline(always)]
            |_, $x, $y| $body,
        );
        $t.rows(run, d, sources, 0);
    }};
    ($t:expr, $d:expr, [$a:expr, $b:expr, $c:expr], |$x:pat_param, $y:pat_param, $z:pat_param| $body:expr) => {{
        let (d, sources) = ($d, [$a, $b, $c]);
        let run = $crate::operations::loops::three(
            #[inline(always)]
            |_, $x, $y, $z| $body,
        );
        $t.rows(run, d, sources, 0);
    }};
    ($t:expr, $d:expr, [$a:expr, $b:expr, $c:expr, $e:expr],
     |$x:pat_param, $y:pat_param, $z:pat_param, $w:pat_param| $body:expr) => {{
        let (d, sources) = ($d, [$a, $b, $c, $e]);
        let run = $crate::operations::loops::four(
            #[inline(always)]
            |_, $x, $y, $z, $w| $body,
        );
        $t.rows(run, d, sources, 0);
    }};
}

/// `rare!(translator, destination, [sources], m, |m, values| result)`: compiled once, for one lane; `m` are the
/// modifiers.
#[macro_export]
macro_rules! rare {
    ($t:expr, $d:expr, [$a:expr], $m:expr, |$n:pat_param, $x:pat_param| $body:expr) => {{
        let (d, sources, m) = ($d, [$a], $m);
        $t.rare(
            $crate::operations::loops::rare::one(|$n, $x| $body),
            d,
            sources,
            m,
        );
    }};
    ($t:expr, $d:expr, [$a:expr, $b:expr], $m:expr, |$n:pat_param, $x:pat_param, $y:pat_param| $body:expr) => {{
        let (d, sources, m) = ($d, [$a, $b], $m);
        $t.rare(
            $crate::operations::loops::rare::two(|$n, $x, $y| $body),
            d,
            sources,
            m,
        );
    }};
    ($t:expr, $d:expr, [$a:expr, $b:expr, $c:expr], $m:expr,
     |$n:pat_param, $x:pat_param, $y:pat_param, $z:pat_param| $body:expr) => {{
        let (d, sources, m) = ($d, [$a, $b, $c], $m);
        $t.rare(
            $crate::operations::loops::rare::three(|$n, $x, $y, $z| $body),
            d,
            sources,
            m,
        );
    }};
    ($t:expr, $d:expr, [$a:expr, $b:expr, $c:expr, $e:expr], $m:expr,
     |$n:pat_param, $x:pat_param, $y:pat_param, $z:pat_param, $w:pat_param| $body:expr) => {{
        let (d, sources, m) = ($d, [$a, $b, $c, $e], $m);
        $t.rare(
            $crate::operations::loops::rare::four(|$n, $x, $y, $z, $w| $body),
            d,
            sources,
            m,
        );
    }};
}

/// `direct!(translator, |a, b| result)`: of unmodified sources.
#[macro_export]
macro_rules! direct {
    ($t:expr, |$x:ident| $body:expr) => {{
        let (d, a) = ($t.dest, $t.source(0)?);
        $crate::map!($t, d, [a], |$x| $body);
        Ok(())
    }};
    ($t:expr, |$x:ident, $y:ident| $body:expr) => {{
        let (d, a, b) = ($t.dest, $t.source(0)?, $t.source(1)?);
        $crate::map!($t, d, [a, b], |$x, $y| $body);
        Ok(())
    }};
    ($t:expr, |$x:ident, $y:ident, $z:ident| $body:expr) => {{
        let (d, a, b, c) = ($t.dest, $t.source(0)?, $t.source(1)?, $t.source(2)?);
        $crate::map!($t, d, [a, b, c], |$x, $y, $z| $body);
        Ok(())
    }};
}

/// Repeats `body` per value of an enum, as constant `name`.
#[macro_export]
macro_rules! each {
    ($value:expr, $name:ident: $kind:ident { $($variant:ident),+ $(,)? } => $body:expr) => {
        match $value {
            $($kind::$variant => {
                const $name: $kind = $kind::$variant;
                $body
            })+
        }
    };
}

/// With rounding: `rounded!(translator, way, [ways with loops of their own], destination, [sources],
/// |way, values| result)`.
#[macro_export]
macro_rules! rounded {
    ($t:expr, $how:expr, [$($often:ident),*], $d:expr, [$a:expr], |$round:ident, $x:ident| $body:expr) => {
        match $how {
            $(Round::$often => $crate::map!($t, $d, [$a], |$x| {
                let $round = Round::$often;
                $body
            }),)*
            seldom => $crate::rare!($t, $d, [$a], seldom as u32, |m, $x| {
                let $round = Round::numbered(m);
                $body
            }),
        }
    };
    ($t:expr, $how:expr, [$($often:ident),*], $d:expr, [$a:expr, $b:expr], |$round:ident, $x:ident, $y:ident| $body:expr) => {
        match $how {
            $(Round::$often => $crate::map!($t, $d, [$a, $b], |$x, $y| {
                let $round = Round::$often;
                $body
            }),)*
            seldom => $crate::rare!($t, $d, [$a, $b], seldom as u32, |m, $x, $y| {
                let $round = Round::numbered(m);
                $body
            }),
        }
    };
    ($t:expr, $how:expr, [$($often:ident),*], $d:expr, [$a:expr, $b:expr, $c:expr], |$round:ident, $x:ident, $y:ident, $z:ident| $body:expr) => {
        match $how {
            $(Round::$often => $crate::map!($t, $d, [$a, $b, $c], |$x, $y, $z| {
                let $round = Round::$often;
                $body
            }),)*
            seldom => $crate::rare!($t, $d, [$a, $b, $c], seldom as u32, |m, $x, $y, $z| {
                let $round = Round::numbered(m);
                $body
            }),
        }
    };
    ($t:expr, $how:expr, [$($often:ident),*], $d:expr, [$a:expr, $b:expr, $c:expr, $e:expr], |$round:ident, $x:ident, $y:ident, $z:ident, $w:ident| $body:expr) => {
        match $how {
            $(Round::$often => $crate::map!($t, $d, [$a, $b, $c, $e], |$x, $y, $z, $w| {
                let $round = Round::$often;
                $body
            }),)*
            seldom => $crate::rare!($t, $d, [$a, $b, $c, $e], seldom as u32, |m, $x, $y, $z, $w| {
                let $round = Round::numbered(m);
                $body
            }),
        }
    };
}
