//! This machine's facts about all of its memory, read from files under `/proc`.

use super::Machine;
use nix::unistd::{SysconfVar, sysconf};

impl Machine {
    /// One past the last byte of memory, from `/proc/zoneinfo`, which needs no privilege
    /// (`/proc/iomem` does).
    #[must_use]
    pub fn memory_end(&self) -> Option<u64> {
        let text = self.text("proc/zoneinfo")?;
        let (mut spanned, mut end_page) = (0, 0_u64);
        for line in text.lines() {
            let mut words = line.split_ascii_whitespace();
            let number =
                |word: Option<&str>| word.and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
            match words.next() {
                Some("spanned") => spanned = number(words.next()),
                Some("start_pfn:") if spanned > 0 => {
                    end_page = end_page.max(number(words.next()).saturating_add(spanned))
                }
                _ => {}
            }
        }
        end_page.checked_mul(page_bytes()?).filter(|&end| end > 0)
    }

    /// The kernel's CMA: how much there is, and how much is free, in bytes.
    #[must_use]
    pub fn cma(&self) -> Option<(u64, u64)> {
        Some((self.meminfo("CmaTotal:")?, self.meminfo("CmaFree:")?))
            .filter(|&(total, _)| total > 0)
    }

    /// The bytes of memory that programs and the kernel can still get, as the kernel estimates it.
    #[must_use]
    pub fn available(&self) -> Option<u64> {
        self.meminfo("MemAvailable:")
    }

    fn meminfo(&self, name: &str) -> Option<u64> {
        let text = self.text("proc/meminfo")?;
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_ascii_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
    }
}

fn page_bytes() -> Option<u64> {
    sysconf(SysconfVar::PAGE_SIZE)
        .ok()
        .flatten()
        .and_then(|bytes| u64::try_from(bytes).ok())
        .filter(|bytes| bytes.is_power_of_two())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, io};

    #[test]
    fn memory_is_read() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        fs::create_dir_all(folder.path().join("proc/sys/kernel"))?;
        let write = |path: &str, text: &str| fs::write(folder.path().join(path), text);
        write("proc/sys/kernel/osrelease", "6.1.0-xilinx\n")?;
        write(
            "proc/meminfo",
            "MemTotal:  515 kB\nMemAvailable:  4 kB\nCmaTotal:  131072 kB\nCmaFree:  65536 kB\n",
        )?;
        write(
            "proc/zoneinfo",
            "Node 0, zone  Normal\n  spanned 4096\n  start_pfn:  0\nNode 0, zone Movable\n  spanned 0\n  start_pfn: 9999\n",
        )?;
        let machine = Machine::copy(folder.path());
        assert_eq!(
            (machine.kernel().as_deref(), machine.cma()),
            (Some("6.1.0-xilinx"), Some((128 << 20, 64 << 20)))
        );
        assert_eq!(
            (machine.memory_end(), machine.available()),
            (page_bytes().map(|bytes| 4096 * bytes), Some(4096))
        );
        let nothing = Machine::copy("/nowhere");
        assert_eq!(
            (nothing.cma(), nothing.memory_end(), nothing.kernel(), nothing.available()),
            (None, None, None, None)
        );
        Ok(())
    }
}
