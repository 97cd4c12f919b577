//! Who may touch a byte of a simulated board's memory, in one byte.

/// A [`Holder`](contigo_core::mem::Holder) in one byte, for each byte of memory. 0 is no device.
/// Otherwise bit 0 is set, bit 1 says that the device may write, and the port's number begins at
/// bit 2. It counts from 1; 0 is any port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark(pub(super) u8);

impl Mark {
    pub(super) const NONE: Self = Self(0);
    const DEVICE: u8 = 1;
    const WRITES: u8 = 2;

    /// A device behind port number `port`. A number that does not fit is any port.
    pub(super) fn device(port: Option<usize>, writes: bool) -> Self {
        let number = port
            .and_then(|port| u8::try_from(port + 1).ok())
            .filter(|&number| number < 64)
            .unwrap_or(0);
        Self(Self::DEVICE | if writes { Self::WRITES } else { 0 } | number << 2)
    }

    /// May any device write?
    pub(super) fn is_written(self) -> bool {
        self.0 & Self::WRITES != 0
    }

    /// May a device behind port number `port` read, or write?
    pub(super) fn allows(self, port: Option<usize>, writes: bool) -> bool {
        let mine = self.0 >> 2 == 0 || Some(usize::from(self.0 >> 2)) == port.map(|port| port + 1);
        self.0 & Self::DEVICE != 0 && mine && (!writes || self.0 & Self::WRITES != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_allows_its_port_and_its_direction() {
        assert!(!Mark::NONE.allows(None, false));
        assert!(Mark::device(Some(3), false).allows(Some(3), false));
        assert!(!Mark::device(Some(3), false).allows(Some(3), true));
        assert!(!Mark::device(Some(3), true).allows(Some(2), false));
        assert!(!Mark::device(Some(0), true).allows(None, true));
        assert!(Mark::device(None, true).allows(Some(29), true));
        assert!(Mark::device(Some(62), true).allows(Some(62), true));
        assert!(
            Mark::device(Some(63), true).allows(Some(0), true),
            "a number that does not fit is any port"
        );
    }
}
