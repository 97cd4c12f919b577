//! What this machine says of its memory, read from files under `/sys`, `/proc` and `/dev`. Nothing is opened but plain
//! files, and nothing is changed: opening a u-dma-buf or a dma-heap would do both.

use nix::unistd::{AccessFlags, SysconfVar, access, sysconf};
use std::{
    fs::{self, File},
    io,
    os::unix::fs::{FileExt, FileTypeExt, MetadataExt},
    path::{Path, PathBuf},
};

/// A machine's files. Tests put a folder of their own in the place of `/`.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    root: PathBuf,
}

/// One u-dma-buf device, as its folder under `/sys/class` describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UDmaBufDevice {
    pub(crate) name: String,
    pub(crate) size_bytes: Option<u64>,
    /// The first byte's bus address.
    pub(crate) addr: Option<u64>,
    /// The kernel's `dma_coherent`; old modules have no such file.
    pub(crate) coherent: Option<bool>,
    /// The module's version, where it says.
    pub(crate) version: Option<String>,
}

/// Huge pages of 2 MiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HugePages {
    pub(crate) reserved: u64,
    pub(crate) free: u64,
}

/// Who may open a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    /// As `ls -l` writes it: `crw-rw---- root dma`.
    pub(crate) mode: String,
    /// May this process read and write it?
    pub(crate) ours: bool,
}

/// Both names that the module's class has had.
const U_DMA_BUF_CLASSES: [&str; 2] = ["sys/class/u-dma-buf", "sys/class/udmabuf"];
const DMA_HEAPS: &str = "dev/dma_heap";

impl Machine {
    /// The machine that this program runs on.
    pub(crate) fn this() -> Self {
        Self { root: PathBuf::from("/") }
    }

    /// The folder that its files are under.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The kernel's release: `6.12.0-xilinx`.
    pub(crate) fn kernel(&self) -> Option<String> {
        self.text("proc/sys/kernel/osrelease")
    }

    /// Its first two numbers.
    pub(crate) fn kernel_version(&self) -> Option<(u32, u32)> {
        let release = self.kernel()?;
        let mut numbers = release.split(|c: char| !c.is_ascii_digit());
        Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
    }

    /// One past the last byte of memory, from `/proc/zoneinfo`, which needs no privilege (`/proc/iomem` does).
    pub(crate) fn memory_end(&self) -> Option<u64> {
        let text = self.text("proc/zoneinfo")?;
        let (mut spanned, mut end_page) = (0, 0);
        for line in text.lines() {
            let mut words = line.split_ascii_whitespace();
            let number = |word: Option<&str>| word.and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
            match words.next() {
                Some("spanned") => spanned = number(words.next()),
                Some("start_pfn:") if spanned > 0 => end_page = end_page.max(number(words.next()) + spanned),
                _ => {}
            }
        }
        end_page.checked_mul(page_bytes()?).filter(|&end| end > 0)
    }

    /// Huge pages of 2 MiB; `None` where the kernel has none.
    pub(crate) fn huge_pages(&self) -> Option<HugePages> {
        let number = |name: &str| self.text(&format!("sys/kernel/mm/hugepages/hugepages-2048kB/{name}"))?.parse().ok();
        Some(HugePages { reserved: number("nr_hugepages")?, free: number("free_hugepages")? })
    }

    /// Does `/proc/self/pagemap` show this process where its pages are? One page of its own is looked up.
    pub(crate) fn shows_addresses(&self) -> io::Result<bool> {
        let here = 0_u8;
        let page = (&raw const here).addr() as u64 / page_bytes().ok_or(io::ErrorKind::Unsupported)?;
        let mut entry = [0; 8];
        File::open(self.root.join("proc/self/pagemap"))?.read_exact_at(&mut entry, page * 8)?;
        // Linux, Documentation/admin-guide/mm/pagemap.rst: bits 0 to 54 are the frame, 0 for who may not know.
        Ok(u64::from_ne_bytes(entry) & ((1 << 55) - 1) != 0)
    }

    /// The kernel's CMA: how much there is, and how much is free, in bytes.
    pub(crate) fn cma(&self) -> Option<(u64, u64)> {
        let text = self.text("proc/meminfo")?;
        let bytes = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_ascii_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
        };
        Some((bytes("CmaTotal:")?, bytes("CmaFree:")?)).filter(|&(total, _)| total > 0)
    }

    /// The names of the u-dma-buf devices.
    pub(crate) fn u_dma_buf_names(&self) -> Vec<String> {
        let mut names: Vec<_> = U_DMA_BUF_CLASSES.iter().flat_map(|class| self.names(class)).collect();
        names.sort();
        names
    }

    /// The u-dma-buf devices.
    pub(crate) fn u_dma_bufs(&self) -> Vec<UDmaBufDevice> {
        let devices = U_DMA_BUF_CLASSES.iter().flat_map(|class| self.names(class).into_iter().map(move |name| (class, name)));
        let mut devices: Vec<_> = devices
            .map(|(class, name)| {
                let attribute = |file: &str| self.text(&format!("{class}/{name}/{file}"));
                UDmaBufDevice {
                    size_bytes: attribute("size").and_then(|size| size.parse().ok()),
                    addr: attribute("phys_addr").and_then(|addr| u64::from_str_radix(addr.strip_prefix("0x")?, 16).ok()),
                    coherent: attribute("dma_coherent").and_then(|flag| flag.parse::<u8>().ok()).map(|flag| flag != 0),
                    version: attribute("driver_version"),
                    name,
                }
            })
            .collect();
        devices.sort_by(|one, other| one.name.cmp(&other.name));
        devices
    }

    /// The names of the dma-heaps.
    pub(crate) fn dma_heap_names(&self) -> Vec<String> {
        self.names(DMA_HEAPS)
    }

    /// Who may open `/dev/<name>`.
    pub(crate) fn access(&self, name: &str) -> io::Result<Access> {
        let path = self.root.join("dev").join(name);
        let file = fs::metadata(&path)?;
        let kind = if file.file_type().is_char_device() { 'c' } else { '-' };
        let bits = (0..9).rev().map(|bit| match (file.mode() >> bit & 1, bit % 3) {
            (0, _) => '-',
            (_, 2) => 'r',
            (_, 1) => 'w',
            _ => 'x',
        });
        let mode: String = std::iter::once(kind).chain(bits).collect();
        let (user, group) = (self.name_of("etc/passwd", file.uid()), self.name_of("etc/group", file.gid()));
        Ok(Access { mode: format!("{mode} {user} {group}"), ours: access(&path, AccessFlags::R_OK | AccessFlags::W_OK).is_ok() })
    }

    /// Who has the number `id` in `/etc/passwd` or `/etc/group`; the number itself where nobody has. No name service is
    /// asked: a static binary has none.
    fn name_of(&self, file: &str, id: u32) -> String {
        let text = self.text(file).unwrap_or_default();
        let found = text.lines().find_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next()?;
            (fields.nth(1)?.parse() == Ok(id)).then(|| name.to_owned())
        });
        found.unwrap_or_else(|| id.to_string())
    }

    fn text(&self, path: &str) -> Option<String> {
        Some(fs::read_to_string(self.root.join(path)).ok()?.trim_end().to_owned())
    }

    /// What is in a folder, in order; nothing where there is no folder.
    fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.root.join(Path::new(folder))).into_iter().flatten();
        let mut names: Vec<_> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        names.sort();
        names
    }
}

fn page_bytes() -> Option<u64> {
    sysconf(SysconfVar::PAGE_SIZE).ok().flatten().and_then(|bytes| u64::try_from(bytes).ok()).filter(|bytes| bytes.is_power_of_two())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use tempfile::TempDir;

    /// A board with two u-dma-bufs, one of them of an old module, and a CMA heap.
    pub(crate) fn board() -> io::Result<(TempDir, Machine)> {
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
        write(
            "proc/zoneinfo",
            "Node 0, zone  Normal\n  spanned 4096\n  start_pfn:  0\nNode 0, zone Movable\n  spanned 0\n  start_pfn: 9999\n",
        )?;
        let root = folder.path().to_owned();
        Ok((folder, Machine { root }))
    }

    #[test]
    fn a_board_is_read() -> io::Result<()> {
        let (_folder, machine) = board()?;
        assert_eq!(machine.u_dma_buf_names(), ["udmabuf0", "udmabuf1"]);
        let [new, old] = <[_; 2]>::try_from(machine.u_dma_bufs()).map_err(|_| io::ErrorKind::Other)?;
        assert_eq!((new.size_bytes, new.addr, new.coherent), (Some(1 << 20), Some(0x3850_0000), Some(false)));
        assert_eq!((old.size_bytes, old.addr, old.coherent, old.version), (Some(4096), None, None, None));
        assert_eq!(machine.dma_heap_names(), ["linux,cma"]);
        assert_eq!(machine.kernel_version(), Some((6, 1)));
        assert_eq!(machine.cma(), Some((128 << 20, 64 << 20)));
        assert_eq!(machine.huge_pages(), Some(HugePages { reserved: 64, free: 0 }));
        assert_eq!(machine.memory_end(), page_bytes().map(|bytes| 4096 * bytes));
        assert!(machine.shows_addresses().is_err(), "this board has no /proc/self/pagemap");
        Ok(())
    }

    #[test]
    fn an_empty_machine_has_nothing() -> io::Result<()> {
        let folder = TempDir::new()?;
        let machine = Machine { root: folder.path().to_owned() };
        assert!(machine.u_dma_bufs().is_empty() && machine.dma_heap_names().is_empty());
        assert_eq!((machine.huge_pages(), machine.cma(), machine.memory_end(), machine.kernel()), (None, None, None, None));
        assert!(machine.access("udmabuf0").is_err());
        Ok(())
    }

    #[test]
    fn who_may_open_reads_as_in_ls() -> io::Result<()> {
        use std::os::unix::fs::PermissionsExt;
        let (folder, machine) = board()?;
        fs::set_permissions(folder.path().join("dev/udmabuf0"), fs::Permissions::from_mode(0o660))?;
        let found = machine.access("udmabuf0")?;
        assert!(found.mode.starts_with("-rw-rw---- ") && found.ours, "{found:?}");
        Ok(())
    }
}
