//! A card and a core behind `contigo-pci`, with this test in QEMU's place: registers, memory, the
//! interrupt, what must not be reached, and what breaks a rule.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::cast_possible_truncation, reason = "tests")]

use contigo::drivers::litepcie::manual;
use nix::sys::{
    eventfd::{EfdFlags, EventFd},
    memfd::{MFdFlags, memfd_create},
};
use std::{
    fs::File,
    io::{Read, Write},
    os::{
        fd::{AsFd, AsRawFd},
        unix::{fs::FileExt, net::UnixStream},
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;
use vfio_bindings::bindings::vfio::{
    VFIO_IRQ_SET_ACTION_TRIGGER, VFIO_IRQ_SET_DATA_EVENTFD, VFIO_PCI_BAR0_REGION_INDEX, VFIO_PCI_CONFIG_REGION_INDEX,
    VFIO_PCI_MSI_IRQ_INDEX,
};
use vfio_user::Client;

/// For everything that is waited for: far more than it takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);
/// In which a card that could reach memory would have: its copy takes 20 µs.
const A_WHILE: Duration = Duration::from_millis(20);
/// The guest's memory.
const RAM_BYTES: u64 = 1 << 20;
const PAGE: usize = 4096;
/// I/O addresses, as an IOMMU hands them out.
const FROM: u64 = 0x1_0000_0000;
const TO: u64 = 0x2_0000_0000;
/// Where those are in the guest's memory: two pages each, which do not follow each other.
const FROM_PAGES: [u64; 2] = [0x8000, 0x3000];
const TO_PAGES: [u64; 2] = [0x9000, 0x1000];
/// The card's lanes.
const WRITER: usize = manual::DMA0 + manual::WRITER;
const READER: usize = manual::DMA0 + manual::READER;

/// A server that ends with its test.
struct Server {
    child: Child,
    folder: TempDir,
}

impl Server {
    fn start() -> Self {
        Self::of("litepcie")
    }

    fn of(model: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let child = program(&["--model", model, "--socket", folder.path().join("s").to_str().unwrap()]).spawn().unwrap();
        let server = Self { child, folder };
        let begun = Instant::now();
        while !server.socket().exists() {
            assert!(begun.elapsed() < PATIENCE, "there is no socket");
            thread::sleep(Duration::from_millis(5));
        }
        server
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("s")
    }

    /// Its end: status and standard error.
    fn ended(mut self) -> (Option<i32>, String) {
        let begun = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            assert!(begun.elapsed() < PATIENCE, "it does not end");
            thread::sleep(Duration::from_millis(5));
        }
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn program(words: &[&str]) -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_contigo-pci"));
    program.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    program
}

/// QEMU, with a guest that has one card.
struct Machine {
    client: Client,
    ram: File,
    event: EventFd,
    server: Server,
}

impl Machine {
    fn new() -> Self {
        Self::with(Server::start())
    }

    fn with(server: Server) -> Self {
        let client = Client::new(&server.socket()).unwrap();
        let ram = File::from(memfd_create(c"ram", MFdFlags::MFD_CLOEXEC).unwrap());
        ram.set_len(RAM_BYTES).unwrap();
        let event = EventFd::from_flags(EfdFlags::EFD_NONBLOCK).unwrap();
        let mut machine = Self { client, ram, event, server };
        let files = [machine.event.as_fd().as_raw_fd()];
        let flags = VFIO_IRQ_SET_ACTION_TRIGGER | VFIO_IRQ_SET_DATA_EVENTFD;
        machine.client.set_irqs(VFIO_PCI_MSI_IRQ_INDEX, flags, 0, 1, &files).unwrap();
        for (first, pages) in [(FROM, FROM_PAGES), (TO, TO_PAGES)] {
            machine.map(first, pages[0]);
            machine.map(first + PAGE as u64, pages[1]);
        }
        machine.command(6);
        machine
    }

    /// One page of the guest's for the card.
    fn map(&mut self, addr: u64, page: u64) {
        self.client.dma_map(page, addr, PAGE as u64, self.ram.as_raw_fd()).unwrap();
    }

    /// The command register: 2 memory, 4 bus master.
    fn command(&mut self, value: u16) {
        self.client.region_write(VFIO_PCI_CONFIG_REGION_INDEX, 4, &value.to_le_bytes()).unwrap();
    }

    fn write(&mut self, at: usize, value: u32) {
        self.client.region_write(VFIO_PCI_BAR0_REGION_INDEX, at as u64, &value.to_le_bytes()).unwrap();
    }

    fn read(&mut self, at: usize) -> u32 {
        let mut bytes = [0; 4];
        self.client.region_read(VFIO_PCI_BAR0_REGION_INDEX, at as u64, &mut bytes).unwrap();
        u32::from_le_bytes(bytes)
    }

    fn fill(&self, pages: [u64; 2], byte: u8) {
        pages.iter().for_each(|page| self.ram.write_all_at(&[byte; PAGE], *page).unwrap());
    }

    /// Both pages, one after the other.
    fn bytes(&self, pages: [u64; 2]) -> Vec<u8> {
        let mut bytes = vec![0; 2 * PAGE];
        for (page, to) in pages.iter().zip(bytes.chunks_mut(PAGE)) {
            self.ram.read_exact_at(to, *page).unwrap();
        }
        bytes
    }

    /// Lets the card copy `len` bytes from `FROM` to `TO`.
    fn copy(&mut self, len: u32) {
        for lane in [WRITER, READER] {
            self.write(lane, 0);
            self.write(lane + manual::FLUSH, 1);
        }
        self.write(manual::MSI, 0b10);
        self.write(manual::DMA0 + manual::LOOPBACK, 1);
        for (lane, addr) in [(WRITER, TO), (READER, FROM)] {
            self.write(lane + manual::VALUE, len | manual::LAST_DISABLE);
            self.write(lane + manual::VALUE + 4, addr as u32);
            self.write(lane + manual::WE, (addr >> 32) as u32);
            self.write(lane, 1);
        }
    }

    /// Waits for the interrupt of one copy, until its bytes are in memory: they may be overtaken.
    fn copied(&mut self) {
        self.interrupted();
        assert_eq!(self.read(WRITER + manual::LOOP_STATUS), 1);
        thread::sleep(Duration::from_millis(1));
        self.read(WRITER);
    }

    fn interrupted(&self) {
        let begun = Instant::now();
        while self.event.read().is_err() {
            assert!(begun.elapsed() < PATIENCE, "no interrupt came");
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Nothing was copied, also after a while.
    fn nothing_copied(&mut self, pages: [u64; 2], was: u8) {
        thread::sleep(A_WHILE);
        assert_eq!(self.read(WRITER + manual::LOOP_STATUS), 0);
        assert!(self.bytes(pages).iter().all(|byte| *byte == was));
    }

    /// The server's end, and its words.
    fn ended(self) -> String {
        drop(self.client);
        let (status, said) = self.server.ended();
        assert_eq!(status, Some(0), "{said}");
        said
    }
}

#[test]
fn a_card_copies_scattered_pages_and_interrupts() {
    let mut machine = Machine::new();
    for round in 1..=50_u8 {
        machine.fill(FROM_PAGES, round);
        machine.ram.write_all_at(&[!round; 100], FROM_PAGES[0]).unwrap();
        machine.fill(TO_PAGES, 0xEE);
        machine.copy(8000);
        machine.copied();
        let (from, to) = (machine.bytes(FROM_PAGES), machine.bytes(TO_PAGES));
        assert!(from[..8000] == to[..8000] && to[8000..].iter().all(|byte| *byte == 0xEE), "round {round}");
    }
    let said = machine.ended();
    assert!(said.contains("interrupts: 50,") && said.contains("refused: 0,"), "{said}");
}

/// A machine with a model of gates; `None` where there is no Verilator.
fn of_gates(test: &str, model: &str) -> Option<Machine> {
    let output = program(&["--model", model, "--missing"]).output().unwrap();
    assert!(output.status.success());
    let missing = String::from_utf8(output.stdout).unwrap();
    if missing.is_empty() {
        return Some(Machine::with(Server::of(model)));
    }
    // The refusal is the same words.
    let refused = program(&["--model", model, "--socket", "/nowhere"]).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(1) && said.contains(missing.trim()), "{said}");
    println!("SKIPPED: pci::{test}: {}", missing.trim());
    None
}

#[test]
fn a_core_in_verilog_multiplies_and_interrupts() {
    let Some(mut machine) = of_gates("a_core_in_verilog_multiplies_and_interrupts", "gemm8") else { return };
    machine.fill(FROM_PAGES, 1);
    for round in 1..=20_u32 {
        machine.fill(TO_PAGES, 0xEE);
        // A and B are the first page, bias is the second one, C goes over both: 16 rows of 64 sums
        // of 32 products, with GIE and IER.
        let pointers = [(0x10, FROM), (0x1C, FROM), (0x28, FROM + PAGE as u64), (0x34, TO + 2048)];
        for (at, addr) in pointers {
            machine.write(at, addr as u32);
            machine.write(at + 4, (addr >> 32) as u32);
        }
        for (at, value) in [(0x40, 16), (0x48, 64), (0x50, 32), (0x58, 1 << 9), (0x04, 1), (0x08, 1), (0x00, 1)] {
            machine.write(at, value);
        }
        machine.interrupted();
        assert_eq!((machine.read(0x00) & 2, machine.read(0x68), machine.read(0x78)), (2, 0, 4096), "CTRL, STATUS, BYTES_OUT");
        machine.write(0x0C, 1);
        let to = machine.bytes(TO_PAGES);
        let sums = to[2048..6144].as_chunks::<4>().0;
        assert!(sums.iter().all(|sum| u32::from_le_bytes(*sum) == 0x0101_0101 + 32), "round {round}");
        assert!(to[..2048].iter().chain(&to[6144..]).all(|byte| *byte == 0xEE), "round {round}");
    }
    let said = machine.ended();
    assert!(said.contains("interrupts: 20,") && said.contains("refused: 0,") && !said.contains("broke"), "{said}");
}

#[test]
fn a_core_that_breaks_a_rule_fails_the_run() {
    const TEST: &str = "a_core_that_breaks_a_rule_fails_the_run";
    // `cores/broken/top.v`: sixteen words from here, in one burst over a boundary of 4 KiB.
    for fault in [0, 1] {
        let Some(mut machine) = of_gates(TEST, "broken") else { return };
        for (at, value) in [(0x18, fault), (0x04, FROM as u32 + 0xFF0), (0x08, TO as u32), (0x0C, (FROM >> 32) as u32), (0x10, 16), (0, 1)]
        {
            machine.write(at, value);
        }
        machine.interrupted();
        drop(machine.client);
        let (status, said) = machine.server.ended();
        let broke = said.contains("broke a rule: ") && said.contains("Crosses4KiB { addr: 100000ff0");
        assert_eq!((status, broke), (Some(fault as i32), fault == 1), "{said}");
    }
}

#[test]
fn memory_that_was_taken_away_is_not_reached() {
    let mut machine = Machine::new();
    // Half of the destination goes; then, at the same address, it is another page.
    machine.client.dma_unmap(TO + PAGE as u64, PAGE as u64).unwrap();
    machine.fill(FROM_PAGES, 0x11);
    machine.fill(TO_PAGES, 0xEE);
    machine.copy(8192);
    machine.copied();
    assert_eq!(machine.bytes(TO_PAGES), [[0x11; PAGE], [0xEE; PAGE]].concat());
    machine.map(TO + PAGE as u64, 0x5000);
    machine.copy(8192);
    machine.copied();
    assert_eq!(machine.bytes([0x5000, TO_PAGES[1]]), [[0x11; PAGE], [0xEE; PAGE]].concat());
    // Without the source the card waits for ever, and sends nothing.
    machine.client.dma_unmap(FROM, 2 * PAGE as u64).unwrap();
    machine.fill([TO_PAGES[0], 0x5000], 0xEE);
    machine.copy(8192);
    machine.nothing_copied([TO_PAGES[0], 0x5000], 0xEE);
    let said = machine.ended();
    assert!(!said.contains("refused: 0,"), "{said}");
}

#[test]
fn a_function_that_is_no_bus_master_or_was_reset_reaches_nothing() {
    let mut machine = Machine::new();
    machine.fill(FROM_PAGES, 0x11);
    machine.fill(TO_PAGES, 0xEE);
    machine.command(2);
    machine.copy(8192);
    machine.nothing_copied(TO_PAGES, 0xEE);
    // The job goes with the reset, and bus mastering too.
    let mut features = [0; 6];
    machine.client.region_read(VFIO_PCI_CONFIG_REGION_INDEX, 0x60, &mut features).unwrap();
    assert_eq!(features, [0x13, 0, 6, 3, 0, 0], "Advanced Features, with a reset");
    machine.client.region_write(VFIO_PCI_CONFIG_REGION_INDEX, 0x64, &[1]).unwrap();
    assert_eq!((machine.read(manual::MSI), machine.read(WRITER)), (0, 2));
    machine.copy(8192);
    machine.nothing_copied(TO_PAGES, 0xEE);
    machine.command(6);
    machine.copy(8192);
    machine.copied();
    assert!(machine.bytes(TO_PAGES).iter().all(|byte| *byte == 0x11));
    // A register is read in parts, and written whole.
    let mut part = [0];
    machine.client.region_read(VFIO_PCI_BAR0_REGION_INDEX, manual::MSI as u64, &mut part).unwrap();
    machine.client.region_write(VFIO_PCI_BAR0_REGION_INDEX, manual::MSI as u64, &[7]).unwrap();
    assert_eq!((part, machine.read(manual::MSI)), ([0b10], 0b10));
}

/// A message of vfio-user, header and `body`, and its answer, which a server that ends does not
/// give.
fn message(stream: &mut UnixStream, command: u16, body: &[u8]) {
    let mut bytes = [&[0, 0], command.to_le_bytes().as_slice()].concat();
    bytes.extend(u32::try_from(16 + body.len()).unwrap().to_le_bytes());
    bytes.extend([0; 8]);
    bytes.extend(body);
    let mut header = [0; 16];
    if stream.write_all(&bytes).is_ok() && stream.read_exact(&mut header).is_ok() {
        let len = u32::from_le_bytes([header[4], header[5], header[6], header[7]]);
        let _ = stream.read_exact(&mut vec![0; len as usize - header.len()]);
    }
}

#[test]
fn memory_without_its_file_ends_the_server() {
    const DMA_MAP: u16 = 2;
    const REGION_WRITE: u16 = 10;
    let server = Server::start();
    let mut stream = UnixStream::connect(server.socket()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let words = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
    // 32 bytes; may be read and written; offset, address, size.
    message(&mut stream, DMA_MAP, &words(&[32 | 3 << 32, 0, FROM, PAGE as u64]));
    let mut write = |region: u32, at: usize, value: &[u8]| {
        let place = words(&[at as u64, u64::from(region) | (value.len() as u64) << 32]);
        message(&mut stream, REGION_WRITE, &[&place, value].concat());
    };
    write(VFIO_PCI_CONFIG_REGION_INDEX, 4, &[6, 0]);
    for (at, value) in [(manual::VALUE, 4096_u32), (manual::VALUE + 4, FROM as u32), (manual::WE, (FROM >> 32) as u32), (0, 1)] {
        write(VFIO_PCI_BAR0_REGION_INDEX, READER + at, &value.to_le_bytes());
    }
    let (status, said) = server.ended();
    assert!(status == Some(1) && said.contains("came without its file: give QEMU"), "{status:?} {said}");
}

#[test]
fn a_file_that_is_too_short_ends_the_server() {
    let server = Server::start();
    let mut client = Client::new(&server.socket()).unwrap();
    let ram = File::from(memfd_create(c"ram", MFdFlags::MFD_CLOEXEC).unwrap());
    ram.set_len(PAGE as u64).unwrap();
    let _ = client.dma_map(0, FROM, 2 * PAGE as u64, ram.as_raw_fd());
    let (status, said) = server.ended();
    assert!(status == Some(1) && said.contains("cannot be mapped: 0x2000 bytes"), "{status:?} {said}");
}

#[test]
fn wrong_usage_and_wrong_sockets_say_what_is_right() {
    let folder = TempDir::new().unwrap();
    let exists = folder.path().join("exists");
    File::create(&exists).unwrap();
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    let (long, nowhere) = (path(&folder.path().join("x".repeat(120))), path(&folder.path().join("no/socket")));
    let exists = path(&exists);
    let cases: &[(&[&str], i32, &str)] = &[
        (&[], 2, "--model NAME"),
        (&["--model", "litepcie"], 2, "--socket PATH"),
        (&["--model", "no-such"], 2, "there is no model no-such"),
        (&["--socket"], 2, "needs a value"),
        (&["--speed"], 2, "--speed is no option"),
        (&["--model", "litepcie", "--socket", &exists], 1, "exists: delete it"),
        (&["--model", "litepcie", "--socket", &long], 1, "a socket's path has 107 at most"),
        (&["--model", "litepcie", "--socket", &nowhere], 1, "the connection broke: Error binding to socket"),
    ];
    for (words, status, expected) in cases {
        let output = program(words).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(*status) && said.contains(expected), "{words:?}: {said}");
    }
    let help = program(&["--help"]).output().unwrap();
    assert!(help.status.success() && String::from_utf8_lossy(&help.stdout).contains("  litepcie     a card"));
}
