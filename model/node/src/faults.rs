// SPDX-License-Identifier: MIT OR Apache-2.0
//! The GPU's faults, to standard error.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

const MOST: u64 = 200;

pub(crate) fn tell(fault: fmt::Arguments<'_>) {
    static TOLD: AtomicU64 = AtomicU64::new(0);
    if let Some(line) = line(TOLD.fetch_add(1, Ordering::Relaxed), fault) {
        eprintln!("gpureplay node: {line}");
    }
}

fn line(number: u64, fault: fmt::Arguments<'_>) -> Option<String> {
    match number {
        ..MOST => Some(fault.to_string()),
        MOST => Some("more faults are not told".into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{MOST, line};

    #[test]
    fn an_endless_row_of_faults_is_told_in_part() {
        let said = |number| line(number, format_args!("the chain at 0x40 ended"));
        assert_eq!(said(MOST - 1).as_deref(), Some("the chain at 0x40 ended"));
        assert_eq!(said(MOST).as_deref(), Some("more faults are not told"));
        assert_eq!((said(MOST + 1), said(u64::MAX)), (None, None));
    }
}
