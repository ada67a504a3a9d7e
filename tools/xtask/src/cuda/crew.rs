// SPDX-License-Identifier: MIT OR Apache-2.0
//! Several items at a time.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicUsize, Ordering},
};

/// Answers have the items' order.
pub(super) fn some_at_a_time<T: Sync, R: Send>(
    count: usize,
    items: &[T],
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..count {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(number) else { break };
                    let answer = work(item);
                    let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                    done.push((number, answer));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, answer)| answer).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_in_the_order_of_the_items() {
        let items: Vec<u64> = (0..50).collect();
        let answers = some_at_a_time(4, &items, |item| {
            std::thread::sleep(std::time::Duration::from_micros(50 - item));
            item * item
        });
        let squares: Vec<u64> = items.iter().map(|item| item * item).collect();
        assert_eq!(answers, squares);
        assert!(some_at_a_time(4, &[(); 0], |()| ()).is_empty());
    }
}
