//! Each master has memory of its own behind it, whether it only reads, only writes, or is the
//! third.

use crate::cores::rig::Rig;
use crate::cores::skip;
use contigo_rtl::axi::SlaveConfig;
use contigo_rtl::{RtlConfig, RtlModel};

const FROM: u32 = 0x1004;
const TO: u32 = 0x2008;
const SUM: u32 = 0x3010;
const COUNT: u32 = 37;

#[test]
fn three_masters_each_reach_memory() {
    for memory in [SlaveConfig::CALM, SlaveConfig::HOSTILE] {
        let config = RtlConfig { memory, finds_unknowns: true, ..RtlConfig::default() };
        let Some(model) = skip::or_skip(RtlModel::new("split", config)) else { return };
        let mut rig = Rig::new(model, 3);
        let word = |rig: &Rig, at: u32| {
            u32::from_le_bytes(rig.memory.bytes[at as usize..][..4].try_into().unwrap())
        };
        let sum = |rig: &Rig| u64::from(word(rig, SUM)) | u64::from(word(rig, SUM + 4)) << 32;
        let before = sum(&rig);
        for (register, value) in [(4, FROM), (8, TO), (12, SUM), (16, COUNT), (0, 1)] {
            rig.write(register, value);
        }
        rig.pass_us(1_000);
        assert_eq!((rig.read(0), rig.findings()), (0, &[] as &[_]));
        let words =
            |rig: &Rig, from: u32| (0..COUNT).map(|n| word(rig, from + 4 * n)).collect::<Vec<_>>();
        assert_eq!(words(&rig, TO), words(&rig, FROM));
        let added = words(&rig, FROM).into_iter().map(u64::from).sum::<u64>();
        assert_eq!(sum(&rig), before.wrapping_add(added));
        let bursts = [0, 1, 2, 3]
            .map(|master| rig.model.counts(master).map(|counts| (counts.reads, counts.writes)));
        assert_eq!(bursts, [Some((37, 0)), Some((0, 37)), Some((1, 1)), None]);
    }
}
