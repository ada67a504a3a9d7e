// SPDX-License-Identifier: MIT OR Apache-2.0
//! The recorder finds out when it has been deceived, and outlives its driver.

use std::{fs, io::BufReader, path::Path};

use gpureplay_trace::{Event, Reader};

use super::scene::{clean, script, temporary};
use crate::{
    error::Result,
    folder::Folder,
    record::app::{self, App},
    run::driver::Driver,
    run::session::Options,
};

/// `APP` is recorded as it is; then with a library that keeps buffers of each job from the driver; then its driver goes in the middle.
const SCRIPT: &str = r#"set -e
APP > /dev/null
gpureplay record --raw honest -- APP
if gpureplay record -o deceived -- env LD_PRELOAD=/opt/gpureplay/lib/libforgetful.so APP 2> said; then
	echo "the recording was made"; exit 9
fi
driver=/sys/bus/platform/drivers/panfrost
for device in $driver/*/driver_override; do device=${device%/driver_override}; device=${device##*/}; done
gpureplay record --raw unbound -- sh -c "APP && echo $device > $driver/unbind"
echo $device > $driver/bind
sleep 1
APP > /dev/null
"#;

/// What `record` says of a page that changed although nobody can have changed it (GPUREPLAY_ERROR_UNSEEN).
const UNSEEN: &str = "recording is not complete: error 11";

pub(super) fn notices(folder: &Folder) -> Result<std::result::Result<(), String>> {
    let share = temporary()?;
    let work = share.path();
    app::write_files(folder, "saxpy", work)?;
    let command = App::find(folder, "saxpy")?.command("");
    let options = Options {
        driver: Driver::Patched,
        share: Some(work.to_path_buf()),
        ..Options::default()
    };
    let outcome = script(folder, &options, &SCRIPT.replace("APP", &command))?;
    Ok(clean(&outcome).and_then(|()| {
        let said = fs::read_to_string(work.join("said")).map_err(|error| error.to_string())?;
        if !said.contains(UNSEEN) {
            return Err(format!(
                "a recording was refused for another reason: {said}"
            ));
        }
        is_complete(&work.join("honest"))?;
        is_complete(&work.join("unbound"))
    }))
}

/// The trace ends as it should and holds no error.
fn is_complete(trace: &Path) -> std::result::Result<(), String> {
    let wrong = |text: String| format!("{}: {text}", trace.display());
    let file = fs::File::open(trace).map_err(|error| wrong(error.to_string()))?;
    let mut reader = Reader::new(BufReader::new(file));
    let mut jobs = 0;
    while let Some(record) = reader
        .next_record()
        .map_err(|error| wrong(error.to_string()))?
    {
        match record.event {
            Event::Error { .. } => return Err(wrong(format!("{:?}", record.event))),
            Event::Complete { .. } => jobs += 1,
            _ => {}
        }
    }
    match jobs {
        0 => Err(wrong("no job".into())),
        _ => Ok(()),
    }
}
