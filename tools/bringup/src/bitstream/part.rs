//! The devices, by the numbers in a bitstream and in a processor.

use std::fmt;

/// Devices that share a processor, a manager in the kernel, and the addresses of their fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Zynq-7000.
    Zynq7000,
    /// Zynq UltraScale+.
    ZynqMp,
    /// Cyclone V SoC.
    CycloneV,
}

/// One device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its name without `xc` and package: the beginning of the name in a `.bit`.
    pub name: &'static str,
    /// Its family.
    pub family: Family,
    /// The IDCODE of its configurations, without the version in the highest four bits. `None`: not
    /// known here. For UltraScale+ it differs from the IDCODE of the boundary scan.
    pub idcode: Option<u32>,
    /// The length of a whole uncompressed configuration, in bytes. `None`: not known here.
    pub full_bytes: Option<u64>,
}

/// The version of the silicon, which a bitstream leaves 0.
const VERSION: u32 = 0xf000_0000;

const fn zynq(name: &'static str, idcode: u32, full_bits: u64) -> Part {
    Part { name, family: Family::Zynq7000, idcode: Some(idcode), full_bytes: Some(full_bits / 8) }
}

const fn zynqmp(name: &'static str, idcode: u32) -> Part {
    Part { name, family: Family::ZynqMp, idcode: Some(idcode), full_bytes: None }
}

const fn cyclone(name: &'static str, full_bits: u64) -> Part {
    Part { name, family: Family::CycloneV, idcode: None, full_bytes: Some(full_bits / 8) }
}

/// The devices that are known here. A device without a row is neither refused nor compared.
///
/// # References
/// Zynq-7000: UG585, `PSS_IDCODE`, and the numbers and lengths of U-Boot's `zynqpl.h`. Zynq
/// UltraScale+: Vivado's part properties; ZU9EG: `ZYNQ_ULTRAPLUS_PL_DAP_ID` of AMD's xilskey.
/// Cyclone V: its datasheet, "Configuration Files".
pub const PARTS: &[Part] = &[
    zynq("7z007s", 0x0372_3093, 16_669_920),
    zynq("7z010", 0x0372_2093, 16_669_920),
    zynq("7z012s", 0x0373_c093, 28_085_344),
    zynq("7z014s", 0x0372_8093, 32_364_512),
    zynq("7z015", 0x0373_b093, 28_085_344),
    zynq("7z020", 0x0372_7093, 32_364_512),
    zynq("7z030", 0x0372_c093, 47_839_328),
    zynq("7z035", 0x0373_2093, 106_571_232),
    zynq("7z045", 0x0373_1093, 106_571_232),
    zynq("7z100", 0x0373_6093, 139_330_784),
    zynqmp("k26", 0x04a4_9093),
    zynqmp("zu3eg", 0x04a4_2093),
    zynqmp("zu5ev", 0x04a4_6093),
    zynqmp("zu9eg", 0x0484_a093),
    cyclone("5cseba2", 33_958_560),
    cyclone("5cseba4", 33_958_560),
    cyclone("5cseba5", 56_057_632),
    cyclone("5cseba6", 56_057_632),
];

impl Part {
    /// The device by a tool's name for it, with or without its package: `7z020clg400`, `XC7Z020`,
    /// `xck26-sfvc784-2LV-c`, `5CSEBA6U23I7`.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        let name = bare(name);
        // The longest name wins: 7z01 is the beginning of several.
        PARTS.iter().filter(|part| name.starts_with(part.name)).max_by_key(|part| part.name.len())
    }

    /// The device whose configurations have this IDCODE, whatever the version is.
    #[must_use]
    pub fn of_idcode(idcode: u32) -> Option<&'static Self> {
        PARTS.iter().find(|part| part.idcode == Some(idcode & !VERSION))
    }

    /// The Zynq-7000 with this device code: bits 16 to 12 of its `PSS_IDCODE`.
    #[must_use]
    pub fn of_zynq(device: u32) -> Option<&'static Self> {
        PARTS.iter().find(|part| {
            part.family == Family::Zynq7000
                && part.idcode.is_some_and(|idcode| idcode >> 12 & 0x1f == device)
        })
    }
}

impl Family {
    /// The family of a device's name, also of one without a row.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        let name = bare(name);
        let begins = [
            ("7z", Self::Zynq7000),
            ("zu", Self::ZynqMp),
            ("k2", Self::ZynqMp),
            ("5cs", Self::CycloneV),
        ];
        begins.iter().find(|(begin, _)| name.starts_with(begin)).map(|&(_, family)| family)
    }

    /// The addresses of the fabric in the processor: first and last addresses of its windows.
    ///
    /// # References
    /// UG585, table 4-1 (M_AXI_GP0, GP1); UG1085, "System Addresses" (HPM0 and HPM1 of FPD, HPM0 of
    /// LPD); Cyclone V HPS manual, "Address Space" (both HPS-to-FPGA bridges).
    #[must_use]
    pub const fn windows(self) -> &'static [(u64, u64)] {
        match self {
            Self::Zynq7000 => &[(0x4000_0000, 0xbfff_ffff)],
            Self::ZynqMp => &[
                (0x8000_0000, 0xbfff_ffff),
                (0x4_0000_0000, 0x5_ffff_ffff),
                (0x10_0000_0000, 0x7f_ffff_ffff),
            ],
            Self::CycloneV => &[(0xc000_0000, 0xfbff_ffff), (0xff20_0000, 0xff3f_ffff)],
        }
    }
}

/// A name in small letters, without the maker's prefix.
fn bare(name: &str) -> String {
    let name = name.trim().to_ascii_lowercase();
    name.strip_prefix("xc").unwrap_or(&name).to_owned()
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Zynq7000 => "Zynq-7000",
            Self::ZynqMp => "Zynq UltraScale+",
            Self::CycloneV => "Cyclone V SoC",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_is_known_by_names_and_numbers() {
        let name = |name: &str| Part::named(name).map(|part| part.name);
        assert_eq!(
            (name("7z020clg400"), name("XC7Z020"), name("xc7z012sclg485")),
            (Some("7z020"), Some("7z020"), Some("7z012s"))
        );
        assert_eq!(
            (name("xck26-sfvc784-2LV-c"), name("5CSEBA6U23I7"), name("7a35tcpg236")),
            (Some("k26"), Some("5cseba6"), None)
        );
        for part in PARTS {
            assert_eq!(Part::named(part.name), Some(part));
            if let Some(idcode) = part.idcode {
                assert_eq!(
                    (Part::of_idcode(idcode), Part::of_idcode(idcode | VERSION)),
                    (Some(part), Some(part))
                );
                if part.family == Family::Zynq7000 {
                    assert_eq!(Part::of_zynq(idcode >> 12 & 0x1f), Some(part));
                }
            }
        }
        // UG585, PSS_IDCODE: a 7Z020 has device code 7.
        assert_eq!(Part::of_zynq(7).map(|part| part.name), Some("7z020"));
    }
}
