// SPDX-License-Identifier: MIT OR Apache-2.0
//! `guest recording-times`: the cost of recording.

use std::{
    fs::File,
    io::BufReader,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use clap::Args;
use gpureplay_host::statistics::Sorted;
use gpureplay_task::measured::{self, Table};
use gpureplay_trace::{Event, Reader};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    build::payload,
    error::{Error, Result},
    files,
    folder::Folder,
    record::{
        app::{self, App},
        network_dir,
    },
    run::{
        driver::Driver,
        report,
        session::{self, Options, Outcome},
    },
};

const KEPT: &str = "recording-times.toml";

/// Measures what recording costs: each program live, with the OpenCL layer, recorded by the kernel, the same with
/// every page checked, and recorded in the app, in turns.
///
/// Checked runs fail if a page changed that the recorder skipped. Times are the guest's, of the whole program with
/// cached shaders: the median counts. Processor times are QEMU's. Results stay in target/guest/networks/NAME.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Examples:\n  cargo xtask guest recording-times lenet squeezenet-1.1\n  \
                        cargo xtask guest recording-times --write    # all networks; hours\n  \
                        cargo xtask guest recording-times --measured --write    # the table of what was measured one by one"
)]
pub(crate) struct RecordingTimes {
    /// Programs of tools/guest/recordable.toml; all networks if none is named.
    names: Vec<String>,
    /// Rounds.
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: u32,
    /// The guest's clock counts instructions: a busy host changes no times.
    #[arg(long)]
    counted: bool,
    /// Keep the table in measurements/recording-times.json.
    #[arg(long)]
    write: bool,
    /// Measure nothing: the table has what earlier runs have measured.
    #[arg(long)]
    measured: bool,
    /// Use the programs in target/guest/opt as they are.
    #[arg(long)]
    no_build: bool,
    /// Seconds until a program is given up.
    #[arg(long, default_value_t = 7200, value_name = "SECONDS")]
    timeout: u64,
}

const WAYS: [&str; 5] = ["live", "layered", "recorded", "checked", "in-app"];

/// Median seconds; notes of the last recorded and checked run.
#[derive(Deserialize, Serialize)]
struct Row {
    name: String,
    rounds: u32,
    /// In the order of [`WAYS`].
    seconds: [f64; WAYS.len()],
    /// Processor seconds of QEMU.
    processor: [f64; WAYS.len()],
    notes: [Vec<u64>; 2],
}

impl RecordingTimes {
    pub(crate) fn execute(self) -> Result<ExitCode> {
        let folder = Folder::find()?;
        let names: Vec<String> = if self.names.is_empty() {
            let apps = App::all(&folder)?;
            let networks = apps.into_iter().filter(|(_, app)| app.network);
            networks.map(|(name, _)| name).collect()
        } else {
            let named = self.names.iter().map(|name| App::named(&folder, name));
            named.collect::<Result<_>>()?
        };
        let mut rows = Vec::new();
        if self.measured {
            for name in &names {
                rows.extend(kept(&folder, name)?);
            }
        } else {
            folder.require_built()?;
            if !self.no_build {
                payload::prepare(&folder, Driver::Patched)?;
            }
            for name in &names {
                let row = self.row(&folder, name)?;
                keep(&folder, &row)?;
                rows.push(row);
            }
        }
        let table = table(&rows);
        print!("{table}");
        if self.write {
            measured::keep("recording-times", &[table])?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn row(&self, folder: &Folder, name: &str) -> Result<Row> {
        let app = App::find(folder, name)?;
        let share = tempfile::tempdir_in(&folder.local)
            .map_err(Error::io("create", folder.local.clone()))?;
        app::write_files(folder, name, share.path())?;
        let options = Options {
            driver: Driver::Patched,
            memory: app.memory,
            counted: self.counted,
            timeout: Duration::from_secs(self.timeout),
            share: Some(share.path().to_path_buf()),
            ..Options::default()
        };
        let outcome = session::script(folder, &options, &script(&app.command(""), self.rounds))?;
        if outcome.clean().is_err() {
            report(&outcome, false, self.timeout);
            return Err(Error::Usage(format!("{name} was not measured")));
        }
        let times = times(&outcome);
        Ok(Row {
            name: name.to_owned(),
            rounds: self.rounds,
            seconds: WAYS.map(|way| median(&times, way, |time| time.guest)),
            processor: WAYS.map(|way| median(&times, way, |time| time.processor)),
            notes: [
                counters(&share.path().join("recorded.trace"))?,
                counters(&share.path().join("checked.trace"))?,
            ],
        })
    }
}

fn script(command: &str, rounds: u32) -> String {
    format!(
        r#"set -e
way() {{ echo "$1" > /sys/module/gpureplay_recorder/parameters/dirty; }}
took() {{
	local begin name=$1; shift
	echo begin
	begin=$(date +%s%N)
	"$@" > /dev/null
	echo "took $name $((($(date +%s%N) - begin) / 1000000))"
}}
# Programs on the share are fetched from the host, page by page, each time they start.
mkdir /tmp/bin
cp /opt/gpureplay/bin/gpureplay /opt/gpureplay/lib/libgpureplay_{{opencl,recorder}}.so /tmp/bin
{command} > /dev/null
layered() {{ took layered env OPENCL_LAYERS=/tmp/bin/libgpureplay_opencl.so GPUREPLAY_NOTES=/dev/null {command}; }}
for round in $(seq {rounds}); do
	# In turns: what comes second finds what the first one left in caches.
	if ((round % 2)); then took live {command}; layered; else layered; took live {command}; fi
	way 1; rm -f recorded.trace; took recorded /tmp/bin/gpureplay record --raw recorded.trace -- {command}
	way 2; rm -f checked.trace; took checked /tmp/bin/gpureplay record --raw checked.trace -- {command}
	rm -f in-app.trace; took in-app /tmp/bin/gpureplay record --recorder user --raw in-app.trace -- {command}
done
"#
    )
}

fn kept(folder: &Folder, name: &str) -> Result<Option<Row>> {
    let path = kept_path(folder, name);
    match path.is_file() {
        true => files::from_toml(path).map(Some),
        false => Ok(None),
    }
}

fn keep(folder: &Folder, row: &Row) -> Result<()> {
    let text = toml::to_string(row).map_err(|error| Error::Usage(error.to_string()))?;
    files::create_dir(network_dir(folder, &row.name, "g52"))?;
    files::write(kept_path(folder, &row.name), text)
}

fn kept_path(folder: &Folder, name: &str) -> PathBuf {
    network_dir(folder, name, "g52").join(KEPT)
}

/// In seconds.
#[derive(Debug, PartialEq)]
struct Time {
    way: String,
    guest: f64,
    processor: f64,
}

/// Between lines `begin` and `took WAY MILLISECONDS`.
fn times(outcome: &Outcome) -> Vec<Time> {
    let (mut out, mut end, mut begin) = (Vec::new(), 0, Duration::ZERO);
    for line in outcome.stdout.split_inclusive(|&byte| byte == b'\n') {
        end += line.len();
        let arrived = outcome.pace.iter().find(|(bytes, _)| *bytes >= end);
        let used = arrived.map_or(Duration::ZERO, |(_, used)| *used);
        let line = String::from_utf8_lossy(line);
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["begin"] => begin = used,
            ["took", way, milliseconds] => {
                if let Ok(milliseconds) = milliseconds.parse::<u64>() {
                    out.push(Time {
                        way: way.to_owned(),
                        guest: milliseconds as f64 / 1000.0,
                        processor: used.saturating_sub(begin).as_secs_f64(),
                    });
                }
            }
            _ => {}
        }
    }
    out
}

fn median(times: &[Time], way: &str, of: impl Fn(&Time) -> f64) -> f64 {
    let times = times.iter().filter(|time| time.way == way);
    Sorted::new(times.map(of).collect())
        .median()
        .unwrap_or_default()
}

/// Of the last notes: dumps, hashed, clean, audited, logged; then walks and milliseconds.
fn counters(path: &Path) -> Result<Vec<u64>> {
    let wrong = |error: String| Error::Usage(format!("{}: {error}", path.display()));
    let file = File::open(path).map_err(Error::io("read", path))?;
    let mut reader = Reader::new(BufReader::new(file));
    let mut last = [String::new(), String::new()];
    while let Some(record) = reader
        .next_record()
        .map_err(|error| wrong(error.to_string()))?
    {
        match record.event {
            Event::Note(text) => {
                last.rotate_left(1);
                last[1] = text.to_string();
            }
            Event::Error { .. } => return Err(wrong("the recording is not complete".into())),
            _ => {}
        }
    }
    let text = last.join(" ");
    let numbers = text.split(|c: char| !c.is_ascii_digit());
    let numbers: Vec<u64> = numbers.filter_map(|word| word.parse().ok()).collect();
    match numbers.len() {
        COUNTERS => Ok(numbers),
        _ => Err(wrong(format!("ends with other notes: {text}"))),
    }
}

const COUNTERS: usize = 10;

fn table(rows: &[Row]) -> Table {
    let ratio = |row: &Row, way: usize| {
        let seconds = row.seconds.get(way).copied().unwrap_or_default();
        seconds / row.seconds[0].max(1e-3)
    };
    let said = |way: usize| {
        let ratios = Sorted::new(rows.iter().map(|row| ratio(row, way)).collect());
        let (middle, worst) = (ratios.median(), ratios.most());
        format!(
            "median ratio {:.2}, worst {:.2}",
            middle.unwrap_or_default(),
            worst.unwrap_or_default()
        )
    };
    let about = format!(
        "Beside live: by the kernel recorder {}; by the library in the app {}.",
        said(2),
        said(4)
    );
    let mut table = Table::new(
        about,
        "Program | Live, s | With the layer, s | Recorded, s | Checked, s | Ratio | In the app, s | Its ratio | \
         Processor time: live, s | With the layer, s | Recorded, s | Checked, s | In the app, s | \
         Dumps | Pages hashed | Left out | Audited | Logged | In dumps, ms | Waiting for the reader, ms",
    );
    for row in rows {
        let [live, layered, recorded, checked, in_app] = row.seconds;
        let [processor, layer, record, check, library] = row.processor;
        let at = |index: usize| row.notes[0].get(index).copied().unwrap_or_default();
        table.row(json!([
            row.name,
            live,
            layered,
            recorded,
            checked,
            ratio(row, 2),
            in_app,
            ratio(row, 4),
            processor,
            layer,
            record,
            check,
            library,
            at(0),
            at(1),
            at(2),
            at(3),
            at(4),
            at(8),
            at(9)
        ]));
    }
    table
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Time, median, times};
    use crate::run::session::{End, Outcome};

    #[test]
    fn each_run_has_the_time_of_the_guest_and_the_processor_time_between_its_lines() {
        let stdout = b"begin\ntook live 3000\nbegin\ntook live 1000\n".to_vec();
        let at = |bytes, seconds| (bytes, Duration::from_secs(seconds));
        let outcome = Outcome {
            end: End::Exit(0),
            pace: vec![at(6, 10), at(21, 14), at(29, 15), at(stdout.len(), 20)],
            stdout,
            logs: "logs".into(),
            faults: Vec::new(),
            boot: None,
            total: 0.0,
        };
        let time = |guest, processor| Time {
            way: "live".into(),
            guest,
            processor,
        };
        assert_eq!(times(&outcome), [time(3.0, 4.0), time(1.0, 5.0)]);
    }

    #[test]
    fn the_median_of_a_way_counts() {
        let of = |way: &str, guest| Time {
            way: way.into(),
            guest,
            processor: 0.0,
        };
        let times = [of("a", 3.0), of("b", 9.0), of("a", 1.0), of("a", 2.0)];
        assert_eq!(median(&times, "a", |time| time.guest), 2.0);
        assert_eq!(median(&times[..2], "a", |time| time.guest), 3.0);
        assert_eq!(median(&times[2..], "a", |time| time.guest), 1.5);
        assert_eq!(median(&times, "c", |time| time.guest), 0.0);
    }
}
