//! The server, and this test in QEMU's place.

use contigo_testkit::litepcie as manual;
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::memfd::{MFdFlags, memfd_create};
use std::fmt::Debug;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use vfio_bindings::bindings::vfio::{
    VFIO_IRQ_SET_ACTION_TRIGGER, VFIO_IRQ_SET_DATA_EVENTFD, VFIO_PCI_BAR0_REGION_INDEX,
    VFIO_PCI_CONFIG_REGION_INDEX, VFIO_PCI_MSI_IRQ_INDEX,
};
use vfio_user::Client;

/// For everything that is waited for: far more than it takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// In which a card that could reach memory would have: its copy takes 20 µs.
pub(crate) const A_WHILE: Duration = Duration::from_millis(20);
/// The guest's memory.
pub(crate) const RAM_BYTES: u64 = 1 << 20;
pub(crate) const PAGE: usize = 4096;
/// I/O addresses, as an IOMMU hands them out.
pub(crate) const FROM: u64 = 0x1_0000_0000;
pub(crate) const TO: u64 = 0x2_0000_0000;
/// Where those are in the guest's memory: two pages each, which do not follow each other.
pub(crate) const FROM_PAGES: [u64; 2] = [0x8000, 0x3000];
pub(crate) const TO_PAGES: [u64; 2] = [0x9000, 0x1000];
/// The card's lanes.
pub(crate) const WRITER: usize = manual::DMA0 + manual::WRITER;
pub(crate) const READER: usize = manual::DMA0 + manual::READER;

/// A server that ends with its test.
pub(crate) struct Server {
    child: Child,
    folder: TempDir,
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::of("litepcie")
    }

    pub(crate) fn of(model: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let child =
            program(&["--model", model, "--socket", folder.path().join("s").to_str().unwrap()])
                .spawn()
                .unwrap();
        let server = Self { child, folder };
        let begun = Instant::now();
        while !server.socket().exists() {
            assert!(begun.elapsed() < PATIENCE, "there is no socket");
            thread::sleep(Duration::from_millis(5));
        }
        server
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("s")
    }

    /// Connects. The socket has its name a moment before it listens.
    pub(crate) fn connect<T, E: Debug>(&self, connect: impl Fn(&Path) -> Result<T, E>) -> T {
        let begun = Instant::now();
        loop {
            match connect(&self.socket()) {
                Err(_) if begun.elapsed() < PATIENCE => thread::sleep(Duration::from_millis(5)),
                connected => return connected.unwrap(),
            }
        }
    }

    /// Its end: status and standard error.
    pub(crate) fn ended(mut self) -> (Option<i32>, String) {
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

pub(crate) fn program(words: &[&str]) -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_contigo-pci"));
    program.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    program
}

/// QEMU, with a guest that has one card.
pub(crate) struct Machine {
    pub(crate) client: Client,
    pub(crate) ram: File,
    event: EventFd,
    pub(crate) server: Server,
}

impl Machine {
    pub(crate) fn new() -> Self {
        Self::with(Server::start(), VFIO_PCI_MSI_IRQ_INDEX)
    }

    /// The interrupt is listened to by VFIO's number of it.
    pub(crate) fn with(server: Server, interrupt: u32) -> Self {
        let client = server.connect(Client::new);
        let ram = File::from(memfd_create(c"ram", MFdFlags::MFD_CLOEXEC).unwrap());
        ram.set_len(RAM_BYTES).unwrap();
        let event = EventFd::from_flags(EfdFlags::EFD_NONBLOCK).unwrap();
        let mut machine = Self { client, ram, event, server };
        let files = [machine.event.as_fd().as_raw_fd()];
        let flags = VFIO_IRQ_SET_ACTION_TRIGGER | VFIO_IRQ_SET_DATA_EVENTFD;
        machine.client.set_irqs(interrupt, flags, 0, 1, &files).unwrap();
        for (first, pages) in [(FROM, FROM_PAGES), (TO, TO_PAGES)] {
            machine.map(first, pages[0]);
            machine.map(first + PAGE as u64, pages[1]);
        }
        machine.command(6);
        machine
    }

    /// One page of the guest's for the card.
    pub(crate) fn map(&mut self, addr: u64, page: u64) {
        self.client.dma_map(page, addr, PAGE as u64, self.ram.as_raw_fd()).unwrap();
    }

    /// The command register: 2 memory, 4 bus master.
    pub(crate) fn command(&mut self, value: u16) {
        self.client.region_write(VFIO_PCI_CONFIG_REGION_INDEX, 4, &value.to_le_bytes()).unwrap();
    }

    pub(crate) fn write(&mut self, at: usize, value: u32) {
        self.client
            .region_write(VFIO_PCI_BAR0_REGION_INDEX, at as u64, &value.to_le_bytes())
            .unwrap();
    }

    pub(crate) fn read(&mut self, at: usize) -> u32 {
        let mut bytes = [0; 4];
        self.client.region_read(VFIO_PCI_BAR0_REGION_INDEX, at as u64, &mut bytes).unwrap();
        u32::from_le_bytes(bytes)
    }

    pub(crate) fn fill(&self, pages: [u64; 2], byte: u8) {
        pages.iter().for_each(|page| self.ram.write_all_at(&[byte; PAGE], *page).unwrap());
    }

    /// Both pages, one after the other.
    pub(crate) fn bytes(&self, pages: [u64; 2]) -> Vec<u8> {
        let mut bytes = vec![0; 2 * PAGE];
        for (page, to) in pages.iter().zip(bytes.chunks_mut(PAGE)) {
            self.ram.read_exact_at(to, *page).unwrap();
        }
        bytes
    }

    /// Lets the card copy `len` bytes from `FROM` to `TO`.
    pub(crate) fn copy(&mut self, len: u32) {
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
    pub(crate) fn copied(&mut self) {
        self.interrupted();
        assert_eq!(self.read(WRITER + manual::LOOP_STATUS), 1);
        thread::sleep(Duration::from_millis(1));
        self.read(WRITER);
    }

    pub(crate) fn interrupted(&self) {
        let begun = Instant::now();
        while self.event.read().is_err() {
            assert!(begun.elapsed() < PATIENCE, "no interrupt came");
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Nothing was copied, also after a while.
    pub(crate) fn nothing_copied(&mut self, pages: [u64; 2], was: u8) {
        thread::sleep(A_WHILE);
        assert_eq!(self.read(WRITER + manual::LOOP_STATUS), 0);
        assert!(self.bytes(pages).iter().all(|byte| *byte == was));
    }

    /// The server's end, and its words.
    pub(crate) fn ended(self) -> String {
        drop(self.client);
        let (status, said) = self.server.ended();
        assert_eq!(status, Some(0), "{said}");
        said
    }
}

/// A machine with a model of gates; `None` where there is no Verilator.
pub(crate) fn of_gates(model: &str, interrupt: u32) -> Option<Machine> {
    let output = program(&["--model", model, "--missing"]).output().unwrap();
    assert!(output.status.success());
    let missing = String::from_utf8(output.stdout).unwrap();
    if missing.is_empty() {
        return Some(Machine::with(Server::of(model), interrupt));
    }
    // The refusal is the same words.
    let refused = program(&["--model", model, "--socket", "/nowhere"]).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(1) && said.contains(missing.trim()), "{said}");
    contigo_testkit::skipped(thread::current().name().unwrap_or("pci"), missing.trim());
    None
}
