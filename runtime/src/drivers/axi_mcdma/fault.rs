//! The meaning of the error bits.

use crate::types::Error;

/// For messages.
pub(super) const DEVICE: &str = "axi_mcdma";

/// The Error Register's most important bit (PG288, MM2S and S2MM Error Register). `buffer` and
/// `descriptor`: where the channel was.
pub(super) const fn of_core(status: u32, buffer: u64, descriptor: u64) -> Error {
    let device = DEVICE;
    let (what, addr) = match status {
        0 => ("an error of this channel whose cause it does not tell", descriptor),
        _ if status & 1 << 6 != 0 => {
            ("SGDecErr, that no memory is where it fetches a descriptor: is its port m_axi_sg wired to this memory?", descriptor)
        }
        _ if status & 1 << 5 != 0 => ("SGSlvErr, that memory answered a descriptor's fetch with an error", descriptor),
        _ if status & 1 << 4 != 0 => {
            ("SGIntErr, that it fetched a descriptor which is complete already: does somebody else drive this core?", descriptor)
        }
        _ if status & 1 << 2 != 0 => ("DMADecErr, that no memory answers at a buffer's address on its data port", buffer),
        _ if status & 1 << 1 != 0 => ("DMASlvErr, that memory answered its data port with an error", buffer),
        _ if status & 1 << 0 != 0 => {
            ("DMAIntErr, a length of 0, or a stream that ended otherwise than its status stream said: compare length_bits", buffer)
        }
        _ => ("an error that PG288 does not know: is this core an AXI MCDMA 1.1?", descriptor),
    };
    Error::FaultAt { device, status, what, addr }
}

/// A descriptor's own error bits.
pub(super) const fn of_descriptor(status: u32, buffer: u64) -> Error {
    let core = status >> 28 & 0b111;
    // Internal, slave and decode error are in the same order in both.
    match of_core(core, buffer, buffer) {
        Error::FaultAt { device, what, addr, .. } => Error::FaultAt { device, status, what, addr },
        other => other,
    }
}

/// Another channel of this direction failed. The whole direction halts then.
pub(super) const fn of_another(status: u32) -> Error {
    let what = "an error on another channel, which halts all channels of this direction: start the jobs again";
    Error::Fault { device: DEVICE, status, what }
}

/// Fewer bytes were sent than the descriptor has.
pub(super) const fn cut_length(status: u32) -> Error {
    let what =
        "fewer bytes sent than were given: its length register is narrower than length_bits says; take its width from the block design";
    Error::Fault { device: DEVICE, status, what }
}

/// All ones.
pub(super) const fn gone() -> Error {
    Error::Fault { device: DEVICE, status: u32::MAX, what: "nothing: it is gone, or its registers are not at this address" }
}

/// It does not leave its halt.
pub(super) const fn not_running(status: u32) -> Error {
    Error::Fault { device: DEVICE, status, what: "that it is halted and does not start: are s_axi_aclk and s_axi_lite_aclk on?" }
}

#[cfg(test)]
#[allow(clippy::panic, reason = "a test that panics has failed, which is its purpose")]
mod tests {
    use super::*;

    #[test]
    fn each_error_bit_has_its_name_and_its_address() {
        let names = ["DMAIntErr", "DMASlvErr", "DMADecErr", "", "SGIntErr", "SGSlvErr", "SGDecErr"];
        for (bit, name) in (0..).zip(names).filter(|(_, name)| !name.is_empty()) {
            let Error::FaultAt { status, what, addr, .. } = of_core(1 << bit, 7, 64) else { panic!("{name}") };
            assert!(what.starts_with(name) && status == 1 << bit && addr == if bit < 4 { 7 } else { 64 }, "{what}");
        }
        // In a descriptor the same three are bits 28 to 30.
        for (bit, name) in (28..).zip(["DMAIntErr", "DMASlvErr", "DMADecErr"]) {
            let Error::FaultAt { status, what, addr, .. } = of_descriptor(1 << 31 | 1 << bit | 5, 7) else { panic!("{name}") };
            assert!(what.starts_with(name) && status == 1 << 31 | 1 << bit | 5 && addr == 7, "{what}");
        }
    }
}
