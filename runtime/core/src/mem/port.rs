//! A port: one bus master's way to memory. Coherency and reach belong to the pair (memory, port),
//! never to memory alone.

use crate::types::{BaseAddr, Bus, DevAddr, Error, PhysAddr};

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
        self.dev_addr_within(base, len_bytes, self.reach(64))
    }

    /// As [`dev_addr`](Self::dev_addr), for a master that [reaches](Self::reach) only so far.
    #[inline]
    pub(crate) fn dev_addr_within(
        &self,
        base: BaseAddr,
        len_bytes: usize,
        (lowest, highest): (u64, u64),
    ) -> Result<DevAddr, Error> {
        let addr = match base {
            BaseAddr::Phys(PhysAddr(raw)) => raw.checked_add(self.offset),
            BaseAddr::Dev(DevAddr(raw)) => Some(raw),
        };
        match addr {
            Some(first)
                if first >= lowest
                    && first <= highest
                    && (len_bytes as u64).saturating_sub(1) <= highest - first =>
            {
                Ok(DevAddr(first))
            }
            _ => Err(self.unreachable(addr, len_bytes, (lowest, highest))),
        }
    }

    #[cold]
    fn unreachable(&self, addr: Option<u64>, len_bytes: usize, (first, last): (u64, u64)) -> Error {
        let addr = addr.unwrap_or(u64::MAX);
        Error::Unreachable { port: self.name, addr, len_bytes, first, last }
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

    /// The first and the last bus address that the port and a register of `addr_bits` bits both
    /// reach.
    #[inline]
    pub(crate) const fn reach(&self, addr_bits: u32) -> (u64, u64) {
        let bits = if addr_bits < self.addr_bits { addr_bits } else { self.addr_bits };
        let highest = if bits >= 64 { u64::MAX } else { (1 << bits) - 1 };
        (self.window.0, if highest < self.window.1 { highest } else { self.window.1 })
    }
}
