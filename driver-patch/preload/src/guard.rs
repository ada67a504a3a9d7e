// SPDX-License-Identifier: MIT OR Apache-2.0
//! Locks that no signal handler of the app meets: signals are blocked.

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

struct Blocked(libc::sigset_t);

impl Blocked {
    fn new() -> Self {
        let mut all = MaybeUninit::uninit();
        let mut old = MaybeUninit::uninit();
        // SAFETY: the calls fill the sets, and cannot fail with these arguments.
        unsafe {
            libc::sigfillset(all.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), old.as_mut_ptr());
            Blocked(old.assume_init())
        }
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // SAFETY: the thread's earlier set.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, ptr::null_mut()) };
    }
}

pub(crate) struct Held<'a, T> {
    // Dropped first: signals come when the lock is free.
    value: MutexGuard<'a, T>,
    _blocked: Blocked,
}

/// A thread that panicked has left a whole state.
pub(crate) fn hold<T>(lock: &Mutex<T>) -> Held<'_, T> {
    let blocked = Blocked::new();
    Held {
        value: lock.lock().unwrap_or_else(PoisonError::into_inner),
        _blocked: blocked,
    }
}

impl<T> std::ops::Deref for Held<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> std::ops::DerefMut for Held<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    static SEEN: AtomicBool = AtomicBool::new(false);
    static LOCK: Mutex<u32> = Mutex::new(0);

    extern "C" fn handler(_: libc::c_int) {
        *hold(&LOCK) += 1;
        SEEN.store(true, Ordering::SeqCst);
    }

    #[test]
    fn a_handler_that_takes_the_lock_runs_when_it_is_free() {
        let handler: extern "C" fn(libc::c_int) = handler;
        // SAFETY: the handler takes a lock that its thread never holds when the signal comes.
        unsafe { libc::signal(libc::SIGUSR1, handler as *const () as usize) };
        let mut held = hold(&LOCK);
        // SAFETY: sends a signal to this thread.
        unsafe { libc::raise(libc::SIGUSR1) };
        assert!(!SEEN.load(Ordering::SeqCst));
        *held += 1;
        drop(held);
        assert!(SEEN.load(Ordering::SeqCst));
        assert_eq!(*hold(&LOCK), 2);
    }
}
