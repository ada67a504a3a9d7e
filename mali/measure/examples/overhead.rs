// SPDX-License-Identifier: MIT OR Apache-2.0
//! `overhead RECORDING [TURNS]`: analyses' shortest processor times, against a bare run, on one host thread.

use std::sync::Arc;

use gpureplay_analysis::Collector;
use gpureplay_jobs::analysis::{What, map_of};
use gpureplay_library::device::{Choice, Device};
use gpureplay_library::{ModelOptions, Recording, Session};
use mali_model::Observer;

fn processor_seconds() -> Result<f64, Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds: u64 = text.split_whitespace().next().ok_or("no times")?.parse()?;
    Ok(nanoseconds as f64 * 1e-9)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("which recording?")?;
    let turns: usize = arguments.next().map_or(Ok(10), |turns| turns.parse())?;
    let recording = Recording::open(&path)?;
    let view = recording.verified().recording();
    let names = [
        "off",
        "counts",
        "heat",
        "lines",
        "heat,lines",
        "races",
        "uninit",
        "out-of-tensor",
        "all",
    ];
    let mut sessions = Vec::new();
    for name in names {
        let collector = match name {
            "off" => None,
            what => {
                let what: What = what.parse()?;
                Some(Arc::new(Collector::new(what, map_of(view), |_| true)))
            }
        };
        let observer = collector.clone().map(|it| it as Arc<dyn Observer>);
        let options = ModelOptions {
            threads: Some(1),
            ..ModelOptions::default()
        };
        let device = Device::open_observed(&Choice::Model(None), view.gpu_id(), options, observer)?;
        let mut session = Session::on(recording.clone(), device);
        session.bind_case()?;
        session.run()?;
        sessions.push((name, session, collector, f64::INFINITY));
    }
    for _ in 0..turns {
        for (_, session, collector, best) in &mut sessions {
            let before = processor_seconds()?;
            session.run()?;
            *best = best.min(processor_seconds()? - before);
            if let Some(collector) = collector {
                collector.take();
            }
        }
    }
    let bare = sessions.first().map_or(1.0, |session| session.3);
    println!("{path}, {turns} turns");
    for (name, _, _, best) in &sessions {
        println!("{name:16} {:9.2} ms {:7.2}", best * 1e3, best / bare);
    }
    Ok(())
}
