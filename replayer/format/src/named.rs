// SPDX-License-Identifier: MIT OR Apache-2.0
//! Enums whose values have names.

/// Declares an enum with documented and named values.
///
/// `Item = "name";` or `Item = 3, "name";`
#[macro_export]
macro_rules! named {
    ($(#[$outer:meta])+ $named:ident; $($(#[doc = $doc:literal])+ $item:ident = $name:literal;)+) => {
        $crate::named! { @ [$(#[$outer])+] $named; $([$($doc)+] $item [] $name;)+ }
    };
    ($(#[$outer:meta])+ $named:ident; $($(#[doc = $doc:literal])+ $item:ident = $code:literal, $name:literal;)+) => {
        $crate::named! { @ [$(#[$outer])+] $named; $([$($doc)+] $item [= $code] $name;)+ }

        impl $named {
            /// `None` for an unassigned number.
            pub const fn from_code(code: u32) -> Option<Self> {
                match code { $($code => Some(Self::$item),)+ _ => None }
            }

            /// Number in the file.
            pub const fn code(self) -> u8 { self as u8 }
        }
    };
    (@ [$($outer:tt)+] $named:ident; $([$($doc:literal)+] $item:ident [$($code:tt)*] $name:literal;)+) => {
        $($outer)+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum $named { $($(#[doc = $doc])+ $item $($code)*,)+ }

        impl $named {
            /// In the order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$item),+];

            /// Name that commands and documents use.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$item => $name,)+ }
            }

            /// Each ended by a zero byte: in firmware smaller than [`Self::name`].
            pub const NAMES: &'static str = concat!($($name, "\0"),+);

            /// What it stands for, or demands.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$item => concat!($($doc),+),)+ }
            }
        }
    };
}
