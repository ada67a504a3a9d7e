// SPDX-License-Identifier: MIT OR Apache-2.0
//! `guest record` for a GPU with command streams: the guest's Mesa drives the model's render node, as an ordinary user.

use super::{PROLOGUE, Recording, SETS, app};
use crate::{
    error::Result,
    run::{
        driver::Driver,
        session::{self, Options, Outcome},
    },
};

/// The program's files and the guest's caches belong to a user without any right.
const NOBODY: &str = "\
cp -r /share /tmp/work
chmod -R a+rwX /tmp/work /tmp/cache
cd /tmp/work
as() { setpriv --reuid=65534 --regid=65534 --clear-groups \"$@\"; }
";

impl Recording<'_> {
    /// Runs the program on the node: with each sample, then recorded once per set of inputs.
    pub(super) fn trace_on_node(&self) -> Result<Outcome> {
        app::write_files(self.folder, self.name, self.work)?;
        let gpu = self.gpu;
        let mut live = format!("set -e\n{}\n", self.app.command(SETS[1]));
        for output in &self.app.outputs {
            live += &format!("mv {output}{}.npy live/\n", SETS[1]);
        }
        live += &self.app.sample_script();
        let mut script = format!("{PROLOGUE}{NOBODY}");
        script += &format!("as gpureplay node --gpu {gpu} -- bash -c '{live}'\ntook live\n");
        for set in SETS {
            script += &format!(
                "begin=$(date +%s%N)\n\
                 as gpureplay record --force --raw trace{set} --recorder model --gpu {gpu} -- \
                 taskset -c 0 setarch --addr-no-randomize {}\n\
                 took record{set}\n",
                self.app.command(set)
            );
        }
        script += "cp -r . /share/\n";
        let options = Options {
            memory: self.app.memory,
            timeout: self.timeout,
            stream: true,
            ..Options::sharing(Driver::Stock, self.work)
        };
        session::script(self.folder, &options, &script)
    }
}
