// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sort order and shares of jobs.

use std::collections::HashMap;

use gpureplay_jobs::Report;
use gpureplay_jobs::report::{JobReport, KernelReport, Work};

use crate::common::cells::{dash, short};

/// What rows are sorted by, the largest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Sort {
    /// Instructions executed
    Work,
    /// Memory lines that warps touch
    Lines,
    /// Bytes read
    Read,
    /// Bytes written
    Written,
    /// Time on the model, or of the chain on a GPU
    Time,
}

impl Sort {
    fn of(self, work: Option<&Work>, lines: Option<u64>, seconds: Option<f64>) -> f64 {
        let counted = |of: fn(&Work) -> u64| work.map(of).map(|count| count as f64);
        let value = match self {
            Sort::Work => counted(|work| work.instructions),
            Sort::Lines => lines.map(|lines| lines as f64),
            Sort::Read => counted(|work| work.bytes_read),
            Sort::Written => counted(|work| work.bytes_written),
            Sort::Time => seconds,
        };
        value.unwrap_or(-1.0)
    }

    fn order(self, report: &mut Report) {
        let times: HashMap<usize, f64> = report
            .chains
            .iter()
            .filter_map(|chain| Some((chain.number, chain.seconds?.median)))
            .collect();
        let of_job = |job: &JobReport| {
            let alone = job.seconds.map(|it| it.median);
            self.of(
                job.work.as_ref(),
                job.memory_lines,
                alone.or_else(|| times.get(&job.chain).copied()),
            )
        };
        let of_kernel = |kernel: &KernelReport| {
            self.of(kernel.work.as_ref(), kernel.memory_lines, kernel.seconds)
        };
        report.jobs.sort_by(|a, b| of_job(b).total_cmp(&of_job(a)));
        report
            .kernels
            .sort_by(|a, b| of_kernel(b).total_cmp(&of_kernel(a)));
    }
}

/// Of all jobs, before [`arrange`] drops some.
pub(crate) struct Sum {
    pub(crate) work: Work,
    lines: Option<u64>,
}

impl Sum {
    pub(crate) fn of(report: &Report) -> Self {
        let mut sum = Work::default();
        let work = report.jobs.iter().filter_map(|job| job.work.as_ref());
        work.for_each(|work| sum.add(work));
        let lines = report.jobs.iter().filter_map(|job| job.memory_lines);
        let lines = lines.reduce(u64::saturating_add);
        Self { work: sum, lines }
    }

    pub(crate) fn cells(&self, work: Option<&Work>, lines: Option<u64>) -> Vec<String> {
        match (self.lines, lines) {
            (Some(all), Some(lines)) => vec![short(lines), percent(lines, all)],
            _ => {
                let share = |work: &Work| percent(work.instructions, self.work.instructions);
                vec![work.map_or_else(dash, share)]
            }
        }
    }

    pub(crate) fn heading(&self, before: &[&str], after: &[&str]) -> Vec<String> {
        let own: &[&str] = match self.lines {
            Some(_) => &["lines", "share"],
            None => &["share"],
        };
        let all = [before, own, after].concat();
        all.into_iter().map(str::to_owned).collect()
    }
}

pub(crate) fn arrange(report: &mut Report, sort: Option<Sort>, top: Option<usize>) {
    if let Some(sort) = sort {
        sort.order(report);
    }
    if let Some(top) = top {
        report.jobs.truncate(top);
        report.kernels.truncate(top);
    }
}

fn percent(part: u64, all: u64) -> String {
    match all {
        0 => dash(),
        all => format!("{:.1} %", 100.0 * part as f64 / all as f64),
    }
}

#[cfg(test)]
mod tests {
    use gpureplay_host::statistics::Spread;

    use super::*;

    #[test]
    fn rows_are_sorted_by_work_or_time_and_cut() {
        let jobs = (0..4).map(|index| JobReport {
            index,
            chain: index / 2,
            ..JobReport::default()
        });
        let mut all = Report {
            jobs: jobs.collect(),
            ..Report::default()
        };
        for (job, (instructions, seconds)) in
            all.jobs
                .iter_mut()
                .zip([(10, 3.0), (60, 1.0), (0, 2.0), (30, 4.0)])
        {
            job.work = Some(Work {
                instructions,
                ..Work::default()
            });
            job.seconds = Some(Spread {
                median: seconds,
                ..Spread::default()
            });
        }
        let sum = Sum::of(&all);
        assert_eq!(sum.work.instructions, 100);
        let order = |sort, top| {
            let mut report = all.clone();
            arrange(&mut report, sort, top);
            report.jobs.iter().map(|job| job.index).collect::<Vec<_>>()
        };
        assert_eq!(order(None, None), [0, 1, 2, 3]);
        assert_eq!(order(Some(Sort::Work), None), [1, 3, 0, 2]);
        assert_eq!(order(Some(Sort::Time), Some(3)), [3, 0, 2]);
        assert_eq!(sum.cells(all.jobs[1].work.as_ref(), None), ["60.0 %"]);
        assert_eq!(percent(0, 0), "-");
        all.set_lines(&[(0, 30), (2, 10)].into());
        let sum = Sum::of(&all);
        assert_eq!(sum.cells(None, all.jobs[0].memory_lines), ["30", "75.0 %"]);
        assert_eq!(sum.cells(None, all.jobs[1].memory_lines), ["0", "0.0 %"]);
        let mut report = all.clone();
        arrange(&mut report, Some(Sort::Lines), Some(2));
        let order: Vec<usize> = report.jobs.iter().map(|job| job.index).collect();
        assert_eq!(order, [0, 2]);
    }
}
