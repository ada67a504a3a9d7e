// SPDX-License-Identifier: MIT OR Apache-2.0
//! The app's open files of drivers, each with its own address space.

use std::collections::{BTreeMap, HashMap};
use std::os::fd::RawFd;

use gpureplay_trace::Driver as Driven;

use crate::object::Object;
use crate::regions::Kbase;

#[derive(Default)]
pub(crate) struct File {
    pub(crate) panthor: Option<Panthor>,
    pub(crate) kbase: Option<Kbase>,
    pub(crate) number: u32,
    fds: Vec<RawFd>,
    objects: BTreeMap<u64, Object>,
    addresses: HashMap<u32, u64>,
    /// Objects changed since the trace listed them.
    pub(crate) changed: bool,
    pub(crate) sync: Option<u32>,
}

impl File {
    pub(crate) fn kind(&self) -> Driven {
        match (&self.panthor, &self.kbase) {
            (Some(_), _) => Driven::Panthor,
            (_, Some(_)) => Driven::Kbase,
            _ => Driven::Panfrost,
        }
    }

    pub(crate) fn objects(&self) -> impl Iterator<Item = &Object> {
        self.objects.values()
    }

    pub(crate) fn objects_mut(&mut self) -> impl Iterator<Item = &mut Object> {
        self.objects.values_mut()
    }

    pub(crate) fn find(&mut self, handle: u32) -> Option<&mut Object> {
        let va = self.addresses.get(&handle)?;
        self.objects.get_mut(va)
    }

    pub(crate) fn starts_at(&mut self, va: u64) -> Option<&mut Object> {
        self.objects.get_mut(&va)
    }

    pub(crate) fn before(&self, va: u64) -> impl Iterator<Item = &Object> {
        self.objects.range(..va).rev().map(|(_, object)| object)
    }

    pub(crate) fn at(&self, va: u64) -> Option<&Object> {
        let (_, object) = self.objects.range(..=va).next_back()?;
        (va - object.va < object.size).then_some(object)
    }

    /// Reads words. `false`: some are of no object, or cannot be read.
    pub(crate) fn read(&self, va: u64, to: &mut [u8]) -> bool {
        let words = (0..).step_by(8).zip(to.chunks_exact_mut(8));
        words.into_iter().all(|(at, to)| {
            let va = va.checked_add(at);
            let word = va.and_then(|va| self.at(va)?.word(va));
            word.inspect(|word| to.copy_from_slice(&word.to_le_bytes()))
                .is_some()
        })
    }

    /// Gives back one of the same address, whose end was not seen.
    pub(crate) fn add(&mut self, object: Object) -> Option<Object> {
        self.changed = true;
        self.addresses.insert(object.handle, object.va);
        let old = self.objects.insert(object.va, object);
        let old = old?;
        // Unless the handle is used again, too.
        if self.addresses.get(&old.handle) == Some(&old.va)
            && self
                .objects
                .get(&old.va)
                .is_none_or(|new| new.handle != old.handle)
        {
            self.addresses.remove(&old.handle);
        }
        Some(old)
    }

    pub(crate) fn remove(&mut self, handle: u32) -> Option<Object> {
        let va = self.addresses.remove(&handle)?;
        self.changed = true;
        self.objects.remove(&va)
    }

    pub(crate) fn remove_at(&mut self, va: u64) -> Option<Object> {
        let object = self.objects.remove(&va)?;
        self.changed = true;
        if self.addresses.get(&object.handle) == Some(&va) {
            self.addresses.remove(&object.handle);
        }
        Some(object)
    }

    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Object> {
        self.addresses.clear();
        std::mem::take(&mut self.objects).into_values()
    }
}

/// Objects get GPU addresses when the app binds them.
#[derive(Default)]
pub(crate) struct Panthor {
    /// Bytes by handle.
    pub(crate) made: HashMap<u32, u64>,
    /// A second one is not recorded.
    pub(crate) vm: Option<u32>,
    /// Objects that the app said it would not map.
    pub(crate) sealed: HashMap<u32, Sealed>,
}

/// The driver's answer when the app asks for the place of such an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sealed {
    /// `errno`.
    Refused(i32),
    /// Cannot be mapped; `None` until the app asks.
    At(Option<u64>),
}

#[derive(Default)]
pub(crate) struct Files {
    open: Vec<File>,
    next: u32,
}

impl Files {
    pub(crate) fn by_fd(&mut self, fd: RawFd) -> Option<&mut File> {
        self.open.iter_mut().find(|file| file.fds.contains(&fd))
    }

    pub(crate) fn all_mut(&mut self) -> impl Iterator<Item = &mut File> {
        self.open.iter_mut()
    }

    pub(crate) fn fds_of(&self, kind: Driven) -> Vec<RawFd> {
        let of = self.open.iter().filter(|file| file.kind() == kind);
        of.filter_map(|file| file.fds.first().copied()).collect()
    }

    pub(crate) fn learn(&mut self, fd: RawFd, same: impl Fn(RawFd) -> bool) -> &mut File {
        self.forget(fd);
        let known = |file: &File| file.fds.iter().any(|other| same(*other));
        let index = match self.open.iter().position(known) {
            Some(index) => index,
            None => {
                self.open.push(File {
                    number: self.next,
                    ..File::default()
                });
                self.next += 1;
                self.open.len() - 1
            }
        };
        let file = &mut self.open[index];
        file.fds.push(fd);
        file
    }

    pub(crate) fn forget(&mut self, fd: RawFd) -> Option<File> {
        let index = self.open.iter().position(|file| file.fds.contains(&fd))?;
        let file = self.open.get_mut(index)?;
        file.fds.retain(|known| *known != fd);
        file.fds.is_empty().then(|| self.open.swap_remove(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_a_number_name_one_file_until_the_last_is_closed() {
        let mut files = Files::default();
        assert_eq!(files.learn(3, |_| false).number, 0);
        assert_eq!(files.learn(5, |fd| fd == 3).number, 0);
        assert_eq!(files.learn(7, |_| false).number, 1);
        assert!(files.forget(3).is_none());
        assert_eq!(files.by_fd(5).map(|file| file.number), Some(0));
        assert_eq!(files.forget(5).map(|file| file.number), Some(0));
        assert!(files.by_fd(5).is_none());
        assert_eq!(files.learn(3, |_| false).number, 2);
    }

    #[test]
    fn objects_are_found_by_handle_and_by_address() {
        let mut file = File::default();
        assert!(file.add(Object::new(1, 0, 0x1000, 0x2000)).is_none());
        assert!(file.add(Object::new(2, 0, 0x8000, 1)).is_none());
        assert_eq!(file.at(0x2fff).map(|object| object.handle), Some(1));
        assert!(file.at(0x3000).is_none() && file.at(0xfff).is_none());
        assert_eq!(file.at(0x8fff).map(|object| object.handle), Some(2));
        // The kernel gives an address again only after its object is gone.
        let old = file.add(Object::new(3, 0, 0x8000, 0x1000));
        assert_eq!(old.map(|object| object.handle), Some(2));
        assert!(file.find(2).is_none());
        assert_eq!(file.remove(3).map(|object| object.va), Some(0x8000));
        assert!(file.remove(3).is_none());
    }
}
