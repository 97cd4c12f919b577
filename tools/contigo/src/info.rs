//! `contigo info`: this machine's DMA memory and devices, and the reasons why the others do not
//! work.

use crate::failure::Failure;
use crate::output;
use clap::Args;
use comfy_table::Table;
use contigo::names::{Entry, Facts, Inventory};
use contigo_bringup::machine::Machine;
use serde::Serialize;
use std::env::consts::ARCH;

#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

/// The columns beside the names: four narrow ones, and enough room for a note.
const OTHERS: u16 = 54;

#[derive(Debug, Serialize)]
struct Report {
    architecture: &'static str,
    kernel: Option<String>,
    /// The address bits that reach all of the machine's memory.
    memory_addr_bits: Option<u32>,
    memory: Vec<Offer>,
    devices: Vec<Offer>,
}

/// One memory or one device, or a kind that this machine does not have.
#[derive(Debug, Default, Serialize)]
struct Offer {
    /// The name for `--memory` or `--device`; the kind if the machine has none.
    name: String,
    state: State,
    size_bytes: Option<u64>,
    /// The address bits with which a master reaches all of it.
    addr_bits: Option<u32>,
    /// `None`: it depends on the port.
    coherent: Option<bool>,
    /// Its description, or the reason why it does not work, with the cure.
    note: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    /// A program can open it.
    Ready,
    /// It exists, but does not work.
    Blocked,
    /// It does not exist.
    #[default]
    Absent,
}

pub(crate) fn info(options: &Options) -> Result<(), Failure> {
    let mut report = Report::of(&Machine::this(), Inventory::here());
    #[cfg(all(feature = "cuda", target_pointer_width = "64"))]
    {
        report.memory.retain(|offer| !offer.name.starts_with("cuda"));
        report.memory.extend(gpus());
    }
    if options.json {
        return output::json(&report);
    }
    let kernel = report.kernel.as_deref().unwrap_or("unknown");
    let within = known(report.memory_addr_bits);
    let (memory, devices) =
        (listed("--memory", &report.memory), listed("--device", &report.devices));
    output::text(format_args!(
        "{}, Linux {kernel}, all memory within {within} address bits\n{memory}\n{devices}",
        report.architecture
    ))
}

/// A value, or a dash if it is not known.
fn known(value: Option<impl ToString>) -> String {
    value.map_or("-".to_owned(), |value| value.to_string())
}

/// A table of offers. A column without any known value is left out.
fn listed(title: &str, offers: &[Offer]) -> Table {
    let state = |offer: &Offer| match offer.state {
        State::Ready => "ready",
        State::Blocked => "blocked",
        State::Absent => "absent",
    };
    let coherent = |coherent| if coherent { "yes" } else { "no" };
    let columns: [(&str, Vec<String>); 6] = [
        (title, offers.iter().map(|offer| offer.name.clone()).collect()),
        ("state", offers.iter().map(|offer| state(offer).to_owned()).collect()),
        ("size", offers.iter().map(|offer| known(offer.size_bytes.map(size))).collect()),
        ("bits", offers.iter().map(|offer| known(offer.addr_bits)).collect()),
        ("coherent", offers.iter().map(|offer| known(offer.coherent.map(coherent))).collect()),
        ("note", offers.iter().map(|offer| offer.note.clone()).collect()),
    ];
    let shown: Vec<_> =
        columns.into_iter().filter(|(_, cells)| cells.iter().any(|cell| cell != "-")).collect();
    let header: Vec<_> = shown.iter().map(|(name, _)| *name).collect();
    let mut table = output::table(&header);
    for row in 0..offers.len() {
        table.add_row(shown.iter().filter_map(|(_, cells)| cells.get(row)));
    }
    output::keep_names(&mut table, OTHERS);
    table
}

impl Report {
    fn of(machine: &Machine, inventory: Inventory<'_>) -> Self {
        let cma = machine
            .cma()
            .map(|(total, free)| format!("; CMA: {} of {} free", size(free), size(total)));
        let memory = inventory.memories().map(|entry| {
            let cma = cma
                .as_deref()
                .filter(|_| ["contigo", "dma-heap"].contains(&entry.kind) && entry.name.is_some())
                .unwrap_or("");
            Offer::new(&entry, entry.name.map(|name| name.help()), cma)
        });
        let devices = inventory
            .devices()
            .map(|entry| Offer::new(&entry, entry.name.map(|name| name.help()), ""));
        let memory_addr_bits = machine.memory_end().map(|end| addr_bits(end - 1));
        Self {
            architecture: ARCH,
            kernel: machine.kernel(),
            memory_addr_bits,
            memory: memory.collect(),
            devices: devices.collect(),
        }
    }
}

impl Offer {
    fn new<N: ToString>(entry: &Entry<N>, help: Option<&str>, more: &str) -> Self {
        let Facts { len_bytes, addr, coherent, .. } = entry.facts;
        let at = addr.map_or(String::new(), |addr| format!("at {addr:#x}; "));
        let last =
            addr.zip(len_bytes).and_then(|(addr, size)| addr.checked_add(size.saturating_sub(1)));
        Self {
            name: entry.name.as_ref().map_or(entry.kind.to_owned(), ToString::to_string),
            state: match (&entry.name, entry.why) {
                (None, _) => State::Absent,
                (Some(_), Some(_)) => State::Blocked,
                (Some(_), None) => State::Ready,
            },
            size_bytes: len_bytes,
            addr_bits: last.map(addr_bits),
            coherent,
            note: format!("{at}{}{more}", entry.why.or(help).unwrap_or("")),
        }
    }
}

/// The driver's GPUs. This loads the driver, and the driver opens its devices.
#[cfg(all(feature = "cuda", target_pointer_width = "64"))]
fn gpus() -> Vec<Offer> {
    use contigo::Error;
    use contigo::cuda::{Cuda, Gpu};
    let none = |state, error: Error| Offer {
        name: "cuda".into(),
        state,
        note: error.to_string(),
        ..Offer::default()
    };
    let (cuda, gpus) = match Cuda::load().and_then(|cuda| cuda.gpus().map(|gpus| (cuda, gpus))) {
        Ok(found) => found,
        Err(error @ Error::NoLibrary { .. }) => return vec![none(State::Absent, error)],
        Err(error) => return vec![none(State::Blocked, error)],
    };
    (0..gpus)
        .map(|ordinal| match Gpu::primary(&cuda, ordinal) {
            Ok(gpu) => gpu_offer(gpu.facts(), cuda.version()),
            Err(error) => Offer { name: format!("cuda:{ordinal}"), ..none(State::Blocked, error) },
        })
        .collect()
}

#[cfg(all(feature = "cuda", target_pointer_width = "64"))]
fn gpu_offer(facts: &contigo::cuda::GpuFacts, version: u32) -> Offer {
    let (major, minor) = facts.compute_capability;
    let kind = if facts.integrated {
        "shares the CPU's memory"
    } else {
        "reads the CPU's memory across the bus"
    };
    let uncached = if facts.cpu_uncached() {
        "; warning: pinned memory is uncached for the CPU here, which reads it slowly (below 7.2)"
    } else {
        ""
    };
    Offer {
        name: format!("cuda:{}", facts.ordinal),
        state: State::Ready,
        size_bytes: Some(facts.total_bytes),
        addr_bits: Some(64),
        coherent: Some(true),
        note: format!(
            "{}, compute capability {major}.{minor}, {kind}; the driver knows CUDA {}.{}{uncached}",
            facts.name,
            version / 1000,
            version % 1000 / 10
        ),
    }
}

/// The number of address bits that a master needs to reach the byte at `last`.
const fn addr_bits(last: u64) -> u32 {
    u64::BITS - last.leading_zeros()
}

fn size(bytes: u64) -> String {
    match bytes {
        bytes if bytes >= 1 << 30 && bytes.is_multiple_of(1 << 30) => {
            format!("{} GiB", bytes >> 30)
        }
        bytes if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) => {
            format!("{} MiB", bytes >> 20)
        }
        bytes if bytes >= 1 << 10 && bytes.is_multiple_of(1 << 10) => {
            format!("{} KiB", bytes >> 10)
        }
        bytes => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, io};
    use tempfile::TempDir;

    /// A board with two u-dma-bufs, one of an old module, and a CMA heap.
    fn board() -> io::Result<(TempDir, Machine)> {
        let folder = TempDir::new()?;
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap_or(folder.path()))?;
            fs::write(path, text)
        };
        write("sys/class/u-dma-buf/udmabuf0/size", "1048576\n")?;
        write("sys/class/u-dma-buf/udmabuf0/phys_addr", "0x0000000038500000\n")?;
        write("sys/class/u-dma-buf/udmabuf0/dma_coherent", "0\n")?;
        write("sys/class/u-dma-buf/udmabuf0/driver_version", "5.5.0\n")?;
        write("dev/udmabuf0", "")?;
        write("sys/class/udmabuf/udmabuf1/size", "4096\n")?;
        write("sys/class/udmabuf/udmabuf1/phys_addr", "nonsense\n")?;
        write("dev/dma_heap/linux,cma", "")?;
        write("proc/sys/kernel/osrelease", "6.1.0-xilinx\n")?;
        write("proc/meminfo", "MemTotal:  515 kB\nCmaTotal:  131072 kB\nCmaFree:  65536 kB\n")?;
        write("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "64\n")?;
        write("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "0\n")?;
        write("proc/zoneinfo", "Node 0, zone  Normal\n  spanned 4096\n  start_pfn:  0\n")?;
        let machine = Machine::copy(folder.path());
        Ok((folder, machine))
    }

    #[test]
    fn a_board_with_everything_is_described() -> std::io::Result<()> {
        let (folder, machine) = board()?;
        let report =
            Report::of(&machine, Inventory::under(folder.path().to_str().unwrap_or_default()));
        let found = |name: &str| {
            report
                .memory
                .iter()
                .find(|offer| offer.name == name)
                .ok_or(std::io::ErrorKind::NotFound)
        };
        let (huge, new, old) =
            (found("hugetlb")?, found("u-dma-buf:udmabuf0")?, found("u-dma-buf:udmabuf1")?);
        assert_eq!((huge.state, huge.size_bytes), (State::Blocked, Some(0)));
        assert!(huge.note.contains("nr_hugepages"), "{}", huge.note);
        assert_eq!(
            (new.state, new.size_bytes, new.addr_bits, new.coherent),
            (State::Ready, Some(1 << 20), Some(30), Some(false))
        );
        assert!(new.note.starts_with("at 0x38500000; a block of CMA"), "{}", new.note);
        assert_eq!(
            (old.state, found("vfio")?.state, found("sim")?.state),
            (State::Blocked, State::Absent, State::Ready)
        );
        assert!(found("dma-heap:linux,cma")?.note.ends_with("CMA: 64 MiB of 128 MiB free"));
        assert!(report.memory.iter().chain(&report.devices).all(|offer| !offer.note.is_empty()));
        Ok(())
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!(
            [1 << 30, 8 << 20, 4096, 100].map(size),
            ["1 GiB", "8 MiB", "4 KiB", "100 bytes"]
        );
        assert_eq!((addr_bits(0xFFFF_FFFF), addr_bits(0x1_0000_0000), addr_bits(0)), (32, 33, 0));
    }
}
