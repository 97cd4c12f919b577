//! The steps around a load, and who takes them.

use super::Way;
use crate::bitstream::Family;

/// One thing that must happen before or after a bitstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Around {
    /// The thing.
    pub what: &'static str,
    /// Who does it.
    pub who: &'static str,
}

const PORTS: Around = Around {
    what: "no core moves data",
    who: "Contigo refuses while a program or a driver has a node of the fabric",
};

/// Everything around a load of `family` by `way`.
///
/// # References
/// Linux, `zynq-fpga.c` (`FPGA_RST_CTRL`, `LVL_SHFTR_EN`, for whole bitstreams only),
/// `fpga-region.c` (bridges), `socfpga.c`; AMD's xilfpga, `XFpga_PsPlGpioResetsLow` and
/// `XFpga_IsolationRestore`.
#[must_use]
pub fn around(family: Option<Family>, way: Option<&Way>, partial: bool) -> Vec<Around> {
    let region = matches!(way, Some(Way::Overlay { .. }));
    let bridges = if region {
        "the kernel closes the region's, and opens them again"
    } else {
        "no step: this way leaves them as they are, and no access goes through while no program or driver has a node"
    };
    let mut all = vec![PORTS, Around { what: "bridges", who: bridges }];
    match (family, partial) {
        (Some(Family::Zynq7000), false) => all.extend([
            Around { what: "level shifters", who: "the kernel's zynq-fpga: off before, on after" },
            Around {
                what: "resets of the fabric",
                who: "the kernel's zynq-fpga: FPGA0 to FPGA3, held meanwhile",
            },
        ]),
        (Some(Family::ZynqMp), false) => all.extend([
            Around { what: "isolation of the fabric", who: "the PMU's firmware" },
            Around {
                what: "resets of the fabric",
                who: "the PMU's firmware: pl_resetn0 to 3, pulsed after",
            },
        ]),
        (Some(Family::Zynq7000 | Family::ZynqMp), true) => {
            all.push(Around {
                what: "decoupling of the region",
                who: "the design: its decoupler, which its program sets",
            });
        }
        (Some(Family::CycloneV), _) => {
            all.push(Around {
                what: "port to the SDRAM",
                who: "the boot code; it opens only while no transfer runs",
            });
        }
        (None, _) => {}
    }
    all.extend([
        Around {
            what: "clocks",
            who: "the boot code, the device tree, PYNQ, or contigo clocks --set",
        },
        Around {
            what: "widths of ports",
            who: "the boot code, PYNQ, or contigo board prepare --design",
        },
    ]);
    all
}
