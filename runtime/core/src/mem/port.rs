//! A port: one bus master's way to memory. Coherency and reach belong to the pair (memory, port),
//! never to memory alone.

use crate::types::{BaseAddr, Bus, DevAddr, Error, PhysAddr};
use core::ops::RangeInclusive;

/// One bus master's way to memory: Zynq HP0, ZynqMP HPC0, Cyclone V's FPGA-to-SDRAM port, a PCI
/// Express slot.
///
/// The ports of known boards are constants in the crate `contigo-boards`; a board of your own is
/// one more constant.
///
/// ```
/// use contigo::{Bus, DevAddr, PhysAddr, Port, types::BaseAddr};
/// /// Cyclone V HPS Technical Reference Manual, "ACP ID Mapper": DDR appears at 0x8000_0000, 1 GiB, coherent.
/// const ACP: Port = Port { name: "cyclone-v-acp", bus: Bus::Soc, offset: 0x8000_0000, addr_bits: 32,
///                          window: (0x8000_0000, 0xBFFF_FFFF), coherent: true };
/// assert_eq!(ACP.dev_addr(BaseAddr::Phys(PhysAddr(0x10_0000)), 64)?, DevAddr(0x8010_0000));
/// # Ok::<(), contigo::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Port {
    /// The name that errors print.
    pub name: &'static str,
    /// The bus this port is on.
    pub bus: Bus,
    /// The number that a master adds: bus address = physical address + `offset`.
    pub offset: u64,
    /// How many address lines the master drives through this port.
    pub addr_bits: u32,
    /// The first and the last bus address that reach memory.
    pub window: (u64, u64),
    /// Does the port snoop the CPU's caches? Then no cache maintenance is needed, only a barrier.
    pub coherent: bool,
}

impl Port {
    /// The bus address through this port of `len_bytes` bytes at `base`, when the port reaches all
    /// of them.
    ///
    /// # Errors
    /// [`Error::Unreachable`], with what the port reaches.
    pub fn dev_addr(&self, base: BaseAddr, len_bytes: usize) -> Result<DevAddr, Error> {
        self.dev_addr_within(base, len_bytes, 64)
    }

    /// As [`dev_addr`](Self::dev_addr), for a master whose address register has only `addr_bits`
    /// bits.
    pub(crate) fn dev_addr_within(
        &self,
        base: BaseAddr,
        len_bytes: usize,
        addr_bits: u32,
    ) -> Result<DevAddr, Error> {
        let reach = self.reach(addr_bits);
        let addr = match base {
            BaseAddr::Phys(PhysAddr(raw)) => raw.checked_add(self.offset),
            BaseAddr::Dev(DevAddr(raw)) => Some(raw),
        };
        let last = addr.and_then(|first| first.checked_add((len_bytes as u64).saturating_sub(1)));
        match (addr, last) {
            (Some(first), Some(last)) if reach.contains(&first) && reach.contains(&last) => {
                Ok(DevAddr(first))
            }
            _ => Err(Error::Unreachable {
                port: self.name,
                addr: addr.unwrap_or(u64::MAX),
                len_bytes,
                first: *reach.start(),
                last: *reach.end(),
            }),
        }
    }

    /// Is the port on a simulated board, which tracks who holds which bytes?
    #[inline]
    pub(crate) const fn is_simulated(&self) -> bool {
        matches!(self.bus, Bus::Sim(_))
    }

    /// The reverse: the offset of bus address `addr`, through this port, in a block that begins at
    /// `base`.
    pub(crate) fn offset_in(&self, base: BaseAddr, addr: DevAddr) -> Option<u64> {
        let first = match base {
            BaseAddr::Phys(PhysAddr(raw)) => raw.checked_add(self.offset)?,
            BaseAddr::Dev(DevAddr(raw)) => raw,
        };
        addr.0.checked_sub(first)
    }

    /// Bus addresses that the port and a register of `addr_bits` bits both reach.
    fn reach(&self, addr_bits: u32) -> RangeInclusive<u64> {
        let highest = match addr_bits.min(self.addr_bits) {
            0 => 0,
            bits @ 1..=63 => (1 << bits) - 1,
            _ => u64::MAX,
        };
        self.window.0..=self.window.1.min(highest)
    }
}
