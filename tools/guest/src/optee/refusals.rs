// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packs that the secure world refuses.

use std::collections::BTreeMap;

use gpureplay_format::{Access, Builder, ElementType, RegionKind, SegmentKind, Tensor, TensorKind};
use gpureplay_sign::{SecretKey, sign};

use super::{
    clients,
    rig::{Rig, Share, npy, pack, packed, recording},
    test_key,
};
use crate::{
    error::{Error, Result},
    files,
};

const COUNTER: u64 = 5;
const OLD: u64 = 4;

fn other_key() -> Result<SecretKey> {
    SecretKey::from_seed([8; 32]).map_err(|error| Error::Usage(format!("{error:?}")))
}

fn against_a_rule() -> Result<Vec<u8>> {
    const GPU: u32 = 0x7212_0000;
    const PLACE: u64 = 0x200_0000;
    let mut builder = Builder::new(GPU);
    builder.identity(0, 0xffff_0000, GPU);
    builder.region(
        PLACE,
        1,
        Access(Access::READ_WRITE.0 | Access::EXECUTE.0),
        RegionKind::Code,
    );
    builder.region(PLACE + 0x1000, 1, Access::READ_WRITE, RegionKind::Data);
    let tensor = |name, kind, va| Tensor::dense(name, kind, ElementType::U8, &[8], va);
    let input = builder.tensor(tensor("input", TensorKind::Input, PLACE + 0x1000));
    let output = builder.tensor(tensor("probabilities", TensorKind::Output, PLACE + 0x1008));
    builder.segment("run", SegmentKind::Run);
    builder.bind_input(input);
    builder.bind_output(output);
    builder
        .finish()
        .map_err(|error| Error::Usage(format!("{error:?}")))
}

pub(super) fn refusals(rig: &Rig<'_>) -> Result<String> {
    let share = Share::new()?;
    let digits = recording(rig.folder, "digits-g52");
    let good = files::read(digits.join("recording.gpr"))?;
    let key = test_key()?;
    let signature = signature(&key, &good)?;
    let mut changed = good.clone();
    let middle = changed.len() / 2;
    if let Some(byte) = changed.get_mut(middle) {
        *byte ^= 1;
    }
    share.write("unsigned", &packed(&good, None)?)?;
    share.write("foreign", &pack(&good, &other_key()?, COUNTER)?)?;
    share.write("forged", &packed(&changed, Some(signature))?)?;
    share.write("damaged", &pack(&changed, &key, COUNTER)?)?;
    share.write("rule", &pack(&against_a_rule()?, &key, COUNTER)?)?;
    share.write("good", &pack(&good, &key, COUNTER)?)?;
    share.write("old", &pack(&good, &key, OLD)?)?;
    share.write("three.bin", &npy(&digits.join("inputs/3.npy"))?)?;
    let boot = "cd /share\nfor name in $(< order); do\n\
        gpureplay_tee $name -i input:256=three.bin -o probabilities:40=$name.out > $name.said 2>&1\n\
        echo $? >> $name.said\ndone\ntrue\n";
    share.write("order", b"unsigned foreign forged damaged rule good old")?;
    rig.clean(&share, boot)?;
    let says = [
        ("unsigned", "the pack has no signature"),
        ("foreign", "signed with another key"),
        ("forged", "signature does not fit"),
        ("damaged", "section data is damaged"),
        ("rule", "rule write-xor-execute is broken"),
        ("good", "1 runs\n0\n"),
        ("old", "older than one that has run"),
    ];
    said(&share, &says)?;
    if share.read("good.out")? != npy(&digits.join("expected/3.npy"))? {
        return Err("good: a wrong answer".into());
    }
    share.write("order", b"old good")?;
    rig.clean(&share, boot)?;
    let after = [
        ("old", "older than one that has run"),
        ("good", "1 runs\n0\n"),
    ];
    said(&share, &after)?;
    Ok("5 refusals, and the old pack in two boots".into())
}

fn signature(key: &SecretKey, recording: &[u8]) -> Result<Vec<u8>> {
    sign(key, COUNTER, recording, &BTreeMap::new())
        .map_err(|error| Error::Usage(format!("cannot sign: {error:?}")))
}

fn said(share: &Share, expected: &[(&str, &str)]) -> Result<()> {
    for (name, message) in expected {
        let text = share.text(&format!("{name}.said"))?;
        if !text.contains(message) {
            return Err(format!("{name}: expected `{message}`, got {text}").into());
        }
    }
    Ok(())
}

/// Exit codes: 2 wrong use, 3 recording refused, 5 device.
const BY_THE_COMMAND: [(&str, &str); 8] = [
    (
        "unsigned",
        "it has no signature (`gpureplay sign` makes one)\n3\n",
    ),
    (
        "foreign",
        "signed with another key than the one in the trusted application\n3\n",
    ),
    (
        "forged",
        "its signature does not fit, one of them was changed after signing\n3\n",
    ),
    ("good", "matches expected-3.npy bit for bit\n0\n"),
    (
        "old",
        "its counter is smaller than that of one that has run",
    ),
    (
        "layers",
        "it runs all layers of a recording, not a part of them; choose another device for it\n2\n",
    ),
    (
        "unstated",
        "give all states with --state-in FILE.safetensors\n4\n",
    ),
    ("cancelled", clients::CANCELLED),
];

pub(super) fn by_the_command(rig: &Rig<'_>, share: &Share) -> Result<String> {
    let digits = recording(rig.folder, "digits-g52");
    let good = files::read(digits.join("recording.gpr"))?;
    let key = test_key()?;
    share.write("unsigned", &packed(&good, None)?)?;
    share.write("foreign", &pack(&good, &other_key()?, COUNTER)?)?;
    share.write("good", &pack(&good, &key, COUNTER)?)?;
    share.write("old", &pack(&good, &key, OLD)?)?;
    // A signature of another recording: only the secure world refuses it.
    let lenet = files::read(recording(rig.folder, "lenet-g52").join("recording.gpr"))?;
    share.write("forged", &packed(&lenet, Some(signature(&key, &good)?))?)?;
    share.write(
        "short.pack",
        &pack(&clients::long(&clients::SHORT)?, &key, COUNTER)?,
    )?;
    share.write("x.bin", b"8 bytes.")?;
    share.write("3.npy", &files::read(digits.join("inputs/3.npy"))?)?;
    let case = rig.folder.repository.join("recordings/lenet-g52/inputs");
    let first = files::entries(&case)?.into_iter().next();
    share.write("lenet.npy", &files::read(first.unwrap_or(case))?)?;
    share.write(
        "expected-3.npy",
        &files::read(digits.join("expected/3.npy"))?,
    )?;
    let pem = share.path("key.pem");
    files::write(&pem, key.public().to_pem())?;
    let interrupt = clients::interrupt("cancelled.said");
    let script = format!(
        "say() {{ local name=$1; shift; \"$@\" > $name.said 2>&1; echo $? >> $name.said; }}\n\
         say unstated run generate.pack --input forced.npy\n\
         for name in unsigned foreign; do say $name run $name --input 3.npy; done\n\
         say forged run forged --input lenet.npy\n\
         say good run good --input 3.npy --expect expected-3.npy --require-signature key.pem\n\
         say old run old --input 3.npy\n\
         say layers run good --input 3.npy --until conv2\n\
         {interrupt} echo $code >> cancelled.said\n"
    );
    Ok(script)
}

pub(super) fn said_by_the_command(share: &Share) -> Result<()> {
    let during = share.text("during")?;
    said(share, &BY_THE_COMMAND)
        .map_err(|reason| format!("{reason}; at the signal: {during}").into())
}
