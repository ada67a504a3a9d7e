// SPDX-License-Identifier: MIT OR Apache-2.0
//! The app's open files of panfrost, panthor or kbase, and their objects. Each has its own address space.

use std::collections::{BTreeMap, HashMap};
use std::os::fd::RawFd;

use gpureplay_trace::Driver as Driven;

use crate::object::Object;
use crate::regions::Kbase;

/// An open file of a driver.
#[derive(Default)]
pub(crate) struct File {
    /// What panthor knows besides.
    pub(crate) panthor: Option<Panthor>,
    /// What kbase knows besides.
    pub(crate) kbase: Option<Kbase>,
    /// Which one this is, from 0.
    pub(crate) number: u32,
    /// Numbers that the app knows it by.
    fds: Vec<RawFd>,
    /// By GPU virtual address.
    objects: BTreeMap<u64, Object>,
    addresses: HashMap<u32, u64>,
    /// Objects were made or freed since the trace listed them.
    pub(crate) changed: bool,
    /// A sync object of the recorder's own, for jobs that have none.
    pub(crate) sync: Option<u32>,
}

impl File {
    /// The driver that it is of.
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

    /// The object that begins at an address.
    pub(crate) fn starts_at(&mut self, va: u64) -> Option<&mut Object> {
        self.objects.get_mut(&va)
    }

    /// Objects that begin before an address, the last one first.
    pub(crate) fn before(&self, va: u64) -> impl Iterator<Item = &Object> {
        self.objects.range(..va).rev().map(|(_, object)| object)
    }

    pub(crate) fn at(&self, va: u64) -> Option<&Object> {
        let (_, object) = self.objects.range(..=va).next_back()?;
        (va - object.va < object.size).then_some(object)
    }

    /// Adds an object; gives back one that had its address, whose end was not seen.
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

    /// Takes an object out.
    pub(crate) fn remove(&mut self, handle: u32) -> Option<Object> {
        let va = self.addresses.remove(&handle)?;
        self.changed = true;
        self.objects.remove(&va)
    }

    /// Takes the object out that begins at an address.
    pub(crate) fn remove_at(&mut self, va: u64) -> Option<Object> {
        let object = self.objects.remove(&va)?;
        self.changed = true;
        if self.addresses.get(&object.handle) == Some(&va) {
            self.addresses.remove(&object.handle);
        }
        Some(object)
    }

    /// Takes all objects out.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Object> {
        self.addresses.clear();
        std::mem::take(&mut self.objects).into_values()
    }
}

/// Of a file of panthor: objects are made first and get addresses later.
#[derive(Default)]
pub(crate) struct Panthor {
    /// Bytes of each object, by handle.
    pub(crate) made: HashMap<u32, u64>,
    /// The address space that has objects; a second one is not recorded.
    pub(crate) vm: Option<u32>,
    /// Objects that the app said it would not map, by handle.
    pub(crate) sealed: HashMap<u32, Sealed>,
}

/// What an app gets that asks where an object lies which it said it would not map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sealed {
    /// An error, this `errno`.
    Refused(i32),
    /// The place, which cannot be mapped then; `None` until it asks.
    At(Option<u64>),
}

/// All of them that are open.
#[derive(Default)]
pub(crate) struct Files {
    open: Vec<File>,
    /// Files so far.
    next: u32,
}

impl Files {
    /// The file that the app knows by a number.
    pub(crate) fn by_fd(&mut self, fd: RawFd) -> Option<&mut File> {
        self.open.iter_mut().find(|file| file.fds.contains(&fd))
    }

    pub(crate) fn all_mut(&mut self) -> impl Iterator<Item = &mut File> {
        self.open.iter_mut()
    }

    /// A number of each file of a driver.
    pub(crate) fn fds_of(&self, kind: Driven) -> Vec<RawFd> {
        let of = self.open.iter().filter(|file| file.kind() == kind);
        of.filter_map(|file| file.fds.first().copied()).collect()
    }

    /// Notes that a number names a file of panfrost: one that is known, which `same` tells by its number, or a new one.
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

    /// Forgets a number. Gives back the file if it was the last that the app knew it by.
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
        // A number that is used again names another file.
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
