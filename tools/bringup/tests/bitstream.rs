//! Each format says what is in it; a damaged file is a typed error with the numbers, never a panic.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that panics has failed, which is its purpose"
)]

mod common;

use common::{bin, bit, rbf, swapped, words, xclbin, zynq};
use contigo_bringup::bitstream::{Bitstream, BitstreamError, ByteOrder, Family, Format, Image};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

#[test]
fn a_bit_says_its_names_and_its_device() {
    let file = zynq();
    let found = Bitstream::parse(&file).unwrap();
    assert_eq!(found.format, Format::Bit);
    assert_eq!(found.design.as_deref(), Some("top;UserID=0XFFFFFFFF;Version=2024.1"));
    assert_eq!(
        (found.part.as_deref(), found.date.as_deref()),
        (Some("7z020clg400"), Some("2026/11/23 13:00:00"))
    );
    assert_eq!(
        (found.idcode, found.partial, found.encrypted),
        (Some(0x0372_7093), Some(false), false)
    );
    assert_eq!((found.sync_bytes, found.frame_bytes, found.order), (48, 404, ByteOrder::BitFile));
    assert_eq!(
        (found.device().map(|part| part.name), found.family()),
        (Some("7z020"), Some(Family::Zynq7000))
    );
    let part =
        bit("rp_inst;PARTIAL=TRUE;Version=2024.1", "7z020clg400", &bin(&words(0x0372_7093, 101)));
    assert_eq!(Bitstream::parse(&part).unwrap().partial, Some(true));
}

#[test]
fn a_bit_becomes_the_bin_that_a_manager_takes() {
    let words = words(0x0372_7093, 2000);
    let manager = swapped(&words);
    let plain = bin(&words);
    let files = [
        bit("top", "7z020", &plain),
        plain.clone(),
        manager.clone(),
        xclbin(0, 0, &bit("top", "7z020", &plain)),
        xclbin(0, 1, &manager),
    ];
    for file in files {
        let image = Image::new(file).unwrap();
        let write = |order| {
            let mut written = Vec::new();
            image.bitstream.write(image.bytes(), order, &mut written).unwrap();
            written
        };
        assert!(write(ByteOrder::Swapped) == manager, "{:?}", image.bitstream);
        assert!(write(ByteOrder::BitFile) == plain, "{:?}", image.bitstream);
    }
}

#[test]
fn a_bin_and_an_rbf_say_what_they_can() {
    let found = Bitstream::parse(&swapped(&words(0x0373_1093, 7))).unwrap();
    assert_eq!(
        (found.format, found.order, found.idcode, found.partial),
        (Format::Bin, ByteOrder::Swapped, Some(0x0373_1093), None)
    );
    assert_eq!(found.device().map(|part| part.name), Some("7z045"));
    let found = Bitstream::parse(&rbf(4000)).unwrap();
    assert_eq!(
        (found.format, found.family(), found.idcode),
        (Format::Rbf, Some(Family::CycloneV), None)
    );
    let mut encrypted = words(0x0372_7093, 0);
    encrypted.truncate(20);
    encrypted.extend([0x3001_6004, 1, 2, 3, 4, 0x5555_5555, 0x0102_0304]);
    assert!(Bitstream::parse(&bin(&encrypted)).unwrap().encrypted);
}

#[test]
fn each_damage_has_its_name_and_its_numbers() {
    use BitstreamError as E;
    let good = words(0x0372_7093, 101);
    let refused = |file: &[u8]| Bitstream::parse(file).unwrap_err();
    let file = zynq();
    assert!(matches!(
        refused(&file[..file.len() - 8]),
        E::Cut { what: "its configuration", needs, has } if needs == has + 8
    ));
    assert!(matches!(
        refused(&[&file[..], &[0; 4]].concat()),
        E::Longer { says, has } if has == says + 4
    ));
    assert!(matches!(refused(&file[..20]), E::Cut { what: "its header", has: 20, .. }));
    let mut other = file.clone();
    let at = file.windows(3).position(|three| three == b"\0b\0").unwrap() + 1;
    other[at] = b'x';
    assert!(
        matches!(refused(&other), E::Field { wanted: 'b', found: b'x', offset } if offset == at)
    );
    let mut wrong = good.clone();
    wrong[12] = 0xaa99_5567;
    let short = wrong[..29].to_vec();
    assert!(matches!(refused(&bin(&short)), E::NoSync { searched: 116 }));
    assert!(matches!(refused(b""), E::NoSync { searched: 0 }));
    assert!(matches!(
        refused(&[&[0xff], &bin(&good)[..]].concat()),
        E::Unaligned { what: "the sync word", bytes: 49 }
    ));
    assert!(matches!(
        refused(&[&bin(&good)[..], &[0]].concat()),
        E::Unaligned { what: "the end", .. }
    ));
    assert!(matches!(refused(&bin(&good[..60])), E::Cut { what: "a packet", needs: 404, .. }));
    let end = good.len() - 18;
    assert!(matches!(refused(&bin(&good[..end])), E::NoEnd { .. }));
    let mut damaged = good.clone();
    damaged[13] = 0x8000_0000;
    assert!(matches!(refused(&bin(&damaged)), E::Packet { offset: 52, word: 0x8000_0000 }));
    let mut twice = good[..end].to_vec();
    twice.extend([0x3001_8001, 0x0373_1093, 0x3000_8001, 0xd]);
    assert!(matches!(
        refused(&bin(&twice)),
        E::TwoDevices { first: 0x0372_7093, second: 0x0373_1093 }
    ));
    let section = bin(&good);
    assert!(matches!(refused(&xclbin(6, 0, &section)), E::NoBitstream { sections: 2 }));
    assert!(matches!(refused(&xclbin(0, 4, &section)), E::Emulation { mode: 4 }));
    let whole = xclbin(0, 0, &section);
    assert!(matches!(refused(&whole[..whole.len() - 1]), E::Cut { what: "the file", .. }));
    let mut outside = whole.clone();
    outside[0x1c8 + 40 + 32..][..8].copy_from_slice(&u64::MAX.to_le_bytes());
    assert!(matches!(
        refused(&outside),
        E::Cut { what: "the section BITSTREAM", needs: u64::MAX, .. }
    ));
    let body = rbf(4000);
    assert!(matches!(
        refused(&body[..body.len() - 400]),
        E::Cut { what: "its tail of ones", needs: 256, has: 115 }
    ));
    // Each of them says what to do.
    for file in [
        &file[..60],
        &file[..file.len() - 8],
        b"nonsense",
        &whole[..whole.len() - 1],
        &bin(&damaged),
    ] {
        let said = refused(file).to_string();
        assert!(
            [": copy", "; copy", "; take", "; give", ": is it"]
                .iter()
                .any(|cure| said.contains(cure))
                || said.contains("give a"),
            "{said}"
        );
    }
}

/// Random cuts, flips, and nonsense: whatever comes, it is an answer, and what it says is inside
/// the file.
#[test]
fn no_file_makes_it_panic() {
    let mut random = fastrand::Rng::with_seed(0xb175);
    let plain = bin(&words(0x0372_7093, 40));
    let good = [
        zynq(),
        plain.clone(),
        swapped(&words(0x0372_7093, 40)),
        xclbin(0, 0, &zynq()),
        xclbin(0, 0, &plain),
        rbf(300),
    ];
    let (mut refused, mut taken) = (0, 0);
    for _ in 0..20_000 {
        let mut file = good[random.usize(..good.len())].clone();
        if random.bool() {
            file.truncate(random.usize(..=file.len()));
        }
        // Headers are where numbers are: most flips go there.
        for _ in 0..random.usize(..4) {
            if file.is_empty() {
                break;
            }
            let most = if random.bool() { file.len() } else { file.len().min(0x240) };
            let at = random.usize(..most);
            file[at] = if random.bool() { file[at] ^ 1 << random.u32(..8) } else { random.u8(..) };
        }
        match Bitstream::parse(&file) {
            Ok(found) => {
                taken += 1;
                let mut written = Vec::new();
                found.write(&file, ByteOrder::Swapped, &mut written).unwrap();
                assert_eq!(written.len(), found.payload.len());
                assert!(found.payload.end <= file.len() && found.sync_bytes < found.payload.len());
            }
            Err(error) => {
                refused += 1;
                assert!(!error.to_string().is_empty());
            }
        }
    }
    assert!(taken > 1000 && refused > 1000, "{taken} taken, {refused} refused");
}

/// Each byte is visited a few times: with a scan for each packet or section this would take days.
#[test]
fn parse_time_is_linear() {
    let (done, ends) = mpsc::channel();
    thread::spawn(move || {
        let packets = [&words(0x0372_7093, 0)[..14], &[0x2000_0000; 1 << 21]].concat();
        assert!(matches!(Bitstream::parse(&bin(&packets)), Err(BitstreamError::NoEnd { .. })));
        let mut sections = xclbin(6, 0, &[0; 8 << 20]);
        sections[0x1c0..0x1c4].copy_from_slice(&100_000_u32.to_le_bytes());
        sections[0x1c8..].fill(1);
        assert!(matches!(
            Bitstream::parse(&sections),
            Err(BitstreamError::NoBitstream { sections: 100_000 })
        ));
        assert!(Bitstream::parse(&rbf(8 << 20)).is_ok());
        done.send(()).unwrap();
    });
    ends.recv_timeout(Duration::from_secs(60)).unwrap();
}

/// A cut of a `.bin` is never taken for the whole: its packets tell.
#[test]
fn every_cut_is_seen() {
    let words = words(0x0372_7093, 40);
    let end = words.len() - 16;
    for file in [bin(&words), swapped(&words)] {
        for length in 0..end * 4 {
            assert!(Bitstream::parse(&file[..length]).is_err(), "{length} bytes");
        }
        assert!(Bitstream::parse(&file[..end * 4]).is_ok());
    }
}
