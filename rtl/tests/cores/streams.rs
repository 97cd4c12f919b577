//! A core's streams end in the runtime's: packets of a source pass through a core, every byte.

use crate::cores::rig::Rig;
use crate::cores::skip;
use contigo::sim::stream::{SourceConfig, StreamConfig, packet};
use contigo_rtl::axi::{Breach, Channel};
use contigo_rtl::{RtlConfig, RtlModel};
use contigo_testkit::fnv;

const PACKETS: u32 = 30;
/// No multiple of a beat, and a third of it for every fourth packet.
const PACKET_BYTES: usize = 100;

fn rig(stalls: u16, bytes_per_us: u64) -> Option<Rig> {
    let source = SourceConfig {
        packets: PACKETS,
        packet_bytes: PACKET_BYTES,
        bytes_per_us,
        short_every: Some(4),
        ..SourceConfig::default()
    };
    let config = RtlConfig {
        stream: StreamConfig::source(source, 512),
        stream_stalls: stalls,
        ..RtlConfig::default()
    };
    Some(Rig::new(skip::or_skip(RtlModel::new("passes", config))?, 1))
}

#[test]
fn packets_pass_through() {
    for stalls in [0, 300] {
        let Some(mut rig) = rig(stalls, 100) else { return };
        rig.pass_us(100);
        assert_eq!(
            rig.model.stream_counts().unwrap().begun,
            0,
            "the source begins when the core is ready"
        );
        rig.write(4, 0);
        rig.pass_us(100);
        let mut hash = fnv::START;
        for number in 0..PACKETS {
            let mut bytes = [0; PACKET_BYTES];
            let len = if number % 4 == 0 { PACKET_BYTES / 12 * 4 } else { PACKET_BYTES };
            packet::part(number, len, 0, &mut bytes[..len]);
            hash = fnv::more(hash, &bytes[..len]);
        }
        let counts = rig.model.stream_counts().unwrap();
        assert_eq!(
            (rig.read(0), counts.taken, counts.sent, counts.lost + counts.cut),
            (PACKETS, 30, 30, 0)
        );
        assert_eq!((counts.sent_hash, rig.findings()), (hash, &[] as &[_]));
    }
}

/// 5 GB/s come, and the core takes 1.6: the source does not wait.
#[test]
fn source_loses_packets_on_slow_core() {
    let Some(mut rig) = rig(900, 5_000) else { return };
    rig.write(4, 0);
    rig.pass_us(100);
    let counts = rig.model.stream_counts().unwrap();
    assert!(
        counts.lost > 0
            && counts.taken + counts.lost + counts.cut == counts.begun
            && counts.begun == 30,
        "{counts:?}"
    );
}

/// Otherwise the source would go on in the middle of a packet, and the core would take its rest for
/// a whole one.
#[test]
fn core_reset_reaches_its_source() {
    let Some(mut rig) = rig(0, 100) else { return };
    rig.write(4, 0);
    rig.pass_us(2);
    rig.write(4, 2);
    let then = rig.model.stream_counts().unwrap();
    assert_eq!((then.begun, then.taken, then.cut), (2, 1, 1));
    rig.pass_us(50);
    assert_eq!(
        rig.model.stream_counts().unwrap(),
        then,
        "a source that was reset waits for the core"
    );
    rig.write(4, 0);
    rig.pass_us(100);
    let counts = rig.model.stream_counts().unwrap();
    assert_eq!(
        (rig.read(0), counts.begun, counts.taken, counts.cut, counts.lost),
        (29, 30, 29, 1, 0)
    );
}

#[test]
fn a_beat_stays_until_it_is_taken() {
    let Some(mut rig) = rig(300, 100) else { return };
    rig.write(4, 1);
    rig.pass_us(100);
    let breaches = rig.findings().iter().map(|finding| finding.breach);
    assert!(
        breaches.clone().count() > 0
            && breaches
                .clone()
                .all(|breach| breach == Breach::ValidDropped { channel: Channel::Stream })
    );
}
