// SPDX-License-Identifier: MIT OR Apache-2.0
//! Other sizes of a dispatch.

use gpureplay_jobs::Compute;
use mali_facts::{Architecture, ComputeParameters, Invocation, Profile, job};

use crate::error::{EditError, Result};

/// Sizes by dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Threads per group.
    pub local: [u32; 3],
    /// Work groups.
    pub groups: [u32; 3],
}

impl Launch {
    /// Sizes of a job.
    pub fn of(compute: &Compute) -> Self {
        Self {
            local: compute.local,
            groups: compute.groups,
        }
    }

    /// Divides the threads.
    ///
    /// # Errors
    /// No whole number of work groups.
    pub fn over(global: [u64; 3], local: [u32; 3]) -> Result<Self> {
        let mut groups = [1; 3];
        for ((groups, threads), size) in groups.iter_mut().zip(global).zip(local) {
            let whole = threads.checked_div(size.into()).filter(|count| *count > 0);
            let fits = whole.filter(|count| count * u64::from(size) == threads);
            let fits = fits.and_then(|count| u32::try_from(count).ok());
            *groups = fits.ok_or_else(|| {
                EditError::Size(format!(
                    "{} threads are no whole number of work groups of {}; each size must divide the threads of its dimension, or give --global as well",
                    text(global),
                    text(local)
                ))
            })?;
        }
        Ok(Self { local, groups })
    }

    /// Threads by dimension.
    pub fn global(&self) -> [u64; 3] {
        let [x, y, z] = self.local;
        let [gx, gy, gz] = self.groups;
        [(x, gx), (y, gy), (z, gz)].map(|(size, count)| u64::from(size) * u64::from(count))
    }

    /// Sizes worth a try, with at most `most` threads in a group. In one dimension all that divide the threads; in
    /// more, an extent is a power of two that divides its dimension, or all of it. Groups of fewer than 32 threads
    /// only where there are no larger ones.
    pub fn sizes(global: [u64; 3], most: u32) -> Vec<[u32; 3]> {
        let is_line = global.iter().filter(|threads| **threads > 1).count() < 2;
        let extents = global.map(|threads| {
            let divides = move |size: &u32| threads > 0 && threads.is_multiple_of((*size).into());
            let tried =
                move |size: &u32| is_line || size.is_power_of_two() || u64::from(*size) == threads;
            let sizes = (1..=most).filter(divides).filter(tried);
            sizes.collect::<Vec<u32>>()
        });
        let threads = |size: &[u32; 3]| size.iter().map(|&it| u64::from(it)).product::<u64>();
        let [x, y, z] = &extents;
        let pairs = z.iter().flat_map(|z| y.iter().map(move |y| (y, z)));
        let all = pairs.flat_map(|(y, z)| x.iter().map(move |x| [*x, *y, *z]));
        let mut sizes: Vec<[u32; 3]> = all.filter(|size| threads(size) <= most.into()).collect();
        let least = sizes.iter().map(threads).max().unwrap_or_default().min(32);
        sizes.retain(|size| threads(size) >= least);
        sizes
    }

    /// Threads per group.
    ///
    /// # Errors
    /// None, or more than the GPU runs.
    pub(crate) fn check_threads(&self, profile: &Profile) -> Result<u64> {
        let size = |text: String| Err(EditError::Size(text));
        if self.local.contains(&0) || self.groups.contains(&0) {
            return size("a size of 0 runs nothing; each is at least 1".into());
        }
        let threads: u64 = self.local.iter().map(|&it| u64::from(it)).product();
        let most = u64::from(profile.max_workgroup_size);
        if threads > most {
            return size(format!(
                "work groups of {} have {threads} threads, and Mali-{} runs at most {most} in one",
                text(self.local),
                profile.name.to_uppercase()
            ));
        }
        Ok(threads)
    }

    /// Checks the GPU's limits.
    ///
    /// # Errors
    /// The exceeded limit.
    pub fn check(&self, compute: &Compute, profile: &Profile) -> Result<()> {
        let size = |text: String| Err(EditError::Size(text));
        let threads = self.check_threads(profile)?;
        // With all registers, a core fits half as many threads.
        let all = profile.architecture == Architecture::V7
            && compute.job.state.register_allocation() == 0;
        let room = u64::from(profile.max_threads) / if all { 2 } else { 1 };
        if threads > room {
            return size(format!(
                "work groups of {} have {threads} threads, and with {} registers each a core has room for {room}",
                text(self.local),
                if all { 64 } else { 32 }
            ));
        }
        let barrier = u64::from(profile.max_barrier_size);
        if compute.job.state.contains_barrier() != 0 && threads > barrier {
            return size(format!(
                "work groups of {} have {threads} threads, and at most {barrier} can wait at a barrier",
                text(self.local)
            ));
        }
        if Invocation::pack(self.local, self.groups).is_none() {
            return size(format!(
                "{} work groups of {} need more than the 32 bits that a job has for its six sizes",
                text(self.groups),
                text(self.local)
            ));
        }
        Ok(())
    }

    /// A job's words of sizes: offset from the header, and bytes.
    ///
    /// # Errors
    /// The sizes do not fit.
    pub fn words(&self, compute: &Compute) -> Result<Vec<(u64, Vec<u8>)>> {
        let packed = Invocation::pack(self.local, self.groups);
        let packed = packed.ok_or_else(|| EditError::Size("the sizes do not fit a job".into()))?;
        let invocation = packed.with("Thread group split", split(&packed)?);
        let parameters: ComputeParameters = compute
            .job
            .parameters
            .with("Job task split", task_split(self.local));
        Ok(vec![
            (job::INVOCATION, invocation.to_bytes().to_vec()),
            (job::COMPUTE_PARAMETERS, parameters.to_bytes().to_vec()),
        ])
    }
}

/// `thread_group_split`: where the number of work groups begins; none is divided.
///
/// # Errors
/// It has only four bits.
pub(crate) fn split(packed: &Invocation) -> Result<u64> {
    match packed.workgroups_x_shift() {
        shift @ 0..=15 => Ok(shift),
        shift => Err(EditError::Size(format!(
            "the sizes of a work group take {shift} bits, and a job can say at most 15"
        ))),
    }
}

/// `job_task_split`: the bit lengths of all sizes, added.
pub(crate) fn task_split(local: [u32; 3]) -> u64 {
    let bits = |size: u32| {
        u64::from(
            u64::from(size)
                .saturating_add(1)
                .next_power_of_two()
                .trailing_zeros(),
        )
    };
    local.into_iter().map(bits).sum::<u64>() & 15
}

/// Such as `16x8x1`.
pub(crate) fn text<T: ToString>(sizes: [T; 3]) -> String {
    sizes.map(|size| size.to_string()).join("x")
}

/// `16`, `16x8` or `16x8x1`; those left out are 1.
///
/// # Errors
/// Something else.
pub fn parse(sizes: &str) -> std::result::Result<[u32; 3], String> {
    let mut all = [1; 3];
    let parts: Vec<&str> = sizes.split('x').collect();
    let sound = parts.len() <= 3
        && parts
            .iter()
            .all(|it| it.bytes().all(|byte| byte.is_ascii_digit()));
    for (to, part) in all.iter_mut().zip(&parts) {
        *to = part
            .parse()
            .ok()
            .filter(|size| sound && *size > 0)
            .ok_or_else(|| format!("'{sizes}' is not one to three sizes such as 16x8"))?;
    }
    match sound {
        true => Ok(all),
        false => Err(format!("'{sizes}' is not one to three sizes such as 16x8")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        assert_eq!(parse("16x8"), Ok([16, 8, 1]));
        assert_eq!(parse("3"), Ok([3, 1, 1]));
        assert_eq!(parse("2x3x4"), Ok([2, 3, 4]));
        for wrong in ["", "x", "0", "2x", "1x2x3x4", "-1", "1,2", "99999999999"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn groups_cover_all_threads() {
        let launch = Launch::over([1000, 1, 1], [8, 1, 1]).unwrap();
        assert_eq!(
            (launch.groups, launch.global()),
            ([125, 1, 1], [1000, 1, 1])
        );
        assert!(Launch::over([1000, 1, 1], [64, 1, 1]).is_err());
        assert!(Launch::over([4, 4, 1], [8, 1, 1]).is_err());
    }

    #[test]
    fn sizes_to_try_divide_the_threads() {
        let text = |global, most| {
            let sizes = Launch::sizes(global, most).into_iter().map(text);
            sizes.collect::<Vec<String>>().join(" ")
        };
        assert_eq!(text([1000, 1, 1], 128), "40x1x1 50x1x1 100x1x1 125x1x1");
        assert_eq!(text([96, 3, 1], 64), "32x1x1 16x3x1");
        assert_eq!(text([4, 2, 1], 384), "4x2x1");
        assert_eq!(text([8, 8, 1], 64), "8x4x1 4x8x1 8x8x1");
        assert_eq!(text([0, 1, 1], 384), "");
        assert!(Launch::sizes([1 << 60; 3], 512).len() < 200);
        for size in Launch::sizes([64, 25, 6], 384) {
            Launch::over([64, 25, 6], size).unwrap();
        }
    }

    #[test]
    fn splits_follow_from_sizes() {
        assert_eq!(task_split([8, 16, 1]), 4 + 5 + 1);
        assert_eq!(task_split([1, 1, 1]), 3);
        let packed = Invocation::pack([8, 16, 1], [1, 4, 1]).unwrap();
        assert_eq!(split(&packed).unwrap(), 7);
    }
}
