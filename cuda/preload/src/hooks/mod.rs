// SPDX-License-Identifier: MIT OR Apache-2.0
//! The exported functions, by family.
#![allow(
    non_snake_case,
    non_camel_case_types,
    reason = "the driver's own names"
)]

use std::collections::HashMap;
use std::ffi::CStr;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use gpureplay_cuda_launch::abi::{Handle, Status, attribute};

use crate::{gate, real, run};

struct Hook {
    name: &'static CStr,
    own: fn() -> usize,
    real: AtomicUsize,
}

impl Hook {
    fn own(&self) -> usize {
        (self.own)()
    }

    fn real(&self) -> usize {
        let known = self.real.load(Ordering::Relaxed);
        if known != 0 {
            return known;
        }
        let address = real::address(self.name);
        self.real.store(address, Ordering::Relaxed);
        address
    }
}

const fn c_string(name: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(name.as_bytes()) {
        Ok(name) => name,
        Err(_) => panic!("a name without a zero"),
    }
}

#[derive(Clone, Copy)]
struct Real<F, C> {
    name: &'static str,
    function: F,
    call: C,
}

impl<F, C: FnOnce() -> Status> Real<F, C> {
    fn call(self) -> Status {
        (self.call)()
    }

    fn then(self, what: impl FnOnce()) -> Status {
        let status = self.call();
        if status == Status::SUCCESS {
            what();
        }
        status
    }

    fn unheld(self) -> Status {
        let _pass = gate::pass();
        run::refuse(|| format!("{} is called", self.name));
        self.call()
    }

    /// Under a name that all threads understand: of some functions, 0 is the thread's own.
    fn stream(&self, stream: Handle) -> Handle {
        let of_thread = self.name.ends_with("_ptsz") || self.name.ends_with("_ptds");
        if of_thread && stream == 0 {
            attribute::stream::PER_THREAD
        } else {
            stream
        }
    }
}

/// A family's table `HOOKS`, the driver's functions in `driver`, and our exports. Functions hooked alike are patterns
/// of one row.
macro_rules! hooks {
    ($($($name:ident)|+: $arguments:tt |$real:ident| $body:block)*) => {
        #[derive(Clone, Copy)]
        #[allow(clippy::enum_variant_names, reason = "the driver's own names")]
        enum Index { $($($name),+),* }

        static TABLE: [super::Hook; [$($(stringify!($name)),+),*].len()] = [
            $($(super::Hook {
                name: const { super::c_string(concat!(stringify!($name), "\0")) },
                own: || $name as *const () as usize,
                real: std::sync::atomic::AtomicUsize::new(0),
            }),+),*
        ];

        pub(super) static HOOKS: &[super::Hook] = &TABLE;

        mod driver {
            use super::*;
            $($(real! { $name $arguments })+)*
        }

        $($(export! { $name $arguments $real $body })+)*
    };
}

macro_rules! real {
    ($name:ident ( $($argument:ident : $kind:ty),* )) => {
        #[allow(clippy::too_many_arguments, reason = "as the driver has them")]
        pub(super) unsafe fn $name($($argument: $kind),*) -> Status {
            let address = HOOKS[Index::$name as usize].real();
            if address == 0 {
                return Status::NOT_FOUND;
            }
            // SAFETY: the driver's function; the signature is that of cuda.h.
            let function = unsafe {
                std::mem::transmute::<usize, unsafe extern "C" fn($($kind),*) -> Status>(address)
            };
            // SAFETY: what the program passed.
            unsafe { function($($argument),*) }
        }
    };
}

macro_rules! export {
    ($name:ident ( $($argument:ident : $kind:ty),* ) $real:ident $body:block) => {
        #[doc = concat!("`", stringify!($name), "`, and what we do beside it.")]
        ///
        /// # Safety
        /// As for the driver's function.
        #[unsafe(no_mangle)]
        #[allow(clippy::too_many_arguments, reason = "as the driver has them")]
        pub(crate) unsafe extern "C" fn $name($($argument: $kind),*) -> Status {
            // SAFETY: the program calls as cuda.h says: what it passed may be passed on, and read and written as the
            // driver would; it was written if the driver said that the call succeeded.
            unsafe {
                let $real = super::Real {
                    name: stringify!($name),
                    function: driver::$name as unsafe fn($($kind),*) -> Status,
                    call: move || driver::$name($($argument),*),
                };
                $body
            }
        }
    };
}

mod attributes;
mod captures;
mod copies;
mod graphs;
mod images;
mod launches;
mod memory;
mod order;
mod refused;
mod region;
mod resolve;
mod sets;
mod writes;

static FAMILIES: [&[Hook]; 13] = [
    resolve::HOOKS,
    launches::HOOKS,
    graphs::HOOKS,
    images::HOOKS,
    attributes::HOOKS,
    memory::HOOKS,
    order::HOOKS,
    region::HOOKS,
    refused::HOOKS,
    captures::HOOKS,
    copies::HOOKS,
    sets::HOOKS,
    writes::HOOKS,
];

fn all() -> impl Iterator<Item = &'static Hook> {
    FAMILIES.into_iter().flatten()
}

pub(crate) fn address_of(name: &CStr) -> Option<usize> {
    static BY_NAME: LazyLock<HashMap<&'static CStr, usize>> =
        LazyLock::new(|| all().map(|hook| (hook.name, hook.own())).collect());
    BY_NAME.get(name).copied()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use gpureplay_cuda_launch::abi::INTERPOSED;

    use super::{address_of, all};

    #[test]
    fn hooks_are_those_of_the_table() {
        let hooks: BTreeSet<&str> = all().map(|hook| hook.name.to_str().unwrap()).collect();
        assert_eq!(hooks.len(), all().count());
        let table: BTreeSet<&str> = INTERPOSED
            .iter()
            .flat_map(|(_, names)| names.iter().copied())
            .collect();
        assert_eq!(hooks, table);
    }

    #[test]
    fn every_hook_has_an_address_of_its_own() {
        let addresses: BTreeSet<usize> = all().map(super::Hook::own).collect();
        assert_eq!(addresses.len(), all().count());
        let one = all().find(|hook| hook.name == c"cuLaunchKernel").unwrap();
        assert_eq!(address_of(c"cuLaunchKernel"), Some(one.own()));
        assert_eq!(address_of(c"cuLaunchKerne"), None);
    }
}
