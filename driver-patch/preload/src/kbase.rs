// SPDX-License-Identifier: MIT OR Apache-2.0
//! kbase's calls, passed on and told to the recorder. Atoms are submitted one by one; the recorder reads the event of
//! each, and the app gets it on reading the device.

use std::ffi::{c_int, c_ulong};
use std::mem::offset_of;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use gpureplay_host::caller;
use gpureplay_trace::ErrorCode;
use mali_uapi::kbase::request::{
    self as uapi, Allocate, Atom, Commit, Event, FlagsChange, Free, Import, Submit, flags, number,
    requirement,
};
use mali_uapi::panfrost::request::Request;
use zerocopy::{FromBytes, IntoBytes};

use crate::arguments::{answered, give_back, given, whole};
use crate::guard::hold;
use crate::kernel::{self, Kernel};
use crate::next::{self, keep_errno};
use crate::recorder::Recorder;
use crate::recorder::atoms::refusal;
use crate::regions::Region;

/// Atoms of a context.
const MOST: u32 = 256;
/// The driver ends atoms sooner.
const ATOM: Duration = Duration::from_secs(60);

pub(crate) fn call(
    (recorder, job): (&Mutex<Recorder<Kernel>>, &Mutex<()>),
    (fd, request, place): (c_int, Request, u64),
    pass: impl Fn() -> c_int,
) -> c_int {
    match request.number() {
        number::MEM_ALLOC | number::MEM_ALLOC_EX => {
            let Some(asked) = given::<Allocate>(request, place) else {
                return pass();
            };
            let result = match asked.words[3] & flags::CPU_READ {
                0 => read_too(fd, request, place),
                _ => pass(),
            };
            if result == 0
                && let Some(made) = answered::<Allocate>(request, place)
            {
                let [pages, there, _, wanted] = asked.words;
                let region = Region {
                    at: made.words[1],
                    pages,
                    flags: wanted | made.words[0],
                    grows: wanted & flags::GROW != 0 || there != pages,
                };
                keep_errno(|| hold(recorder).made_region(fd, region));
            }
            result
        }
        number::MEM_FREE => {
            let freed = given::<Free>(request, place);
            let _job = hold(job);
            // Another thread may get the addresses at once.
            let mut recorder = hold(recorder);
            let result = pass();
            if let (0, Some(freed)) = (result, freed) {
                keep_errno(|| recorder.vacated(freed.address, 1));
            }
            result
        }
        number::MEM_COMMIT => {
            let changed = given::<Commit>(request, place);
            let _job = hold(job);
            if let Some(changed) = changed {
                keep_errno(|| hold(recorder).commits(fd, changed.address));
            }
            pass()
        }
        number::MEM_FLAGS_CHANGE => {
            let Some(change) = given::<FlagsChange>(request, place) else {
                return pass();
            };
            let _job = hold(job);
            let purgeable = change.flags & change.mask & flags::DONT_NEED != 0;
            let mentioned = change.mask & flags::DONT_NEED != 0;
            if purgeable {
                keep_errno(|| hold(recorder).purgeable(fd, change.address, true));
            }
            let result = pass();
            if mentioned && !purgeable && result == 0 {
                keep_errno(|| hold(recorder).purgeable(fd, change.address, false));
            }
            result
        }
        number::MEM_IMPORT | number::MEM_ALIAS => {
            let result = pass();
            let made = answered::<Import>(request, place);
            if result == 0 {
                let va = made.map_or(0, |made| made.words[1]);
                keep_errno(|| hold(recorder).refuses(fd, ErrorCode::Imported, va));
            }
            result
        }
        number::JOB_SUBMIT => {
            let Some(atoms) = given::<Submit>(request, place) else {
                return pass();
            };
            let done = {
                let _job = hold(job);
                // The driver refuses what it cannot read.
                let elements = atoms_of(&atoms);
                elements.and_then(|elements| submit(recorder, fd, atoms.stride, elements))
            };
            // Not locked: the driver may wait until another thread has read an event.
            done.unwrap_or_else(pass)
        }
        _ => pass(),
    }
}

/// Lets the recorder read a region that the app's processor does not.
fn read_too(fd: c_int, request: Request, place: u64) -> c_int {
    const FLAGS: usize = 24;
    let fault = || {
        next::set_errno(libc::EFAULT);
        -1
    };
    let Some(mut mine) = whole(request, place, size_of::<Allocate>()) else {
        return fault();
    };
    if let Some(low) = mine.get_mut(FLAGS) {
        *low |= flags::CPU_READ as u8;
    }
    // SAFETY: the argument is the request's structure.
    let result = unsafe { next::ioctl(fd, c_ulong::from(request.0), mine.as_mut_ptr().cast()) };
    if result != 0 {
        return result;
    }
    if let Some(low) = mine.first_mut() {
        *low &= !(flags::CPU_READ as u8);
    }
    match give_back(place, &mine[..request.size()]) {
        true => 0,
        false => fault(),
    }
}

/// `None`: the driver would read none.
fn atoms_of(submit: &Submit) -> Option<Vec<Vec<u8>>> {
    Atom::offset(submit.stride)?;
    let mut elements = Vec::new();
    for index in 0..u64::from((submit.count <= MOST).then_some(submit.count)?) {
        let mut bytes = vec![0; submit.stride as usize];
        let at = submit.atoms.checked_add(index * u64::from(submit.stride))?;
        caller::read(at, &mut bytes).ok()?;
        elements.push(bytes);
    }
    Some(elements)
}

/// The caller holds the lock of jobs. `None`: to be passed on.
fn submit(
    recorder: &Mutex<Recorder<Kernel>>,
    fd: c_int,
    stride: u32,
    mut elements: Vec<Vec<u8>>,
) -> Option<c_int> {
    let offset = Atom::offset(stride)?;
    let atoms: Option<Vec<Atom>> = elements
        .iter()
        .map(|bytes| Some(Atom::read_from_prefix(bytes.get(offset..)?).ok()?.0))
        .collect();
    let atoms = atoms?;
    keep_errno(|| {
        if let Some((code, detail)) = atoms.iter().find_map(refusal) {
            hold(recorder).refuses(fd, code, detail);
        } else if kernel::in_ring(fd) {
            hold(recorder).refuses(fd, ErrorCode::Waits, fd as u64);
        }
    });
    if hold(recorder).is_refused(fd) {
        return None;
    }
    for (bytes, atom) in elements.iter_mut().zip(&atoms) {
        let result = one(recorder, fd, (bytes, offset), atom);
        if result != 0 {
            return Some(result);
        }
    }
    Some(0)
}

fn one(
    recorder: &Mutex<Recorder<Kernel>>,
    fd: c_int,
    (bytes, offset): (&mut [u8], usize),
    atom: &Atom,
) -> c_int {
    const SILENT: u32 =
        requirement::EVENT_COALESCE | requirement::EVENT_ON_FAILURE | requirement::EVENT_NEVER;
    // An atom without a chain does nothing but depend.
    let runs = atom.requirements & requirement::CHAINS != 0;
    if let Some(needs) = bytes
        .get_mut(offset + offset_of!(Atom, requirements)..)
        .and_then(|rest| rest.first_chunk_mut::<4>())
    {
        *needs = (atom.requirements & !SILENT).to_ne_bytes();
    }
    if runs {
        keep_errno(|| hold(recorder).before_atom(fd));
    }
    let mut submit = Submit {
        atoms: bytes.as_mut_ptr().expose_provenance() as u64,
        count: 1,
        stride: bytes.len() as u32,
    };
    let time = hold(recorder).now();
    let mine = std::ptr::from_mut(&mut submit).cast();
    // SAFETY: the app's atom, but for wanted events; it outlives the call.
    let result = unsafe { next::ioctl(fd, c_ulong::from(uapi::JOB_SUBMIT.0), mine) };
    if result != 0 {
        return result;
    }
    keep_errno(|| {
        if runs {
            hold(recorder).started_atom(fd, atom, time);
        }
        let Some(event) = ended(recorder, fd, atom.number) else {
            return hold(recorder).lost_atom(fd, atom);
        };
        if runs {
            hold(recorder).ended_atom(fd, atom, event.code);
        }
        let wanted = match atom.requirements {
            needs if needs & requirement::EVENT_NEVER != 0 => false,
            needs if needs & requirement::EVENT_ON_FAILURE != 0 => event.code != uapi::event::DONE,
            _ => true,
        };
        if wanted {
            hold(recorder).keep_event(fd, event);
        }
    });
    0
}

/// Other events are kept for the app. `None` if it does not come.
fn ended(recorder: &Mutex<Recorder<Kernel>>, fd: c_int, number: u8) -> Option<Event> {
    let end = Instant::now() + ATOM;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let mut wait = libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one element, which outlives the call.
        let found = unsafe { next::poll(&mut wait, 1, left.as_millis() as c_int) };
        match found {
            0 => return None,
            ..0 if next::errno() == libc::EINTR => continue,
            ..0 => return None,
            _ => {}
        }
        let mut event = Event::default();
        let bytes = event.as_mut_bytes();
        // SAFETY: the place has so many bytes. Nobody else reads: readers hold the lock of jobs.
        let read = unsafe { next::read(fd, bytes.as_mut_ptr().cast(), bytes.len()) };
        if read != size_of::<Event>() as isize {
            return None;
        }
        if event.atom == number {
            return Some(event);
        }
        hold(recorder).keep_event(fd, event);
    }
}
