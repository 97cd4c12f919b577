//! Which accesses of a device the IOMMU refused.
//!
//! edu has no error bit: `edu_dma_timer` throws away what `pci_dma_read` and `pci_dma_write`
//! return. VFIO has no file that says it either. Its error interrupt (`VFIO_PCI_ERR_IRQ_INDEX`) is
//! PCI Express AER, which edu, a conventional device, does not have. iommufd's fault queue is for
//! faults that can be mended (PRI, stalls). The tracepoint `iommu:io_page_fault` is not reached
//! from arm-smmu-v3 (Linux 6.12, `arm_smmu_handle_evt`). Only the kernel's log is left:
//! `event 0x10 received:` and four words, of which the first has the function's number and the
//! third the address.

use contigo::{Error, Result};
use nix::errno::Errno;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

/// A source that reports which accesses the IOMMU refused.
pub trait FaultWatch {
    /// Refusals until now are of no interest.
    ///
    /// # Errors
    /// The error that keeps it from knowing.
    fn forget(&mut self) -> Result<()>;

    /// The first access that was refused since, if one was; waits at most `wait_us` for the news.
    ///
    /// # Errors
    /// As [`forget`](Self::forget).
    fn seen(&mut self, wait_us: u32) -> Result<Option<IommuFault>>;
}

/// No source: refused accesses are not reported.
#[derive(Clone, Copy, Debug)]
pub struct Unwatched;

impl FaultWatch for Unwatched {
    fn forget(&mut self) -> Result<()> {
        Ok(())
    }
    fn seen(&mut self, _wait_us: u32) -> Result<Option<IommuFault>> {
        Ok(None)
    }
}

/// An access that an SMMUv3 refused (Arm IHI 0070, "Event records").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IommuFault {
    /// 0x10: no translation; 0x11: too large an address; 0x12: access flag; 0x13: permission.
    pub event: u32,
    /// The function's number on its bus: bus, device and function.
    pub stream: u32,
    /// It was to be written.
    pub write: bool,
    /// The address that the device used.
    pub addr: u64,
}

/// The kernel's log, from now on, for one function behind an SMMUv3.
///
/// The kernel prints ten reports in five seconds (`arm_smmu_evtq_thread`), and QEMU makes a report
/// of every 4 bytes of a transfer. So after a long transfer was refused, the next refusal may go
/// unreported. A reported refusal did happen.
#[derive(Debug)]
pub struct FaultLog {
    log: File,
    stream: u32,
    /// The words of the event that is being read.
    words: Option<Vec<u64>>,
}

impl FaultLog {
    /// Opens `/dev/kmsg`, for the function whose requests have the number `stream`: `bus << 8 |
    /// device << 3 | function`.
    ///
    /// # Errors
    /// [`Error::Os`]: EPERM, the log is for CAP_SYSLOG (`/proc/sys/kernel/dmesg_restrict`); EACCES.
    pub fn open(stream: u32) -> Result<Self> {
        let log = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open("/dev/kmsg")
            .map_err(os)?;
        let mut this = Self { log, stream, words: None };
        this.forget()?;
        Ok(this)
    }

    /// The next fault of the function that the log has by now.
    fn next(&mut self) -> Result<Option<IommuFault>> {
        /// One record: `CONSOLE_EXT_LOG_MAX` is 8,192 bytes.
        const RECORD_BYTES: usize = 8192;
        /// More records than the kernel keeps.
        const MAX_RECORDS: usize = 100_000;
        let mut record = [0; RECORD_BYTES];
        for _ in 0..MAX_RECORDS {
            match self.log.read(&mut record) {
                Ok(count) => {
                    let text = String::from_utf8_lossy(record.get(..count).unwrap_or_default())
                        .into_owned();
                    if let Some(fault) =
                        self.take(&text).filter(|fault| fault.stream == self.stream)
                    {
                        return Ok(Some(fault));
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                // EPIPE: records were overwritten before they were read; the next read goes on
                // behind them.
                Err(error) if error.raw_os_error() == Some(libc::EPIPE) => self.words = None,
                Err(error) => return Err(os(error)),
            }
        }
        Ok(None)
    }

    /// One record: `priority,number,time,-;text`, where a tab is `\x09`.
    fn take(&mut self, record: &str) -> Option<IommuFault> {
        let (_, text) = record.lines().next()?.split_once(';')?;
        let text = text.strip_prefix("arm-smmu-v3 ")?.split_once(": ")?.1;
        if text.starts_with("event 0x") {
            self.words = Some(Vec::new());
            return None;
        }
        let word =
            u64::from_str_radix(text.trim_start_matches("\\x09").strip_prefix("0x")?, 16).ok()?;
        let words = self.words.as_mut()?;
        words.push(word);
        let [first, second, third, _] = words.as_slice() else { return None };
        // IHI 0070: EventID is bits 7:0 and StreamID bits 63:32 of the first word; RnW is bit 35 of
        // the second; the third has the address.
        let (event, stream) = (u32::try_from(first & 0xFF).ok()?, u32::try_from(first >> 32).ok()?);
        let fault = IommuFault { event, stream, write: second >> 35 & 1 == 0, addr: *third };
        self.words = None;
        Some(fault)
    }
}

impl FaultWatch for FaultLog {
    fn forget(&mut self) -> Result<()> {
        self.words = None;
        self.log.seek(SeekFrom::End(0)).map(drop).map_err(os)
    }

    fn seen(&mut self, wait_us: u32) -> Result<Option<IommuFault>> {
        let deadline = Instant::now() + Duration::from_micros(wait_us.into());
        loop {
            if let Some(fault) = self.next()? {
                return Ok(Some(fault));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let left_ms = i32::try_from(left.as_millis()).unwrap_or(i32::MAX);
            if left_ms == 0 {
                return Ok(None);
            }
            wait_readable(&self.log, left_ms);
        }
    }
}

/// Returns when the log has something more, and at the latest after `timeout_ms`.
#[allow(unsafe_code, reason = "poll(2) by the descriptor's number")]
fn wait_readable(log: &File, timeout_ms: i32) {
    let mut poll = libc::pollfd { fd: log.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: the struct lives until the call returns, and the count says one.
    unsafe { libc::poll(&raw mut poll, 1, timeout_ms) };
}

fn os(error: std::io::Error) -> Error {
    Error::Os { call: "/dev/kmsg", errno: error.raw_os_error().unwrap_or(Errno::EIO as i32) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics has failed, which is its purpose")]
mod tests {
    use super::{FaultLog, IommuFault};
    use std::fs::File;

    #[test]
    fn an_event_is_read_from_its_five_lines() {
        let mut log = FaultLog { log: File::open("/dev/null").unwrap(), stream: 8, words: None };
        let smmu = "arm-smmu-v3 9050000.smmuv3: ";
        let mut take =
            |text: &str| log.take(&format!("6,339,5140900,-;{text}\n SUBSYSTEM=platform\n"));
        assert_eq!(take("\\x090x0000000800000010"), None, "no event began");
        // Class IN; RnW, bit 35, says a read.
        for (second, write) in [("0x0000020000000000", true), ("0x0000020800000000", false)] {
            for text in
                ["event 0x10 received:", "\\x090x0000000800000010", &format!("\\x09{second}")]
            {
                assert_eq!(take(&format!("{smmu}{text}")), None);
            }
            assert_eq!(take("usb 1-1: something else"), None);
            assert_eq!(take(&format!("{smmu}\\x090x0000000048000000")), None);
            let fault = take(&format!("{smmu}\\x090x0000000048000000"));
            assert_eq!(
                fault,
                Some(IommuFault { event: 0x10, stream: 8, write, addr: 0x4800_0000 })
            );
        }
        assert_eq!(take(&format!("{smmu}\\x090x0000000048000000")), None, "it is over");
    }
}
