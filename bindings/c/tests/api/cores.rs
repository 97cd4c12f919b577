//! Each core by its driver's name, on its model: a device, its memory, a driver, and jobs with the
//! right bytes.

use crate::common::*;
use contigo_c::*;
use core::ffi::CStr;

const TIMEOUT_US: u32 = 100_000;
const LEN: usize = 4096;

/// The jobs of a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Operand 0 to operand 1.
    Copy,
    /// Operand 0 goes into a stream.
    Send,
    /// A stream's packet comes into operand 0: its first word is its number.
    Receive,
}

/// The device, its driver, the driver's settings, and its jobs.
const CORES: &[(&CStr, &CStr, &CStr, Kind)] = &[
    (c"sim:zdma", c"zdma", c"", Kind::Copy),
    (c"sim:pl330", c"pl330", c"", Kind::Copy),
    (c"sim:axi_cdma", c"axi_cdma", c"dre=1", Kind::Copy),
    (c"sim:axi_dma", c"axi_dma", c"", Kind::Copy),
    (c"sim:axi_dma", c"axi_dma", c"depth=4,irq_packets=4,irq_delay=10", Kind::Copy),
    (c"sim:axi_dma_sink", c"axi_dma", c"channel=0", Kind::Send),
    (c"sim:axi_dma_camera", c"axi_dma", c"channel=1", Kind::Receive),
    (c"sim:axi_dmac", c"axi_dmac", c"", Kind::Copy),
    (c"sim:axi_dmac_sink", c"axi_dmac", c"", Kind::Send),
    (c"sim:axi_dmac_camera", c"axi_dmac", c"", Kind::Receive),
    (c"sim:msgdma", c"msgdma", c"max_bytes=4096", Kind::Copy),
    (c"sim:msgdma_prefetcher", c"msgdma", c"max_bytes=4096,prefetcher_at=0x60", Kind::Copy),
    (c"sim:msgdma_sink", c"msgdma", c"mode=1,max_bytes=4096", Kind::Send),
    (c"sim:msgdma_camera", c"msgdma", c"mode=2,max_bytes=4096,resp_at=0x40", Kind::Receive),
    (c"sim:axi_mcdma_sink", c"axi_mcdma", c"channel=0", Kind::Send),
    (c"sim:axi_mcdma_camera", c"axi_mcdma", c"channel=16", Kind::Receive),
    (c"sim:axi_vdma_sink", c"axi_vdma", c"channel=0,hsize_bytes=64,vsize_lines=64", Kind::Send),
    (
        c"sim:axi_vdma_camera",
        c"axi_vdma",
        c"channel=1,hsize_bytes=64,vsize_lines=64",
        Kind::Receive,
    ),
    (c"sim:litepcie", c"litepcie", c"", Kind::Copy),
];

/// An HLS kernel's operands are those of its map: `kernels.rs` has its jobs.
#[test]
fn no_driver_is_left_out() {
    contigo::names::each_row(|row| {
        let here = CORES.iter().any(|(_, driver, ..)| driver.to_str() == Ok(row.name));
        assert_eq!(here, row.name != "ap_ctrl", "{}", row.name);
    });
}

#[test]
fn each_core_does_its_jobs() {
    for &(name, driver, settings, kind) in CORES {
        let device = open_device(name);
        let region = sim_memory(device);
        let options = contigo_engine_options {
            settings: settings.as_ptr(),
            region_bytes: 1 << 18,
            ..engine_options(driver, device, 0, region)
        };
        let engine = open_engine(&options);
        for round in 0..10_u8 {
            let (n, what) =
                (if kind == Kind::Copy { 2 } else { 1 }, format!("{name:?} {settings:?} {round}"));
            let bufs: Vec<_> = (0..n).map(|_| carve(region, LEN, LEN)).collect();
            bufs.iter().for_each(|buf| fill(*buf, 0xEE));
            fill(bufs[0], round);
            let operands: Vec<_> = bufs.iter().map(|buf| part(*buf, LEN)).collect();
            let job = start_job(engine, &operands, &[]);
            ok(wait(job, TIMEOUT_US));
            match kind {
                Kind::Copy => assert_eq!(bytes(bufs[1]), [round; LEN], "{what}"),
                Kind::Send => assert_eq!(bytes(bufs[0]), [round; LEN], "{what}"),
                Kind::Receive => assert!(bytes(bufs[0])[4..8] == LEN.to_le_bytes()[..4], "{what}"),
            }
            release_all(&operands);
        }
        ok(contigo_engine_close(engine));
        ok(contigo_region_close(region));
        ok(contigo_device_close(device));
    }
}

/// One device, an engine for each channel: what one sends the other receives.
#[test]
fn both_channels_of_an_axi_dma_side_by_side() {
    let device = open_device(c"sim:axi_dma");
    let region = sim_memory(device);
    let open = |settings: &CStr| {
        open_engine(&contigo_engine_options {
            settings: settings.as_ptr(),
            ..engine_options(c"axi_dma", device, 0, region)
        })
    };
    let [send, receive] = [open(c"channel=0"), open(c"channel=1")];
    let [packet, room] = [0, 1].map(|_| carve(region, LEN, LEN));
    fill(packet, 7);
    fill(room, 0);
    let start = |engine, operand: &contigo_operand| start_job(engine, &[*operand], &[]);
    let (out, back) = (part(packet, 1000), part(room, LEN));
    let [received, sent] = [start(receive, &back), start(send, &out)];
    ok(wait(sent, TIMEOUT_US));
    let mut completion = empty::<contigo_completion>();
    ok(unsafe { contigo_job_wait(received, TIMEOUT_US, &mut completion) });
    assert_eq!((bytes(room)[..1000].to_vec(), completion.bytes), (vec![7; 1000], 1000));
    release_all(&[out, back]);
    [send, receive].into_iter().for_each(|engine| ok(contigo_engine_close(engine)));
    ok(contigo_region_close(region));
    ok(contigo_device_close(device));
}

/// Four copies by a list, each for itself or as a burst.
#[test]
fn burst_shares_its_calls_for_the_caches() {
    let device = open_device(c"sim:zdma");
    let region = sim_memory(device);
    let engine = open_engine(&engine_options(c"zdma", device, 0, region));
    let (mut pairs, nothing) = (Vec::new(), core::ptr::null());
    for _ in 0..4 {
        pairs.push([0, 1].map(|_| part(carve(region, LEN, LEN), LEN)));
    }
    let other = unsafe { contigo_job_start(engine, core::ptr::null(), 0, nothing, 0, 2, &mut 0) };
    refused(other, CONTIGO_E_VALUE, "flags");
    let syncs = |flag: u32, value: u8| {
        pairs.iter().for_each(|[from, to]| {
            fill(from.buf, value);
            fill(to.buf, 0);
        });
        let before = region_info(region).syncs;
        let jobs: Vec<_> = (0..4)
            .map(|index| {
                let (flags, mut job) = (if index < 3 { flag } else { 0 }, 0);
                let pair = pairs[index].as_ptr();
                ok(unsafe { contigo_job_start(engine, pair, 2, nothing, 0, flags, &mut job) });
                job
            })
            .collect();
        jobs.into_iter().for_each(|job| ok(wait(job, TIMEOUT_US)));
        assert!(pairs.iter().all(|[_, to]| bytes(to.buf) == vec![value; LEN]));
        region_info(region).syncs - before
    };
    let (alone, burst) = (syncs(0, 1), syncs(CONTIGO_JOB_MORE, 2));
    assert!(2 * burst < alone, "{burst} calls, and {alone} alone");
    pairs.iter().for_each(|pair| release_all(pair));
    ok(contigo_engine_close(engine));
    ok(contigo_region_close(region));
    ok(contigo_device_close(device));
}
