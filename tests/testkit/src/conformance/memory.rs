//! Checks of the block itself: where it is, how it is carved, and when it is freed.
#![allow(unsafe_code, reason = "looks at a block before any region has it")]

use super::rig::{Rig, WAIT, expect, on_the_device, scribble};
use super::{Harness, Verdict, first_of};
use crate::ensure;
use crate::mapped::is_mapped;
use contigo::mem::{Mapping, SyncScope};
use contigo::{Align, Backend, CpuBuf, DevAddr, Error, Region};

/// `mapping` says the same at every call, also after the backend was moved; both of its addresses
/// are whole lines; two blocks share no byte.
pub fn the_mapping_is_stable_and_aligned<H: Harness>(harness: &H) -> Verdict {
    let same = |a: &Mapping, b: &Mapping| {
        (a.cpu, a.len_bytes, a.base, a.bus, a.scope, a.coherent)
            == (b.cpu, b.len_bytes, b.base, b.bus, b.scope, b.coherent)
    };
    let backend = harness.open(8192)?;
    let before = backend.mapping();
    ensure!(same(&before, &backend.mapping()), "two calls, two answers");
    let moved = Box::new(backend);
    ensure!(same(&before, &moved.mapping()), "the mapping changed when the backend was moved");
    let line = match before.scope {
        SyncScope::Range { granule_bytes } => Align::new(granule_bytes)?,
        _ => Align::LINE,
    };
    let Mapping { base, cpu, len_bytes, .. } = before;
    ensure!(len_bytes >= 8192, "only {len_bytes} bytes");
    ensure!(line.divides(len_bytes as u64), "{len_bytes} bytes are no whole lines: {line:?}");
    ensure!(line.divides(base.raw()), "the bus address {base:?} is not aligned");
    ensure!(line.divides(cpu.as_ptr().addr() as u64), "the CPU address {cpu:?} is not aligned");
    ensure!(!moved.name().is_empty(), "the backend has no name");

    let other = harness.open(8192)?.mapping();
    let apart = base.raw().abs_diff(other.base.raw());
    let shorter = len_bytes.min(other.len_bytes) as u64;
    ensure!(apart >= shorter, "two blocks at {base:?} and {:?} on the bus", other.base);
    Ok(())
}

/// The runs that `segment` tells of cover the block, and are contiguous.
pub fn segments_cover_the_block<H: Harness>(harness: &H) -> Verdict {
    let backend = harness.open(3 * 4096)?;
    let Mapping { len_bytes, base, .. } = backend.mapping();
    let mut offset = 0;
    while offset < len_bytes {
        let run = backend.segment(offset)?;
        let begins = run.addr == base.raw() + offset as u64;
        ensure!(begins, "byte {offset} of a block at {base:?}: {run:?}");
        let inside = (1..=len_bytes - offset).contains(&run.len_bytes);
        ensure!(inside, "byte {offset} of {len_bytes}: {run:?}");
        // From the middle of a run, the rest of it.
        let middle = run.len_bytes / 2;
        let rest = backend.segment(offset + middle)?;
        ensure!(rest.addr == run.addr + middle as u64, "the middle of {run:?}: {rest:?}");
        offset += run.len_bytes;
    }
    ensure!(offset == len_bytes, "the runs have {offset} bytes, the block {len_bytes}");
    Ok(())
}

/// A fresh block can be read, and its bytes stay. The region's first touch keeps the kernel's
/// bytes, and no dirty line of an earlier owner comes over them later.
pub fn views_are_initialised_and_hold_still<H: Harness>(harness: &H) -> Verdict {
    let backend = harness.open(4096)?;
    let mapping = backend.mapping();
    // SAFETY: the bytes are mapped and initialised (`Backend`, 2), and the backend, which no
    // other code has, lives on.
    let fresh =
        unsafe { std::slice::from_raw_parts(mapping.cpu.as_ptr().cast_const(), 4096) }.to_vec();
    let region = Region::new(backend)?;
    let whole = region.alloc(4096, Align::MIN)?;
    expect("a region, compared with the block before it", &whole, &fresh)?;

    let mut rng = fastrand::Rng::with_seed(3);
    let rig = Rig::new(harness, 4, 1024)?;
    let mut queue = rig.queue::<2>()?;
    let [first, mut input, output, copy] = rig.buffers()?;
    let before = first.view::<u8>()?.to_vec();
    scribble(&mut rng, &mut input)?;
    let [_input, _output] =
        queue.run([input.to_device(..), output.from_device(..)], &[1], WAIT)?.buffers;
    expect("a buffer that was never written", &first, &before)?;
    // The device, too, reads bytes that the CPU never wrote.
    let [first, copy] = queue.run([first.to_device(..), copy.from_device(..)], &[0], WAIT)?.buffers;
    expect("the device's copy of a buffer that was never written", &copy, &before)?;
    expect("the same buffer after the job", &first, &before)
}

/// A buffer begins at a multiple of its alignment for the CPU and for the device, ends inside the
/// block, and shares no byte with another one.
pub fn buffers_are_aligned_on_both_sides<H: Harness>(harness: &H) -> Verdict {
    let backend = harness.open(1 << 16)?;
    let Mapping { cpu, base, .. } = backend.mapping();
    let region = Region::new(backend)?;
    let mut out: Vec<CpuBuf> = Vec::new();
    for bits in [0, 5, 6, 7, 8, 9, 10, 11, 12, 3, 12] {
        let align = Align::new(1 << bits)?;
        if region.scope() == SyncScope::Whole {
            out.clear(); // A second one would be refused.
        }
        let buffer = region.alloc(100 + bits, align)?;
        let (start, len) = (buffer.offset_bytes(), buffer.len_bytes());
        let (bus, host) = (base.raw() + start as u64, cpu.as_ptr().addr() + start);
        ensure!(align.divides(bus), "bus address {bus:#x}, {align:?}");
        ensure!(align.divides(host as u64), "CPU address {host:#x}, {align:?}");
        ensure!(region.line().divides(start as u64), "offset {start} is inside a line");
        let is_whole = len >= 100 + bits && region.line().divides(len as u64);
        ensure!(is_whole, "{len} bytes for {}", 100 + bits);
        ensure!(start + len <= region.len_bytes(), "{len} bytes from {start}: behind the block");
        let apart = |other: &CpuBuf| {
            start + len <= other.offset_bytes() || other.offset_bytes() + other.len_bytes() <= start
        };
        ensure!(out.iter().all(apart), "bytes {start}.. are another buffer's too");
        ensure!(buffer.view::<u8>()?.as_ptr().addr() == host, "the view is somewhere else");
        out.push(buffer);
        let used: usize = out.iter().map(CpuBuf::len_bytes).sum();
        let free = region.free_bytes();
        ensure!(free == region.len_bytes() - used, "{free} bytes free beside {used}");
    }
    out.clear();
    let (free, capacity_bytes) = (region.free_bytes(), region.len_bytes());
    ensure!(free == capacity_bytes, "{free} bytes free after the last buffer");
    let need_bytes = capacity_bytes + 1;
    let refused = region.alloc(need_bytes, Align::MIN).map(drop);
    let no_room = Err(Error::Exhausted { need_bytes, capacity_bytes });
    ensure!(refused == no_room, "a buffer longer than the block: {refused:?}");
    Ok(())
}

/// Every pointer into the block has its bus address and every bus address its pointer. Addresses
/// outside are refused.
pub fn addresses_translate_both_ways<H: Harness>(harness: &H) -> Verdict {
    let (backend, port) = (harness.open(8192)?, harness.port());
    let Mapping { cpu, len_bytes, base, .. } = backend.mapping();
    let region = Region::new(backend)?;
    let DevAddr(first) = first_of(harness, base);
    let (at, bus) = (
        |offset: usize| cpu.as_ptr().wrapping_add(offset).cast_const(),
        |offset: usize| DevAddr(first + offset as u64),
    );
    for offset in (0..4096).chain(len_bytes - 4096..len_bytes) {
        let addr = region.dev_addr_of(&port, at(offset), 1)?;
        ensure!(addr == bus(offset), "byte {offset} has bus address {addr}");
        let ptr = region.host_ptr_of(&port, addr)?;
        ensure!(ptr.as_ptr().cast_const() == at(offset), "bus address {addr} is at {ptr:?}");
    }
    for (offset, len) in [(0, len_bytes), (1, len_bytes - 1), (len_bytes - 1, 1), (64, 0)] {
        let addr = region.dev_addr_of(&port, at(offset), len)?;
        ensure!(addr == bus(offset), "{len} bytes from byte {offset} are at {addr}");
    }
    let before = cpu.as_ptr().wrapping_sub(1).cast_const();
    let outside = [
        (at(len_bytes), 1),
        (at(len_bytes), 0),
        (at(len_bytes - 1), 2),
        (at(1), len_bytes),
        (at(0), usize::MAX),
        (before, 1),
    ];
    for (ptr, len) in outside {
        let refused = region.dev_addr_of(&port, ptr, len);
        let not_ours = Err(Error::NotOurs { addr: ptr.addr() as u64, len_bytes: len });
        ensure!(refused == not_ours, "{len} bytes at {ptr:?}: {refused:?}");
    }
    for addr in [first.wrapping_sub(1), first + len_bytes as u64, 0, u64::MAX] {
        let refused = region.host_ptr_of(&port, DevAddr(addr));
        let not_ours = Err(Error::NotOurs { addr, len_bytes: 1 });
        ensure!(refused == not_ours, "bus address {addr:#x}: {refused:?}");
    }
    Ok(())
}

/// When everything came back, the memory is freed: a device that still uses the address is astray.
pub fn what_came_back_is_freed<H: Harness>(harness: &H) -> Verdict {
    let rig = Rig::new(harness, 2, 1024)?;
    let base: Vec<_> =
        rig.regions().iter().map(|region| first_of(harness, region.base())).collect();
    let mut queue = rig.queue::<2>()?;
    let [input, output] = rig.buffers()?;
    let [input, output] =
        on_the_device(&mut queue, [input.to_device(..), output.from_device(..)], 9)?;
    drop(input);
    drop(output);
    drop(rig);
    for addr in base.into_iter().filter(|_| harness.sees_freed_memory()) {
        ensure!(harness.probe(addr, &mut [0; 4]).is_err(), "the block at {addr} is still there");
    }
    Ok(())
}

/// A buffer, a half of one or a pool's slot that was forgotten keeps the memory.
pub fn what_was_forgotten_stays<H: Harness>(harness: &H) -> Verdict {
    for forget in 0..3 {
        let backend = harness.open(4096)?;
        let mapping = backend.mapping();
        let region = Region::new(backend)?;
        match forget {
            0 => std::mem::forget(region.pool(1, 1024)?.take()?),
            1 => std::mem::forget(region.alloc(1024, Align::MIN)?),
            _ => std::mem::forget(region.alloc(1024, Align::MIN)?.split_at(512)?.1),
        }
        drop(region);
        stays(harness, mapping)?;
    }
    Ok(())
}

/// Is the block still mapped, and does a device still find it?
pub fn stays<H: Harness>(harness: &H, mapping: Mapping) -> Verdict {
    harness.probe(first_of(harness, mapping.base), &mut [0; 64])?;
    let cpu = mapping.cpu.as_ptr().addr();
    ensure!(is_mapped(cpu, mapping.len_bytes), "the block at {cpu:#x} is not mapped any more");
    Ok(())
}
