// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shorthands of the translation from instructions to micro-operations.

/// Emits a micro-operation on rows: `map!(translator, destination, [sources], |values| result)`. The expression is
/// compiled into a loop over lanes of its own.
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

/// Repeats `body` for each value of an enum, with the value as constant `name`: a modifier that is known when a shader
/// is translated costs nothing when it runs.
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

/// [`each!`] for the ways of rounding.
macro_rules! each_round {
    ($value:expr, $name:ident => $body:expr) => {
        each!($value, $name: Round { Even, Up, Down, Zero, Away, Odd } => $body)
    };
}

/// [`each!`] for comparisons.
macro_rules! each_compare {
    ($value:expr, $name:ident => $body:expr) => {
        each!($value, $name: Compare { Eq, Gt, Ge, Ne, Lt, Le, GtLt, Total } => $body)
    };
}
