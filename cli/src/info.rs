//! `contigo info`: what DMA memory this machine offers, and what keeps the rest from working.

use crate::{
    failure::Failure,
    machine::{Access, Machine, UDmaBufDevice},
    output, table,
};
use clap::Args;
use contigo::HugeTlb;
use contigo_boards::sim::HP0;
use serde::Serialize;
use std::{env::consts::ARCH, io};

/// What can be asked of it.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

/// Everything that is printed.
#[derive(Debug, Serialize)]
struct Report {
    architecture: &'static str,
    kernel: Option<String>,
    /// Address bits that all of the machine's memory needs.
    memory_addr_bits: Option<u32>,
    memory: Vec<Offer>,
}

/// One kind of memory, or one device of it.
#[derive(Debug, Default, Serialize)]
struct Offer {
    /// What to write after `--heap`.
    heap: String,
    state: State,
    size_bytes: Option<u64>,
    /// Address bits that a master needs to reach all of it.
    addr_bits: Option<u32>,
    /// `None`: it depends on the port.
    coherent: Option<bool>,
    /// Who may open it.
    access: Option<String>,
    /// What it is, or why it does not work and what to do.
    note: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    /// `contigo demo --heap` works on it.
    Ready,
    /// It is there, and something keeps it from working.
    Blocked,
    /// It is not there.
    #[default]
    Absent,
}

/// Prints it.
pub(crate) fn info(options: &Options) -> Result<(), Failure> {
    #[cfg_attr(not(all(feature = "cuda", target_pointer_width = "64")), allow(unused_mut, reason = "there are no GPUs"))]
    let mut report = Report::of(&Machine::this());
    #[cfg(all(feature = "cuda", target_pointer_width = "64"))]
    report.memory.extend(gpus());
    if options.json {
        return output::json(&report);
    }
    let bits = |bits: Option<u32>| bits.map_or("-".to_owned(), |bits| bits.to_string());
    let kernel = report.kernel.as_deref().unwrap_or("unknown");
    let mut table = table::new(&["--heap", "state", "size", "bits", "coherent", "who may open it", "note"]);
    for offer in &report.memory {
        let state = match offer.state {
            State::Ready => "ready",
            State::Blocked => "blocked",
            State::Absent => "absent",
        };
        let coherent = match (offer.state, offer.coherent) {
            (State::Absent, _) => "-",
            (_, Some(true)) => "yes",
            (_, Some(false)) => "no",
            (_, None) => "by port",
        };
        let size = offer.size_bytes.map_or("-".to_owned(), size);
        let access = offer.access.as_deref().unwrap_or("-");
        table.add_row([&offer.heap, state, &size, &bits(offer.addr_bits), coherent, access, &offer.note]);
    }
    let within = bits(report.memory_addr_bits);
    output::text(format_args!("{}, Linux {kernel}, all memory within {within} address bits\n{table}", report.architecture))
}

impl Report {
    fn of(machine: &Machine) -> Self {
        let mut memory = vec![sim(), huge_pages(machine)];
        memory.extend(u_dma_bufs(machine));
        memory.extend(dma_heaps(machine));
        let memory_addr_bits = machine.memory_end().map(|end| addr_bits(end - 1));
        Self { architecture: ARCH, kernel: machine.kernel(), memory_addr_bits, memory }
    }
}

/// What holds for memory whose kernel driver maintains no caches: whether it is coherent, and what follows.
const COHERENT: Option<bool> = if cfg!(any(target_arch = "x86", target_arch = "x86_64")) { Some(true) } else { None };
const MAINTENANCE: &str = match COHERENT {
    Some(_) => "",
    None if cfg!(target_arch = "aarch64") => "; caches are maintained from user space",
    None => "; for coherent ports only: user space cannot maintain caches here",
};

fn sim() -> Offer {
    Offer {
        heap: "sim".into(),
        state: State::Ready,
        addr_bits: Some(HP0.addr_bits),
        coherent: Some(HP0.coherent),
        access: Some("anyone".into()),
        note: "simulated board, as large as asked for".into(),
        ..Offer::default()
    }
}

/// What the driver says: it is loaded for that, and opens its devices.
#[cfg(all(feature = "cuda", target_pointer_width = "64"))]
fn gpus() -> Vec<Offer> {
    use contigo::{
        Error,
        cuda::{Cuda, Gpu},
    };
    let none = |state, error: Error| Offer { heap: "cuda".into(), state, note: error.to_string(), ..Offer::default() };
    let (cuda, gpus) = match Cuda::load().and_then(|cuda| cuda.gpus().map(|gpus| (cuda, gpus))) {
        Ok(found) => found,
        Err(error @ Error::NoLibrary { .. }) => return vec![none(State::Absent, error)],
        Err(error) => return vec![none(State::Blocked, error)],
    };
    (0..gpus)
        .map(|ordinal| match Gpu::primary(&cuda, ordinal) {
            Ok(gpu) => gpu_offer(gpu.facts(), cuda.version()),
            Err(error) => Offer { heap: format!("cuda:{ordinal}"), ..none(State::Blocked, error) },
        })
        .collect()
}

#[cfg(all(feature = "cuda", target_pointer_width = "64"))]
fn gpu_offer(facts: &contigo::cuda::GpuFacts, version: u32) -> Offer {
    let (major, minor) = facts.compute_capability;
    let kind = if facts.integrated { "shares the CPU's memory" } else { "reads the CPU's memory across the bus" };
    let uncached =
        if facts.cpu_uncached() { "; warning: pinned memory is uncached for the CPU here, which reads it slowly (below 7.2)" } else { "" };
    Offer {
        heap: format!("cuda:{}", facts.ordinal),
        state: State::Ready,
        size_bytes: Some(facts.total_bytes),
        addr_bits: Some(64),
        coherent: Some(true),
        access: Some("who may open /dev/nvidia*".into()),
        note: format!(
            "{}, compute capability {major}.{minor}, {kind}; the driver knows CUDA {}.{}{uncached}",
            facts.name,
            version / 1000,
            version % 1000 / 10
        ),
    }
}

fn huge_pages(machine: &Machine) -> Offer {
    let mut offer = Offer {
        heap: "hugetlb".into(),
        addr_bits: machine.memory_end().map(|end| addr_bits(end - 1)),
        coherent: COHERENT,
        access: Some("CAP_SYS_ADMIN".into()),
        ..Offer::default()
    };
    let Some(pages) = machine.huge_pages() else {
        offer.note = "this kernel has no huge pages of 2 MiB".into();
        return offer;
    };
    offer.size_bytes = pages.free.checked_mul(HugeTlb::PAGE_BYTES as u64);
    let count = format!("{} of {} huge pages are free", pages.free, pages.reserved);
    (offer.state, offer.note) = match (pages.free, machine.shows_addresses()) {
        (0, _) => (State::Blocked, format!("{count}; as root: echo 4 > /proc/sys/vm/nr_hugepages")),
        (_, Ok(true)) => (State::Ready, format!("{count}, each contiguous; pagemap shows addresses{MAINTENANCE}")),
        (_, Ok(false)) => (State::Blocked, format!("{count}, but pagemap hides addresses from this user; run as root")),
        (_, Err(error)) => (State::Blocked, format!("{count}, but /proc/self/pagemap cannot be read: {error}")),
    };
    offer
}

fn u_dma_bufs(machine: &Machine) -> Vec<Offer> {
    let found: Vec<_> = machine.u_dma_bufs().into_iter().map(|device| u_dma_buf(machine, device)).collect();
    if !found.is_empty() {
        return found;
    }
    let note = "no u-dma-buf device: load the module u-dma-buf and declare one (https://github.com/ikwzm/udmabuf)".into();
    vec![Offer { heap: "u-dma-buf:NAME".into(), note, ..Offer::default() }]
}

fn u_dma_buf(machine: &Machine, device: UDmaBufDevice) -> Offer {
    let UDmaBufDevice { name, size_bytes, addr, coherent, version } = device;
    let version = version.map_or(String::new(), |version| format!(", module {version}"));
    let (state, access, note) = match (size_bytes, addr) {
        (Some(_), Some(addr)) => with_access(machine.access(&name), format!("bus address {addr:#x}{version}")),
        _ => (State::Blocked, None, "its size or phys_addr under /sys/class/u-dma-buf cannot be read".into()),
    };
    let last = addr.zip(size_bytes).and_then(|(addr, size)| addr.checked_add(size.saturating_sub(1)));
    Offer { heap: format!("u-dma-buf:{name}"), state, size_bytes, addr_bits: last.map(addr_bits), coherent, access, note }
}

fn dma_heaps(machine: &Machine) -> Vec<Offer> {
    let names = machine.dma_heap_names();
    if names.is_empty() {
        let note = "no /dev/dma_heap: the kernel was built without CONFIG_DMABUF_HEAPS".into();
        return vec![Offer { heap: "dma-heap:NAME".into(), note, ..Offer::default() }];
    }
    names.into_iter().map(|name| dma_heap(machine, &name)).collect()
}

fn dma_heap(machine: &Machine, name: &str) -> Offer {
    /// Since then `/proc/self/pagemap` shows nothing for a dma-heap's mapping.
    const NO_ADDRESS_SINCE: (u32, u32) = (6, 9);
    let (state, access, note) = match (machine.kernel_version(), machine.shows_addresses()) {
        (Some(version), _) if version >= NO_ADDRESS_SINCE => {
            let access = machine.access(&format!("dma_heap/{name}")).ok().map(words);
            (State::Blocked, access, "Linux 6.9 and later show no address of it; it needs the contigo kernel module".into())
        }
        (_, Ok(true)) => with_access(machine.access(&format!("dma_heap/{name}")), format!("its address by pagemap{MAINTENANCE}")),
        (_, _) => {
            let access = machine.access(&format!("dma_heap/{name}")).ok().map(words);
            (State::Blocked, access, "pagemap hides addresses from this user; run as root".into())
        }
    };
    let cma = machine.cma().map_or(String::new(), |(total, free)| format!("; CMA: {} of {} free", size(free), size(total)));
    let addr_bits = machine.memory_end().map(|end| addr_bits(end - 1));
    Offer { heap: format!("dma-heap:{name}"), state, size_bytes: None, addr_bits, coherent: COHERENT, access, note: note + &cma }
}

/// A device is ready when this process may open it.
fn with_access(access: io::Result<Access>, note: String) -> (State, Option<String>, String) {
    match access {
        Ok(access) if access.ours => (State::Ready, Some(words(access)), note),
        Ok(access) => (State::Blocked, Some(words(access)), format!("{note}; this user may not open it")),
        Err(error) => (State::Blocked, None, format!("{note}; its file under /dev: {error}")),
    }
}

fn words(access: Access) -> String {
    access.mode
}

/// How many address lines a master needs to reach the byte at `last`.
const fn addr_bits(last: u64) -> u32 {
    u64::BITS - last.leading_zeros()
}

fn size(bytes: u64) -> String {
    match bytes {
        bytes if bytes >= 1 << 30 && bytes.is_multiple_of(1 << 30) => format!("{} GiB", bytes >> 30),
        bytes if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        bytes if bytes >= 1 << 10 && bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        bytes => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::tests::board;

    #[test]
    fn a_board_with_everything_is_described() -> io::Result<()> {
        let (_folder, machine) = board()?;
        let report = Report::of(&machine);
        let [sim, huge, new, old, heap] = <[_; 5]>::try_from(report.memory).map_err(|_| io::ErrorKind::Other)?;
        assert_eq!((sim.heap.as_str(), sim.state), ("sim", State::Ready));
        assert_eq!((huge.state, huge.size_bytes), (State::Blocked, Some(0)));
        assert!(huge.note.contains("0 of 64") && huge.note.contains("nr_hugepages"), "{}", huge.note);
        assert_eq!((new.heap.as_str(), new.state), ("u-dma-buf:udmabuf0", State::Ready));
        assert_eq!((new.size_bytes, new.addr_bits, new.coherent), (Some(1 << 20), Some(30), Some(false)));
        assert!(new.note.contains("0x38500000") && new.note.contains("5.5.0"), "{}", new.note);
        assert_eq!((old.heap.as_str(), old.state), ("u-dma-buf:udmabuf1", State::Blocked));
        assert_eq!((heap.heap.as_str(), heap.state), ("dma-heap:linux,cma", State::Blocked));
        assert!(heap.note.ends_with("CMA: 64 MiB of 128 MiB free"), "{}", heap.note);
        Ok(())
    }

    #[test]
    fn what_is_absent_says_why() {
        let here = Report::of(&Machine::this());
        assert!(here.memory.iter().all(|offer| !offer.note.is_empty()));
        assert!(
            here.memory.iter().filter(|offer| offer.state == State::Absent).all(|offer| offer.access.is_none() || offer.heap == "hugetlb")
        );
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!([1 << 30, 8 << 20, 4096, 100].map(size), ["1 GiB", "8 MiB", "4 KiB", "100 bytes"]);
        assert_eq!((addr_bits(0xFFFF_FFFF), addr_bits(0x1_0000_0000), addr_bits(0)), (32, 33, 0));
    }
}
