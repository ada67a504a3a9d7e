// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernel interface structures, with sizes.

macro_rules! structures {
    ($($(#[$doc:meta])* $name:ident: $bytes:expr, { $($field:ident: $type:ty),* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[repr(C)]
        pub(crate) struct $name { $(pub(crate) $field: $type),* }

        const _: () = assert!(size_of::<$name>() == $bytes);
    )*};
}
pub(crate) use structures;
