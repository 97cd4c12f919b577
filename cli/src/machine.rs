//! This machine's facts about all of its memory, read from files under `/proc`.

use nix::unistd::{SysconfVar, sysconf};
use std::{fs, path::PathBuf};

/// A machine's files. Tests put a folder of their own in the place of `/`.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    root: PathBuf,
}

impl Machine {
    /// The machine that this program runs on.
    pub(crate) fn this() -> Self {
        Self { root: PathBuf::from("/") }
    }

    /// The kernel's release: `6.12.0-xilinx`.
    pub(crate) fn kernel(&self) -> Option<String> {
        self.text("proc/sys/kernel/osrelease")
    }

    /// One past the last byte of memory, from `/proc/zoneinfo`, which needs no privilege
    /// (`/proc/iomem` does).
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

    /// The kernel's CMA: how much there is, and how much is free, in bytes.
    pub(crate) fn cma(&self) -> Option<(u64, u64)> {
        let text = self.text("proc/meminfo")?;
        let bytes = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_ascii_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
        };
        Some((bytes("CmaTotal:")?, bytes("CmaFree:")?)).filter(|&(total, _)| total > 0)
    }

    fn text(&self, path: &str) -> Option<String> {
        Some(fs::read_to_string(self.root.join(path)).ok()?.trim_end().to_owned())
    }
}

fn page_bytes() -> Option<u64> {
    sysconf(SysconfVar::PAGE_SIZE).ok().flatten().and_then(|bytes| u64::try_from(bytes).ok()).filter(|bytes| bytes.is_power_of_two())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::io;
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
        assert_eq!((machine.kernel().as_deref(), machine.cma()), (Some("6.1.0-xilinx"), Some((128 << 20, 64 << 20))));
        assert_eq!(machine.memory_end(), page_bytes().map(|bytes| 4096 * bytes));
        let nothing = Machine { root: "/nowhere".into() };
        assert_eq!((nothing.cma(), nothing.memory_end(), nothing.kernel()), (None, None, None));
        Ok(())
    }
}
