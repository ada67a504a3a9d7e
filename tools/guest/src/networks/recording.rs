// SPDX-License-Identifier: MIT OR Apache-2.0
//! `guest recording-times`: what recording costs, live against recorded, with the recorder's own counters.

use std::{
    fmt::Write as _, fs::File, io::BufReader, path::Path, process::ExitCode, time::Duration,
};

use clap::Args;
use gpureplay_io::statistics::Sorted;
use gpureplay_trace::{Event, Reader};

use crate::{
    build::payload,
    document::replace,
    error::{Error, Result},
    folder::Folder,
    record::app::{self, App},
    run::{
        driver::Driver,
        report,
        session::{self, End, Options},
    },
};

/// Where the table goes.
const DOCUMENT: &str = "docs/performance.md";

/// Measures what recording costs: each program live, live with the OpenCL layer, recorded, and recorded with every page checked, in turns.
///
/// The checked runs fail if a page changed that the recorder would not have looked at. Times are the guest's, of the whole program,
/// with its shaders in the cache; the median of the rounds counts.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Examples:\n  cargo xtask guest recording-times lenet squeezenet-1.1\n  \
                        cargo xtask guest recording-times --write    # all networks; hours"
)]
pub(crate) struct RecordingTimes {
    /// Programs of tools/guest/recordable.toml; all networks if none is named.
    names: Vec<String>,
    /// Rounds.
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: u32,
    /// Put the table into docs/performance.md.
    #[arg(long)]
    write: bool,
    /// Use the programs in target/guest/opt as they are.
    #[arg(long)]
    no_build: bool,
    /// Seconds until a program is given up.
    #[arg(long, default_value_t = 7200, value_name = "SECONDS")]
    timeout: u64,
}

/// The ways to run a program, as the script calls them.
const WAYS: [&str; 4] = ["live", "layered", "recorded", "checked"];

/// Medians in seconds, and the recorder's notes of the last recorded run.
struct Row {
    name: String,
    seconds: [f64; 4],
    notes: [Vec<u64>; 2],
}

impl RecordingTimes {
    /// Runs the command.
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
        folder.require_built()?;
        if !self.no_build {
            payload::prepare(&folder, Driver::Patched)?;
        }
        let mut rows = Vec::new();
        for name in &names {
            rows.push(self.row(&folder, name)?);
        }
        let text = table(&rows);
        print!("{text}");
        if self.write {
            replace(&folder.repository.join(DOCUMENT), "recording-times", &text)?;
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
            timeout: Duration::from_secs(self.timeout),
            share: Some(share.path().to_path_buf()),
            ..Options::default()
        };
        let command = ["bash", "-c", &script(&app.command(""), self.rounds)].map(String::from);
        let outcome = session::run(folder, &options, Some(&command))?;
        if outcome.end != End::Exit(0) || !outcome.faults.is_empty() {
            report(&outcome, false, self.timeout);
            return Err(Error::Usage(format!("{name} was not measured")));
        }
        let said = String::from_utf8_lossy(&outcome.stdout);
        Ok(Row {
            name: name.to_owned(),
            seconds: WAYS.map(|way| median(&said, way)),
            notes: [
                counters(&share.path().join("recorded.trace"))?,
                counters(&share.path().join("checked.trace"))?,
            ],
        })
    }
}

/// Runs a program in each way, in turns; its answers stay the same.
fn script(command: &str, rounds: u32) -> String {
    format!(
        r#"set -e
way() {{ echo "$1" > /sys/module/gpureplay_recorder/parameters/dirty; }}
took() {{
	local begin name=$1; shift
	begin=$(date +%s%N)
	"$@" > /dev/null
	echo "took $name $((($(date +%s%N) - begin) / 1000000))"
}}
# Programs on the share are fetched from the host, page by page, each time they start.
mkdir /tmp/bin
cp /opt/gpureplay/bin/gpureplay /opt/gpureplay/lib/libgpureplay_opencl.so /tmp/bin
{command} > /dev/null
layered() {{ took layered env OPENCL_LAYERS=/tmp/bin/libgpureplay_opencl.so GPUREPLAY_NOTES=/dev/null {command}; }}
for round in $(seq {rounds}); do
	# In turns: what comes second finds what the first one left in caches.
	if ((round % 2)); then took live {command}; layered; else layered; took live {command}; fi
	way 1; rm -f recorded.trace; took recorded /tmp/bin/gpureplay record --raw recorded.trace -- {command}
	way 2; rm -f checked.trace; took checked /tmp/bin/gpureplay record --raw checked.trace -- {command}
done
"#
    )
}

/// The median of the times that the script printed for a way, in seconds.
fn median(said: &str, way: &str) -> f64 {
    let prefix = format!("took {way} ");
    let times = said.lines().filter_map(|line| line.strip_prefix(&prefix));
    let times = times.filter_map(|time| time.parse().ok()).collect();
    Sorted::new(times).median().unwrap_or_default() / 1000.0
}

/// The numbers in a trace's last notes, which are the recorder's: dumps, hashed, clean, audited, logged; walks and milliseconds.
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

/// Numbers in the recorder's last notes.
const COUNTERS: usize = 10;

fn table(rows: &[Row]) -> String {
    let mut text = String::from(
        "| Program | Live | With the layer | Recorded | Ratio | Checked | Dumps | Pages hashed | Left out | Audited | Logged | In dumps | Waiting for the reader |\n\
         | --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: |\n",
    );
    let mut ratios = Vec::new();
    for row in rows {
        let [live, layered, recorded, checked] = row.seconds;
        let ratio = recorded / live.max(1e-3);
        ratios.push(ratio);
        let at = |index: usize| row.notes[0].get(index).copied().unwrap_or_default();
        let _ = writeln!(
            text,
            "| {} | {live:.1} s | {:+.1} % | {recorded:.1} s | {ratio:.2} | {checked:.1} s | {} | {} | {} | {} | {} | {:.1} s | {:.1} s |",
            row.name,
            100.0 * (layered / live.max(1e-3) - 1.0),
            at(0),
            at(1),
            at(2),
            at(3),
            at(4),
            at(8) as f64 / 1000.0,
            at(9) as f64 / 1000.0,
        );
    }
    let ratios = Sorted::new(ratios);
    if let (Some(worst), Some(middle)) = (ratios.most(), ratios.median()) {
        let _ = writeln!(text, "\nMedian ratio {middle:.2}, worst {worst:.2}.");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn the_median_of_a_way_counts() {
        let said = "took live 3000\ntook recorded 5\ntook live 1000\nother\ntook live 2000\n";
        assert!((median(said, "live") - 2.0).abs() < 1e-9);
        assert!((median("took live 1\ntook live 2\n", "live") - 0.0015).abs() < 1e-9);
        assert!((median(said, "checked") - 0.0).abs() < 1e-9);
    }
}
