// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recording as an ordinary user.

use std::fs;

use super::{PROLOGUE, Recording, SETS, app};
use crate::{
    error::Result,
    run::{
        board::Board,
        driver::Driver,
        session::{self, Options, Outcome},
    },
};

pub(crate) const NOBODY: &str = r#"set -e
as() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
chmod a+rw /dev/dri/renderD128
cp -r /share /tmp/work
chmod -R a+rwX /tmp/work /tmp/cache
cd /tmp/work
mkdir -p -m 777 live
"#;
/// Libraries sort buffers by host address: compared runs need equal ones.
const ALIKE: &str = "setarch --addr-no-randomize";

impl Recording<'_> {
    pub(crate) fn trace_by_user(&self, stream: bool) -> Result<Outcome> {
        app::write_files(self.folder, self.name, self.work)?;
        for set in SETS {
            let _ = fs::remove_file(self.work.join(format!("trace{set}")));
        }
        let mut script = format!("{NOBODY}{PROLOGUE}");
        script += &format!("as {ALIKE} {}\ntook live\n", self.app.command(SETS[1]));
        for output in &self.app.outputs {
            script += &format!("mv {output}{}.npy live/\n", SETS[1]);
        }
        script += &self.app.sample_script();
        for set in SETS {
            let command = self.app.command(set);
            script += &format!(
                "begin=$(date +%s%N)\n\
                 as gpureplay record --force --raw trace{set} -- {ALIKE} {command}\n\
                 took record{set}\n"
            );
        }
        script += "cp -r . /share/\n";
        let options = Options {
            gpu: self.gpu.into(),
            memory: self.app.memory,
            timeout: self.timeout,
            stream,
            board: Board {
                non_coherent: self.non_coherent,
                ..Board::default()
            },
            ..Options::sharing(Driver::Stock, self.work)
        };
        session::script(self.folder, &options, &script)
    }
}
