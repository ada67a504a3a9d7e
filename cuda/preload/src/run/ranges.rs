// SPDX-License-Identifier: MIT OR Apache-2.0
//! Named ranges of operations, or of a region.

use std::cell::RefCell;
use std::sync::atomic::Ordering;

use super::{ACTIVE, begin, end, lock, wanted};
use crate::settings::Region;

struct Open {
    name: String,
    /// Ranges of each domain nest by themselves.
    domain: usize,
    first: Option<(u64, usize)>,
    is_region: bool,
}

thread_local! {
    static OPEN: RefCell<Vec<Open>> = const { RefCell::new(Vec::new()) };
}

/// Returns how many of the domain were open.
pub(crate) fn range_begins(name: &str, domain: usize) -> i32 {
    let mut is_region = false;
    if let Some((record, Region::Nvtx(wanted))) = wanted()
        && wanted == name
        && !ACTIVE.load(Ordering::SeqCst)
    {
        begin(record);
        is_region = ACTIVE.load(Ordering::SeqCst);
    }
    let first = lock()
        .as_ref()
        .map(|log| (log.number, log.operations.len()));
    let open = Open {
        name: name.to_owned(),
        domain,
        first: first.filter(|_| !is_region),
        is_region,
    };
    let depth = OPEN.try_with(|all| {
        let mut all = all.borrow_mut();
        let depth = of_domain(&all, domain);
        all.push(open);
        depth
    });
    i32::try_from(depth.unwrap_or(0)).unwrap_or(i32::MAX)
}

fn of_domain(all: &[Open], domain: usize) -> usize {
    all.iter().filter(|open| open.domain == domain).count()
}

/// Returns how many of the domain are left.
pub(crate) fn range_ends(domain: usize) -> i32 {
    let ended = OPEN.try_with(|all| {
        let mut all = all.borrow_mut();
        let last = all.iter().rposition(|open| open.domain == domain);
        let open = last.map(|last| all.remove(last));
        (open, of_domain(&all, domain))
    });
    let Ok((Some(open), depth)) = ended else {
        return -1;
    };
    if open.is_region
        && let Some((record, _)) = wanted()
    {
        end(record);
    } else if let (Some((number, first)), Some(log)) = (open.first, &mut *lock()) {
        log.range(number, open.name, first);
    }
    i32::try_from(depth).unwrap_or(i32::MAX)
}
